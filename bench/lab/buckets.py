"""Steps of several allreduces under way together, one rank always behind the others.

    ./dev lab up 4 --rate 200mbit
    ./dev lab run --mpi mpich5 .venv/bin/python bench/lab/buckets.py --every 0.15 --late 0.2

Every rank starts its buckets at intervals of --every and waits for all of them; the last rank of
the world starts each --late later. Prints the time of every step, from the latest begin of any
rank to the latest end: PACELINE_PREDICT=nodes learns the late rank after some steps.
"""

import time

import click
import numpy as np

import paceline
from paceline.cli.common import Size


def step(world, buckets, every_s, late_s):
    """Seconds of one step, equal on all ranks."""
    world.barrier()
    begin = time.monotonic()
    requests = []
    for number, bucket in enumerate(buckets):
        due = begin + number * every_s + (late_s if world.rank == world.size - 1 else 0)
        time.sleep(max(0, due - time.monotonic()))
        requests.append(world.iallreduce(bucket))
    for request in requests:
        request.wait()
    ends = np.empty(2 * world.size)
    world.allgather(np.array([begin, time.monotonic()]), ends)
    return max(ends[1::2]) - max(ends[0::2])


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--buckets", default=4, show_default=True)
@click.option("--size", default="5MiB", show_default=True, type=Size())
@click.option("--every", default=0.15, show_default=True, help="Seconds from one to the next.")
@click.option("--late", default=0.2, show_default=True, help="Seconds.")
@click.option("--steps", default=60, show_default=True)
def main(buckets, size, every, late, steps):
    """Print the seconds of every step."""
    world = paceline.init()
    arrays = [np.ones(size // 4, dtype="float32") for _ in range(buckets)]
    took = [step(world, arrays, every, late) for _ in range(steps)]
    if world.rank == 0:
        click.echo(" ".join(f"{seconds:.2f}" for seconds in took))


if __name__ == "__main__":
    main()
