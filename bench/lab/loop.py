"""A loop of allreduces to which the same rank comes late, from its first call on.

    ./dev lab up 8 --rate 200mbit
    ./dev lab run --mpi mpich5 .venv/bin/python bench/lab/loop.py --late 1

Prints for every call the time from the last rank's entry until the last rank's exit, in times of
what the message takes by --rate, and the first calls that named ranks; then the means of all calls
and of the last 20. PACELINE_PREDICT=off names none. With --gloo torch's all_reduce over gloo is
timed instead.
"""

import re
import socket
import time
from pathlib import Path

import click
import numpy as np

import paceline
from paceline.cli.common import Size


def gloo_of(world):
    """An allreduce of an array over gloo, whose ranks meet in a file."""
    import torch
    from paceline_bench.train.libraries import start_gloo

    file = Path("build/loop.gloo").resolve()
    if world.rank == 0:
        file.unlink(missing_ok=True)
    world.barrier()
    interface = next(name for _, name in socket.if_nameindex() if name != "lo")
    group = start_gloo(file, world.rank, world.size, interface)
    return lambda data: torch.distributed.all_reduce(torch.from_numpy(data), group=group)


def call(world, allreduce, data, late_s):
    """Seconds of one call after its last entry, and the ranks that it named late."""
    said = world.explain("allreduce", data) if allreduce == world.allreduce else ""
    world.barrier()
    if world.rank == world.size - 1:
        time.sleep(late_s)
    entered = time.monotonic()
    allreduce(data)
    times = np.empty(2 * world.size)
    world.allgather(np.array([entered, time.monotonic()]), times)
    named = re.search(r"taken for late: ([\d, ]+)", said)
    return max(times[1::2]) - max(times[0::2]), named[1].rstrip(", ") if named else ""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", default="4MiB", show_default=True, type=Size())
@click.option("--rate", default=200.0, show_default=True, help="Mbit/s of a node.")
@click.option("--late", default=1.0, show_default=True, help="By so many times of the message.")
@click.option("--calls", default=40, show_default=True)
@click.option("--gloo", is_flag=True)
def main(size, rate, late, calls, gloo):
    """Print what every call took."""
    world = paceline.init()
    message_s = size / (rate * 1e6 / 8)
    data = np.ones(size // 4, dtype="float32")
    allreduce = gloo_of(world) if gloo else world.allreduce
    took, named = zip(*(call(world, allreduce, data, late * message_s) for _ in range(calls)),
                      strict=True)
    if world.rank:
        return
    took = [seconds / message_s for seconds in took]
    click.echo(" ".join(f"{times:.2f}" for times in took))
    first = next((number for number, ranks in enumerate(named, 1) if ranks), None)
    click.echo(f"call {first} names {named[first - 1]}" if first else "no call names a rank")
    click.echo(f"all calls {np.mean(took):.3f}, the last 20 {np.mean(took[-20:]):.3f}")


if __name__ == "__main__":
    main()
