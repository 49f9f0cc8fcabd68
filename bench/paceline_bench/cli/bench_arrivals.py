"""`paceline bench --arrival`: checks its options, and shows its results."""

import click
from paceline import _core, patterns
from paceline.cli.common import write_json
from paceline.units import human_time
from rich.markup import escape

from paceline_bench.measure.wire_check import REFUSED

HOW = """\
After last: median time from the last arrival to the last exit, of calls made one at a time, by \
the common clock of the ranks. Ranks {wait} until they enter. In the call: mean time from entry to \
exit, which includes waiting. Imbalance: last arrival minus first, as measured. Message: \
{message}; factors of the pattern are multiples of it."""
HERE = {"wait": "compute", "message": "half a round trip of this size between ranks 0 and 1, "
        "in the same launch"}
BETWEEN = {"wait": "sleep", "message": "the time of its bytes on a link, n/rate ({times})"}
CLUSTER = """\
All interfaces' counters were read around every call; they show what must cross, and no time is \
shorter than the links allow. Waiting: {waiting}."""


def check(arrival, plan, batch, verdict, cold):
    """Raises errors of --arrival; the plan then has it."""
    if not arrival:
        return
    for given, words in ((batch, "--batch"), (verdict, "--verdict"), (cold, "--cold")):
        if given:
            raise click.UsageError(f"--arrival times single calls by absolute times; {words} does "
                                   "not go with it.")
    patterns.parse(arrival).check(plan.ranks)
    plan.arrival = arrival


def check_in_lab(plan):
    """Raises errors that only nodes of a lab have."""
    pattern = patterns.parse(plan.arrival)
    if pattern.factor and 0 in plan.sizes:
        raise click.UsageError(
            f"--arrival {plan.arrival}: its factor multiplies what the bytes of a message take on "
            "a link, and there are none; use trace:FILE, whose arrivals are seconds.")


def how(rows, plan):
    """The text below the table, which explains the measurement."""
    if not plan.cluster:
        return HOW.format(**HERE)
    sizes = {row.bytes: row.message_s for row in rows}
    times = ", ".join(f"{_core.human_bytes(size)}: {human_time(seconds)}"
                      for size, seconds in sizes.items())
    about = f"{plan.cluster.about['rate']}{'; ' if times else ''}{times}"
    words = {name: text.format(times=about) for name, text in BETWEEN.items()}
    return f"{HOW.format(**words)} {CLUSTER.format(**plan.cluster.about)}"


def heading(plan):
    """Title of the table: what is measured, in a line."""
    nodes = f" on {plan.cluster.nodes} nodes" if plan.cluster else ""
    return f"{plan.collective}, {plan.ranks} ranks{nodes}, --arrival {plan.arrival}"


def show(plan, launches, head, file, out):
    """Measures, prints and writes calls whose ranks enter at different times; the status."""
    from paceline_bench.measure import arrivals
    from paceline_bench.measure.launching import launch_all

    rows, notes = arrivals.rows_of(launch_all(plan, launches, out), plan)
    out.print(heading(plan), soft_wrap=True)
    out.print(arrivals.table(rows, plan))
    out.print()
    for note in notes:
        out.print(f"[yellow]{escape(note)}[/]", soft_wrap=True)
    out.print(how(rows, plan), style="dim", soft_wrap=True)
    if file:
        records = [arrivals.record(row, plan) for row in rows]
        write_json({**head, "records": records, "notes": notes}, file, out)
    bad = any(word in note for note in notes for word in ("wrong result", REFUSED))
    return 0 if rows and not bad else 1
