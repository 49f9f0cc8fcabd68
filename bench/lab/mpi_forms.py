"""An MPI's own allreduce in its forms, and its messages in both orders of posting, by mpi4py.

    ./dev lab up 8 --rate 250mbit
    ./dev lab run --mpi openmpi5 .venv/bin/python bench/lab/mpi_forms.py

Prints the seconds of an allreduce: blocking and not, in place and not, in four parts. Then two
patterns, ranks in pairs and around a ring, in rounds of a send and a receive: the fraction of the
links' rate if all ranks post the receive first, and if all post the send first. All times are the
slowest rank's, of each rank's best of three runs.
"""

import time

import click
import numpy as np

from paceline.cli.common import Size
from paceline_bench.train.libraries import Parts, start_mpi

RUNS = 3


def best_s(mpi, function):
    """Seconds that the slowest rank takes at its best."""
    took = []
    for _ in range(RUNS):
        mpi.COMM_WORLD.Barrier()
        begin = time.monotonic()
        function()
        took.append(time.monotonic() - begin)
    return mpi.COMM_WORLD.allreduce(min(took), op=mpi.MAX)


def forms(mpi, nbytes):
    """(name, seconds) of each form of an allreduce."""
    world, output = mpi.COMM_WORLD, np.zeros(nbytes // 4, dtype="float32")
    given = np.zeros_like(output)

    def parts(*inputs):
        mpi.Request.Waitall([world.Iallreduce(*pair) for pair in zip(
            *inputs, np.array_split(output, Parts.PARTS), strict=True)])

    for where, source in (("in place", mpi.IN_PLACE), ("not in place", given)):
        pieces = (Parts.PARTS * [source] if source is mpi.IN_PLACE else
                  np.array_split(source, Parts.PARTS))
        for name, function in (
            ("blocking", lambda: world.Allreduce(source, output)),
            ("non-blocking", lambda: world.Iallreduce(source, output).Wait()),
            (f"in {Parts.PARTS} parts", lambda: parts(pieces)),
        ):
            yield f"{name}, {where}", best_s(mpi, function)


def rounds(mpi, peers_of, nbytes, times, sends_first):
    """A function that goes through `times` rounds."""
    world = mpi.COMM_WORLD
    given, taken = np.zeros(nbytes, dtype="uint8"), np.zeros(nbytes, dtype="uint8")

    def go():
        for number in range(times):
            to, source = peers_of(number)
            posts = [lambda: world.Isend(given, to), lambda: world.Irecv(taken, source)]
            mpi.Request.Waitall([post() for post in (posts if sends_first else posts[::-1])])

    return go


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", default="8MiB", show_default=True, type=Size(),
              help="Size of the allreduce.")
@click.option("--messages", default="60KiB,128KiB,512KiB,2MiB", show_default=True)
@click.option("--mbit", default=250, show_default=True, help="Rate of a link, in Mbit/s.")
def main(size, messages, mbit):
    """Print a line for each form, and for each pattern and length of messages."""
    mpi = start_mpi()
    rank, ranks = mpi.COMM_WORLD.rank, mpi.COMM_WORLD.size
    if ranks & (ranks - 1):
        raise click.UsageError(f"{ranks} ranks cannot all be in pairs: start a power of two.")
    distances = [1 << power for power in range(ranks.bit_length() - 1)] or [0]
    patterns = {
        "pairs": lambda number: [rank ^ distances[number % len(distances)]] * 2,
        "ring": lambda number: ((rank + 1) % ranks, (rank - 1) % ranks)}
    for name, seconds in forms(mpi, size):
        if not rank:
            click.echo(f"{name}: {seconds:.3f} s")
    for pattern, peers_of in patterns.items():
        for length in messages.split(","):
            nbytes = Size().convert(length, None, None)
            times = max(3 * len(distances), (12 << 20) // nbytes // 2)
            found = []
            for sends_first in (False, True):
                seconds = best_s(mpi, rounds(mpi, peers_of, nbytes, times, sends_first))
                found.append(times * nbytes / (mbit * 125_000) / seconds)
            if not rank:
                click.echo("{}, {}: receive first {:.2f}, send first {:.2f}".format(
                    pattern, length, *found))


if __name__ == "__main__":
    main()
