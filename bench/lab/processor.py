"""What an allreduce between nodes costs their processors, ours and the MPI's own by turns.

    ./dev lab up 4 --rate 1gbit
    ./dev lab run --mpi mpich5 .venv/bin/python bench/lab/processor.py --segments 1,8,256

Seconds of a call, and what it took meanwhile: of all ranks, and of the machine that the nodes
share, with what its network does. Where a call takes longer than the links ask and the machine is
hardly idle, its processors are the limit. The first of the rounds is not shown.
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

TICKS = 100  # of /proc/stat in a second


def of_machine():
    """Seconds of processors since it started: of programs, of the system, of interrupts, idle."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split()[1:9]]
    user, nice, system, idle, waiting, hard, soft, _ = fields
    return np.array([user + nice, system, hard + soft, idle + waiting]) / TICKS


def of_rank():
    """Seconds of processors of this process: of the program, of the system."""
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
    """A line."""
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
    """Print what an allreduce takes."""
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
