"""`paceline draw`: the space-time picture of a collective, simulated or measured."""

import re

import click
from rich.markup import escape

from paceline import _core, draw, trace, traffic
from paceline.cli.common import (
    COLLECTIVES, Collective, Number, Ranks, Segments, Size, console, file_option, knob_options,
)
from paceline.schedules import how, unit_count

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "": 1.0}
WIDTH_PX = 1000


class Arrivals(click.ParamType):
    """Times at which ranks enter: 0,0,0,1ms for all ranks, or 3=1ms for late ones only."""

    name = "times"

    def convert(self, value, parameter, context):
        """{rank: seconds}"""
        if not isinstance(value, str):
            return value
        arrivals = {}
        for place, part in enumerate(value.split(",")):
            found = re.fullmatch(r"(?:(\d+)=)?(\d+(?:\.\d+)?)(s|ms|us|)", part.strip())
            if not found:
                self.fail(f"'{part}' is no arrival; write 1ms, 500us or 0.2s for each rank in "
                          "turn, or 3=1ms for rank 3 alone.", parameter, context)
            rank = place if found.group(1) is None else int(found.group(1))
            arrivals[rank] = float(found.group(2)) * SECONDS[found.group(3)]
        return arrivals


def arrival_list(arrivals, ranks):
    """Seconds by rank; ranks that are not named enter at 0."""
    beyond = [rank for rank in arrivals if rank >= ranks]
    if beyond:
        raise click.UsageError(f"--arrivals names rank {beyond[0]}; there are {ranks} ranks.")
    return [arrivals.get(rank, 0.0) for rank in range(ranks)]


def simulated(world, size, machine, arrivals):
    """The trace under a machine model; `size` is the full message."""
    count = unit_count(world.collective, world.ranks, size)
    return trace.from_core(world.simulate(count, 4, machine, arrivals))


def save(picture, svg, json, summary):
    """Writes the files that the options name; returns their names."""
    written = []
    if svg:
        svg.write_text(draw.to_svg(picture, WIDTH_PX, summary), encoding="utf-8")
        written.append(svg)
    if json:
        json.write_text(trace.to_json(picture) + "\n", encoding="utf-8")
        written.append(json)
    return written


@click.command("draw", epilog=COLLECTIVES)
@click.argument("collective", type=Collective())
@click.option("--algorithm", metavar="NAME",
              help="Algorithm of the collective. [default: the one that a call would take]")
@click.option("--ranks", "-n", default=4, show_default=True, type=Number(1, 4096),
              help="Number of ranks.")
@click.option("--root", default=0, show_default=True, type=Number(0),
              help="Root of broadcast, reduce, gather and scatter.")
@click.option("--size", default="1MiB", show_default=True, type=Size(),
              help="Size of the full message: the vector, or all ranks' pieces together.")
@click.option("--segments", default=0, type=Segments(),
              help="Number of pipeline segments of the message, or the size of one: 4MiB. "
              "[default: as a call would take]")
@click.option("--window", default=0, type=Number(0, 1024),
              help="Number of segments under way at a time. [default: as a call would take]")
@knob_options
@click.option("--machine", default="edr-100g", show_default=True,
              help="Machine model: a name, or settings such as "
              "alpha_us=5,gbit_per_s=10,ranks_per_node=2; --machine list shows the names.")
@click.option("--arrivals", type=Arrivals(), default="0",
              help="Times at which ranks enter: 3=1ms for rank 3 alone, or one time for each rank.")
@click.option("--late", type=Ranks(), default=(), metavar="RANKS",
              help="Ranks that the call predicts to be late, the latest one last: 2,5.")
@click.option("--in-place", is_flag=True, help="Use one buffer for input and output.")
@click.option("--measured", is_flag=True,
              help="Run the collective on this machine, and draw the measured times.")
@file_option("--svg", help="Write the picture to this file.")
@file_option("--json", help="Write the events to this file.")
def command(collective, algorithm, ranks, root, size, segments, window, radix, blocks, machine,
            arrivals, late, in_place, measured, svg, json):
    """Draw what each rank does in a collective, over time.

    Time runs to the right. Every rank has a lane, which shows what it sends, computes and receives.
    The schedule is the one that the library executes. A machine model gives the times; with
    --measured they are measured on this machine.

    If the ranks share memory and send nothing, a lane shows copies into the rank's staging buffer,
    sums, copies out, and signals and waits. A table below the picture then shows how each rank
    spends its time, with the bytes that its steps read and write. A measured picture has this
    table, too.

    \b
    paceline draw allreduce --algorithm ring --ranks 4 --segments 4
    paceline draw broadcast --algorithm chain --segments 8 --svg chain.svg
    paceline draw allreduce --ranks 8 --arrivals 7=2ms --machine ethernet-10g
    paceline draw allreduce --algorithm tail_direct -n 8 --arrivals 7=5ms --late 7
    paceline draw allreduce --ranks 2 --size 64MiB --measured --svg measured.svg
    """
    out = console()
    if machine == "list":
        for name, text in _core.machines():
            out.print(escape(text), soft_wrap=True)
        return 0
    if root >= ranks:
        raise click.UsageError(f"--root is {root}; with {ranks} ranks it is 0 to {ranks - 1}.")
    if measured and late:
        raise click.UsageError("--late goes with simulated pictures; a measured call predicts late "
                               "ranks itself.")
    here = {} if measured else {"machine": machine}
    choice = _core.choose(
        collective, ranks, size, algorithm or "", segments, window, radix, blocks,
        late=() if algorithm else late, **here)   # one that is named is drawn in any numbers
    if measured:   # what is recorded has the buffers of the benchmark
        from paceline.trial import IN_PLACE, record

        in_place = collective in IN_PLACE
    times = arrival_list(arrivals, ranks)
    world = _core.World(
        collective, choice["algorithm"], ranks, root=root, in_place=in_place, fused=True,
        arrivals=times, late=late, **how(choice))
    picture = record(world, size, times) if measured else simulated(world, size, machine, times)
    picture = traffic.labelled(picture, world, unit_count(collective, ranks, size))
    summary = measured or world.is_load_store
    out.print(draw.to_terminal(picture, out.width, summary), soft_wrap=True)
    for name in save(picture, svg, json, summary):
        out.print(f"Wrote {escape(str(name))}", soft_wrap=True)
    return 0

