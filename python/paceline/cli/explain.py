"""`paceline explain`: which algorithm a call would take, why, and what the others would cost."""

import click
from rich.markup import escape
from rich.table import Table

from paceline import _core
from paceline.cli.common import (
    COLLECTIVES, Collective, Number, Size, console, human_time,
)
from paceline.cli.draw import simulated


def model_time(collective, name, ranks, size, machine, choice=None):
    """The simulated time of an algorithm on a machine (s), pipelined as in `choice`."""
    shape = choice or {"segments": 1, "window": 1}
    world = _core.World(collective, name, ranks, fused=True, segments=shape["segments"],
                        window=shape["window"])
    return simulated(world, size, machine, []).span_s


def table(collective, ranks, size, machine, choice):
    """One row per algorithm; the chosen one is marked."""
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    out.add_column("algorithm", no_wrap=True)
    for heading in ("rounds", "bytes", "combined", f"time on {machine.split(',')[0]}"):
        out.add_column(heading, justify="right")
    for row in _core.algorithms(ranks):
        if row["collective"] != collective:
            continue
        chosen = row["name"] == choice["algorithm"]
        seconds = model_time(collective, row["name"], ranks, size, machine,
                             choice if chosen else None)
        segments = f" x {choice['segments']}" if chosen and choice["segments"] > 1 else ""
        out.add_row(
            f"{row['name']}{segments}{'  <- chosen' if chosen else ''}", f"{row['rounds']:g}",
            _core.human_bytes(row["volume"] * size), _core.human_bytes(row["reduced"] * size),
            human_time(seconds), style="bold" if chosen else "")
    return out


@click.command("explain", epilog=COLLECTIVES)
@click.argument("collective", type=Collective())
@click.option("--size", default="1MiB", show_default=True, type=Size(),
              help="The full message: the vector, or all ranks' pieces together.")
@click.option("--ranks", "-n", default=4, show_default=True, type=Number(1, 1024),
              help="Among how many ranks.")
@click.option("--algorithm", default="", metavar="NAME", help="Ask for this algorithm.")
@click.option("--segments", default=0, type=Number(0, 4096), help="Ask for so many.")
@click.option("--window", default=0, type=Number(0, 1024), help="Ask for this window.")
@click.option("--machine", default="edr-100g", show_default=True,
              help="The machine model for the times; `paceline draw allreduce --machine list` "
              "shows the names.")
def command(collective, size, ranks, algorithm, segments, window, machine):
    """Say which algorithm a call would take, and why.

    The choice depends on nothing but the collective, the size and the number of ranks, so that all
    ranks make the same one. Rounds, bytes and bytes combined are those of the longest path,
    before pipelining; the time is simulated with the schedule that would run.
    """
    out = console()
    choice = _core.choose(collective, ranks, size, algorithm, segments, window)
    pipeline = ""
    if choice["segments"] > 1:
        pipeline = f", {choice['segments']} segments, {choice['window']} at a time"
    out.print(
        f"{collective} of {_core.human_bytes(size)} on {ranks} ranks: "
        f"[bold]{escape(choice['algorithm'])}[/]{pipeline} - {escape(choice['why'])}\n",
        soft_wrap=True)
    out.print(table(collective, ranks, size, machine, choice))
    return 0
