"""A profile on one screen of a terminal."""

import io

import numpy as np
from rich import box
from rich.console import Console, Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from paceline import _core
from paceline.profiling.summary import CLASSES, summarise
from paceline.units import human_time

MOST_ROWS, MOST_LATE, MOST_SITES, MOST_NOTES = 10, 5, 4, 6
MOST_SITE, SITE_HEAD = 32, 9  # characters of a place in the program; the middle is left out
RANGES = {"small": f"to {_core.human_bytes(CLASSES[0][1])}",
          "medium": f"to {_core.human_bytes(CLASSES[1][1])}", "large": "longer"}


def text(calls, width=100):
    """The screen as plain text."""
    out = Console(file=io.StringIO(), width=width, highlight=False, force_terminal=False)
    out.print(screen(summarise(calls)))
    return out.file.getvalue()


def screen(found):
    """The screen of a Summary."""
    parts = [heading(found), "", kinds_table(found), ""]
    if found.late:
        parts += [late_table(found), Text("Last in: by at least a tenth of the call's transfer.",
                                          "dim"), ""]
    if any(row["site"] for row in found.sites):
        parts += [sites_table(found), ""]
    parts.append(Text(f"Factors: imbalance time divided by {found.factors}. Worst: last arrival "
                      "minus first; average: mean distance from the mean arrival.", "dim"))
    shown = found.notes[:MOST_NOTES]
    parts += [Text(note, "yellow") for note in shown]
    if len(found.notes) > len(shown):
        parts.append(Text(f"{len(found.notes) - len(shown)} more notes: --json has them.",
                          "yellow"))
    return Group(*parts)


def heading(found):
    """A summary of the recording, in a line or two."""
    nodes = f" on {found.nodes} nodes" if found.nodes > 1 else ""
    clocks = (f"; clocks agree to {human_time(found.clock_error_s)}"
              if found.clock_error_s else "")
    share = 100 * found.recording
    recording = f"at most {share:.2f} %" if share >= 0.01 else "less than 0.01 %"
    return Text.assemble(
        (f"{found.ranks} ranks{nodes}, {human_time(found.run_s)}", "bold"),
        f": {found.calls} collective calls took {percent(found.in_calls)} of the run time, and "
        f"recording them {recording}{clocks}.")


def table_of(*names, left=1):
    """A table, its first columns to the left. The first one alone wraps where lines are short."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < left else "right", no_wrap=number > 0,
                         overflow="ellipsis" if number else "fold")
    return table


def kinds_table(found):
    """Collectives and the classes of their messages."""
    nodes = found.nodes > 1
    table = table_of("collective", "calls", "of run", "waiting", "transfer", "worst", "average",
                     "factor:\nworst", "\naverage",
                     *(("in node:\nworst", "\naverage") if nodes else ()))
    for row in shown_rows(found):
        whole = row.sizes == "all"
        name = row.collective if whole else f"  {row.sizes} ({RANGES[row.sizes]})"
        within = (factor(row.node_worst), factor(row.node_average)) if nodes else ()
        table.add_row(
            name, str(row.calls), percent(row.share_of_run), human_time(row.waiting_s),
            human_time(row.transfer_s), duration(row.worst_s), duration(row.average_s),
            factor(row.worst), factor(row.average), *within, style=None if whole else "dim")
    return table


def shown_rows(found):
    """All collectives, with classes where there are several; at most MOST_ROWS."""
    rows = []
    for row in found.rows:
        classes = [other for other in found.rows
                   if other.collective == row.collective and other.sizes != "all"]
        if row.sizes == "all" or len(classes) > 1:
            rows.append(row)
    return rows[:MOST_ROWS]


def late_table(found):
    """Ranks that came last, how often, and how long all others waited for that rank alone."""
    table = table_of("late rank", "last in", "of its calls", "others waited for it alone",
                     "it waited")
    for row in found.late[:MOST_LATE]:
        node = f" ({escape(row.node)})" if found.nodes > 1 else ""
        table.add_row(f"rank {row.rank}{node}", str(row.last), percent(row.share),
                      human_time(row.alone_s), human_time(row.waits_s))
    return table


def sites_table(found):
    """Places in the program at which ranks enter far apart."""
    table = table_of("where", "collective", "size", "calls", "worst", "waited for\nthe last",
                     left=3)
    for row in found.sites[:MOST_SITES]:
        place = row["site"] or "(no label)"
        if len(place) > MOST_SITE:
            place = f"{place[:SITE_HEAD]}...{place[SITE_HEAD + 3 - MOST_SITE:]}"
        table.add_row(escape(place), row["collective"], row["sizes"],
                      str(row["calls"]), duration(row["worst_s"]), human_time(row["waited_s"]))
    return table


def percent(share):
    """A share as a person reads it."""
    return f"{100 * share:.1f} %"


def factor(value):
    """A factor with the digits that mean something."""
    return (f"{value:.0f}" if value >= 1000 else f"{value:.3g}") if np.isfinite(value) else "-"


def duration(seconds):
    """A time, where it is known."""
    return human_time(seconds) if np.isfinite(seconds) else "-"
