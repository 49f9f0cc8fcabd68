"""Time Python adds to a short allreduce: paceline run -n 2 -- python bench/node/python_calls.py

Two ranks, one to a core, make the same call in a row from the core with no Python between, through
a persistent plan and through Communicator.allreduce, or with --torch through torch.distributed's
all_reduce; in turn, ROUNDS times CALLS each. The time of a call is rank 0's time for CALLS of them
divided by CALLS; the time that Python adds is the difference to the core in the same round.
"""

import os
import statistics
import tempfile
import time
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import paceline
from paceline import _core
from paceline_bench import _native
from paceline_bench.measure.meeting import Meeting, size_of

SIZES = [8, 1024, 4096]
ROUNDS, CALLS = 31, 1000


def meeting_of(world):
    """A Meeting in a file that rank 0 makes, and removes once all ranks have mapped it."""
    name = np.zeros(256, np.uint8)
    if world.rank == 0:
        file, path = tempfile.mkstemp(dir="/dev/shm")
        os.ftruncate(file, size_of(world.size))
        os.close(file)
        name[: len(path)] = np.frombuffer(path.encode(), np.uint8)
    world.broadcast(name)
    path = name.tobytes().rstrip(b"\0").decode()
    meeting = Meeting(path, world.rank, world.size)
    world.barrier()
    if world.rank == 0:
        Path(path).unlink()
    return meeting


def looped(call):
    """us per call of CALLS in a row, from Python."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS * 1e6


def ways_of(world, nbytes, meeting, with_torch):
    """By name: a function that makes CALLS calls, and returns us per call."""
    x = np.zeros(nbytes // 4, np.float32)
    native = _native.timed(_core.native_call(world._core, "allreduce", x, x, "sum", 0, None))
    plan = world.plan("allreduce", x)

    def through_plan():
        plan.start()
        plan.wait()

    core = {"core": lambda: _native.alternate(meeting.line, [native], 0, 1, [CALLS])[0][0] * 1e6}
    if with_torch:
        import torch

        t = torch.zeros(nbytes // 4)
        return core | {"torch": lambda: looped(lambda: torch.distributed.all_reduce(t))}
    return core | {"plan": lambda: looped(through_plan),
                   "plain call": lambda: looped(lambda: world.allreduce(x))}


def started(with_torch):
    """The world; with torch that of its backend, so that all calls are made in one world."""
    if with_torch:
        import torch

        torch.set_num_threads(1)
        torch.distributed.init_process_group("paceline")
    return paceline.init()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--torch", "with_torch", is_flag=True, help="Through torch.distributed.")
def main(with_torch):
    """Print the time that Python adds to a short allreduce, between two ranks."""
    world = started(with_torch)
    if world.size <= os.cpu_count():
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[world.rank]})
    meeting = meeting_of(world)
    table = Table("bytes", "way", "us", "more than the core, us",
                  title=f"allreduce, {world.size} ranks, {ROUNDS} times {CALLS} calls")
    for nbytes in SIZES:
        ways = ways_of(world, nbytes, meeting, with_torch)
        found = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                world.barrier()
                found[name].append(way())
        for name, times in found.items():
            more = statistics.median(t - core for t, core in zip(times, found["core"], strict=True))
            table.add_row(f"{nbytes}", name, f"{statistics.median(times):.2f}", f"{more:.2f}")
    if world.rank == 0:
        Console().print(table)


if __name__ == "__main__":
    main()
