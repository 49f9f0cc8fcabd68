"""Processor time of an allreduce between nodes, ours and the MPI's own in turn.

    ./dev lab up 4 --rate 1gbit
    ./dev lab run --mpi mpich5 .venv/bin/python bench/lab/processor.py --segments 1,8,256

Prints the seconds of a call, and the processor seconds meanwhile: of all ranks, and of the machine
that the nodes share, its network included. If a call takes longer than the links need and the
machine is hardly idle, its processors are the limit. The first round is not shown.
"""

import resource
import time
from pathlib import Path

import click
import numpy as np

import paceline
from paceline import mpi
from paceline.cli.common import Size
from paceline_bench.measure.variants import OfMpi

TICKS = 100  # of /proc/stat per second


def of_machine():
    """Processor seconds since the machine started: programs, system, interrupts, idle."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    user, nice, system, idle, waiting, hard, soft, _ = fields
    return np.array([user + nice, system, hard + soft, idle + waiting]) / TICKS


def of_rank():
    """Processor seconds of this process: program, system."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return np.array([used.ru_utime, used.ru_stime])


def measured(world, call, calls):
    """(seconds, of_rank() of all, of_machine()) of a call."""
    call()
    world.barrier()
    begin, rank, machine = time.monotonic(), of_rank(), of_machine()
    for _ in range(calls):
        call()
    mine = np.array([time.monotonic() - begin, *(of_rank() - rank)])
    world.barrier()
    machine = of_machine() - machine
    total = np.empty_like(mine)
    world.allreduce(mine, total)
    return total[0] / world.size / calls, total[1:] / calls, machine / calls


def shown(name, seconds, ranks, machine):
    """The line of output for one way."""
    of_ranks = " + ".join(f"{value:.3f}" for value in ranks)
    parts = zip(("programs", "system", "interrupts", "idle"), machine, strict=True)
    of_all = ", ".join(f"{part} {value:.3f}" for part, value in parts)
    return f"{name:14} {seconds:.4f} s; ranks {of_ranks} s; machine: {of_all} s"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", default="25MiB", show_default=True, type=Size())
@click.option("--segments", default="", help="Numbers of them for ring, such as 1,8,256.")
@click.option("--calls", default=6, show_default=True, help="Calls of each, one after the other.")
@click.option("--rounds", default=4, show_default=True)
def main(size, segments, calls, rounds):
    """Print the time and processor time of an allreduce."""
    world = paceline.init()
    x = np.ones(size // 4, dtype="float32")
    out = np.empty_like(x)
    host = OfMpi(*mpi.load())
    ways = {"chosen": lambda: world.allreduce(x, out)}
    for number in map(int, segments.split(",") if segments else []):
        ways[f"ring x {number}"] = lambda number=number: world.allreduce(
            x, out, algorithm="ring", segments=number)
    ways["the MPI's own"] = lambda: host.allreduce(x, out)
    for number in range(rounds):
        for name, call in ways.items():
            took = measured(world, call, calls)
            if world.rank == 0 and number > 0:
                click.echo(shown(name, *took))


if __name__ == "__main__":
    main()
