"""`paceline simulate`: collectives under a machine model, with given arrival times."""

import statistics

import click
from rich.table import Table

from paceline import _core, patterns
from paceline.cli.common import (
    COLLECTIVES, Collective, Names, Number, Sizes, console, file_option, write_json,
)
from paceline.schedules import how, unit_count
from paceline.units import human_time

CALLS = 20
ABOUT = """\
Model time on {machine}. Medians over {calls} calls of the pattern. Message: what one of that size \
takes from a rank to another; factors of the pattern multiply it."""


def names_for(collective, wanted):
    """Names of algorithms; auto stands for the choice under the machine model."""
    rows = [row for row in _core.algorithms() if row["collective"] == collective]
    known, found = [row["name"] for row in rows], []
    for name in wanted:
        if name not in ("auto", "all", *known):
            raise click.UsageError(f"--algorithm: {collective} has no '{name}'; use auto, all, or "
                                   f"some of {', '.join(known)}.")
        every = [row["name"] for row in rows if row["access"] == "messages"]
        found += every if name == "all" else [name]
    return list(dict.fromkeys(found))


def message_s(machine, nbytes):
    """Seconds of a message of `nbytes`."""
    return _core.World("broadcast", "binomial", 2).simulate(max(nbytes, 1), 1, machine, []).span_s


def simulated(chosen, ranks, collective, count, machine, pattern, alpha_s):
    """Medians over calls: (last arrival to last exit, mean time in the call, imbalance). Positions
    may depend on the order of arrival: each call has its own world."""
    found = []
    for call in range(CALLS if pattern.kind != "late" else 1):
        arrivals = pattern.delays_s(ranks, call, alpha_s)
        world = _core.World(collective, chosen["algorithm"], ranks, fused=True, arrivals=arrivals,
                            **how(chosen))
        trace = world.simulate(count, 4, machine, arrivals)
        within = [left - came for left, came in zip(trace.exit_s, trace.arrival_s)]
        found.append((max(trace.exit_s) - max(arrivals), statistics.fmean(within),
                      _core.imbalance(arrivals)[0]))
    return [statistics.median(values) for values in zip(*found)]


@click.command("simulate", epilog=COLLECTIVES)
@click.argument("collective", type=Collective(), default="allreduce")
@click.option("--sizes", type=Sizes(), default="64KiB,1MiB,16MiB", show_default=True,
              help="Message sizes: 8,1KiB,64KiB or 8..64MiB (doubling) or 8..64MiB*4.")
@click.option("--ranks", "-n", default=8, show_default=True, type=Number(2, 1024),
              help="Number of ranks.")
@click.option("--algorithm", type=Names(), default="auto", show_default=True,
              help="auto, all, or algorithms by name: auto,ring,binomial.")
@click.option("--machine", default="ethernet-10g", show_default=True,
              help="Machine model, by name or settings, as paceline explain takes it.")
@click.option("--arrival", default="uniform:0", show_default=True, metavar="PATTERN",
              help="Arrival pattern: uniform:MIF, late:RANK[,RANK]:FACTOR or trace:FILE. MIF and "
              "FACTOR are multiples of the time of one message of that size.")
@file_option("--json", help="Write all records to this file.")
def command(collective, sizes, ranks, algorithm, machine, arrival, json):
    """Simulate collectives, also with late ranks.

    Runs the schedules of the library under a machine model. Reports the time from the last arrival
    to the last exit, and the mean time of a rank in the call.

    \b
    paceline simulate allreduce -n 16 --algorithm auto,ring,recursive_doubling
    paceline simulate allreduce --arrival late:3:1.5 --algorithm all --sizes 4MiB
    paceline simulate allreduce --arrival uniform:10 --json simulated.json
    paceline simulate allreduce -n 4 --arrival trace:profile.json
    """
    pattern = patterns.parse(arrival)
    pattern.check(ranks)
    try:
        words = _core.machine(machine)
    except ValueError as error:
        raise click.UsageError(f"--machine: {error}") from None
    rows, notes = rows_of(collective, names_for(collective, algorithm), sizes, ranks,
                          machine, pattern)
    table = Table("size", "algorithm", "last arrival to last exit", "in the call, mean",
                  "imbalance", "message", title=f"{collective}, {ranks} ranks, {arrival}")
    for column in table.columns[2:]:
        column.justify = "right"
    for row in rows:
        table.add_row(_core.human_bytes(row["bytes"]), row["label"],
                      *(human_time(1e-6 * row[name]) for name in (
                          "time_us_median", "in_call_us_mean", "imbalance_us_median",
                          "message_us")))
    out = console()
    out.print(table)
    for note in notes:
        out.print(note, style="yellow", soft_wrap=True)
    out.print(ABOUT.format(machine=words, calls=CALLS), style="dim", soft_wrap=True)
    if json:
        write_json({"records": rows, "machine": words, "notes": notes}, json, out)
    return 0 if rows else 1


def rows_of(collective, names, sizes, ranks, machine, pattern):
    """(records as `paceline bench --json` has them, notes)."""
    rows, notes = [], []
    for size in sizes:
        alpha_s = message_s(machine, size)
        for name in names:
            try:
                chosen = _core.choose(collective, ranks, size, "" if name == "auto" else name,
                                      machine=machine)
                after_s, within_s, worst_s = simulated(
                    chosen, ranks, collective, unit_count(collective, ranks, size), machine,
                    pattern, alpha_s)
            except ValueError as error:
                notes.append(f"{name}: {error}")
                continue
            label = f"auto ({chosen['algorithm']})" if name == "auto" else name
            rows.append({"collective": collective, "bytes": size, "ranks": ranks, "label": label,
                         "algorithm": chosen["algorithm"], "segments": chosen["segments"],
                         "arrival": pattern.words, "simulated": True,
                         "time_us_median": 1e6 * after_s, "in_call_us_mean": 1e6 * within_s,
                         "imbalance_us_median": 1e6 * worst_s, "message_us": 1e6 * alpha_s})
    return rows, list(dict.fromkeys(notes))
