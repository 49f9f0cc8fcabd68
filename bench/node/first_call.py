"""Time of a first allreduce, beside later ones: python bench/node/first_call.py

Every size is measured in many jobs of its own: the first call of all, calls in a row (the input
written anew before each), and calls after a pause, such as a training step. Memory that no process
has touched for some milliseconds has left the caches, staging buffers too: so a first call is
compared with both. Times are the slowest rank's.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import paceline

SIZES = "1MiB,2MiB,4MiB,16MiB,64MiB"
HOT, PAUSED = 24, 12   # calls
MAIN = "import sys; from paceline.cli import main; sys.exit(main())"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def bytes_of(words):
    """[bytes] of a list like 64KiB,1MiB."""
    return [int(word[:-3]) * UNITS[word[-3:]] for word in words.split(",")]


def work(nbytes, pause_s):
    """One rank of one job; rank 0 prints the seconds of its calls, the first one first."""
    world = paceline.init()
    if world.size <= os.cpu_count():
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[world.rank]})
    x = np.ones(nbytes // 4, np.float32)
    times = np.zeros(1 + HOT + PAUSED)
    for call in range(times.size):
        if call > HOT:
            time.sleep(pause_s)
        x.fill(call)
        world.barrier()
        begin = time.perf_counter()
        world.allreduce(x)
        times[call] = time.perf_counter() - begin
    world.allreduce(times, op="max")
    if world.rank == 0:
        print(json.dumps(times.tolist()))
    paceline.finalize()


def launch(ranks, nbytes, pause_ms):
    """(first, median of those in a row, median of those after a pause) of one job, in us."""
    found = subprocess.run(
        [sys.executable, "-c", MAIN, "run", "-n", str(ranks), "--", sys.executable,
         __file__, "--sizes", str(nbytes), "--pause-ms", str(pause_ms), "--rank"],
        check=True, capture_output=True, text=True)  # fmt: skip
    times = [1e6 * seconds for seconds in json.loads(found.stdout.splitlines()[-1].split("|")[-1])]
    return times[0], statistics.median(times[1 : HOT + 1]), statistics.median(times[HOT + 1 :])


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--ranks", "-n", default=2, show_default=True, type=int)
@click.option("--sizes", default=SIZES, show_default=True)
@click.option("--launches", default=10, show_default=True, type=int)
@click.option("--pause-ms", default=30.0, show_default=True, type=float)
@click.option("--rank", "is_rank", is_flag=True, hidden=True)
def main(ranks, sizes, launches, pause_ms, is_rank):
    """Time a first allreduce, beside those in a row and those after a pause."""
    if is_rank:
        return work(int(sizes), pause_ms * 1e-3)
    table = Table("size", "first us", "in a row us", "after a pause us", "first / in a row",
                  "first / after a pause", title=f"allreduce, {ranks} ranks, {launches} launches")
    for word, nbytes in zip(sizes.split(","), bytes_of(sizes), strict=True):
        rows = [launch(ranks, nbytes, pause_ms) for _ in range(launches)]
        first, hot, paused = (statistics.median(column) for column in zip(*rows, strict=True))
        to_hot = statistics.median(row[0] / row[1] for row in rows)
        to_paused = statistics.median(row[0] / row[2] for row in rows)
        table.add_row(word, f"{first:,.0f}", f"{hot:,.0f}", f"{paused:,.0f}", f"{to_hot:.2f}",
                      f"{to_paused:.2f}")
    Console().print(table)
    return None


if __name__ == "__main__":
    main()
