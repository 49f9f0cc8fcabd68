"""Speed of single copies by the kernel: paceline run -n 2 bench/node/single_copy.py

Cross-memory attach reads and writes another process's memory without its help, a system call and a
walk over its pages each time. Two ranks run collectives with it and through staging
buffers in turn, with inputs written anew before each call. Times are the slower rank's. With it:

    allreduce  each sums its half, from strips read into 256 KiB of its own; reads the other half
    broadcast  the root writes one half into the peer while the peer reads the other
    allgather  each reads the other's part
"""

import ctypes
import os
import time

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import paceline

STRIP = 256 << 10
SIZES = [256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20]
libc = ctypes.CDLL(None, use_errno=True)


class Piece(ctypes.Structure):
    """struct iovec"""

    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Peer:
    """The memory of the other process, with offsets from the start of its array."""

    def __init__(self, world, mine):
        others = np.empty((2, 2), np.uint64)
        world.allgather(np.array([os.getpid(), mine.ctypes.data], np.uint64), others)
        self.pid, self.base = (int(x) for x in others[1 - world.rank])

    def _move(self, call, array, offset):
        own = Piece(array.ctypes.data, array.nbytes)
        theirs = Piece(self.base + offset, array.nbytes)
        moved = call(self.pid, ctypes.byref(own), 1, ctypes.byref(theirs), 1, 0)
        if moved != array.nbytes:
            raise OSError(ctypes.get_errno(), f"{moved} of {array.nbytes} bytes moved")

    def read(self, array, offset):
        self._move(libc.process_vm_readv, array, offset)

    def write(self, array, offset):
        self._move(libc.process_vm_writev, array, offset)


def attached(world, name, x, out):
    """The collective by cross-memory attach, with x as its input (and output of allreduce)."""
    peer, half, rank = Peer(world, x), x.nbytes // 2, world.rank
    halves = x[: x.size // 2], x[x.size // 2 :]
    strip = np.empty(STRIP // x.itemsize, x.dtype)

    def allreduce():
        world.barrier()
        mine = halves[rank]
        for at in range(0, mine.size, strip.size):
            part = mine[at : at + strip.size]
            peer.read(strip[: part.size], rank * half + at * x.itemsize)
            part += strip[: part.size]
        world.barrier()
        peer.read(halves[1 - rank], (1 - rank) * half)
        world.barrier()

    def broadcast():
        world.barrier()
        (peer.write if rank == 0 else peer.read)(halves[rank], rank * half)
        world.barrier()

    def allgather():
        world.barrier()
        out[rank * x.size // 2 :][: x.size // 2] = halves[0]
        peer.read(out[(1 - rank) * x.size // 2 :][: x.size // 2], 0)
        world.barrier()

    return {"allreduce": allreduce, "broadcast": broadcast, "allgather": allgather}[name]


def through_stages(world, name, x, out):
    """The same by Paceline."""
    if name == "allreduce":
        return lambda: world.allreduce(x)
    if name == "broadcast":
        return lambda: world.broadcast(x, 0)
    return lambda: world.allgather(x[: x.size // 2], out)


def measure(world, name, nbytes, repeats):
    """(Paceline, attached): medians in seconds of the slower rank."""
    x, out = np.ones(nbytes // 4, np.float32), np.zeros(nbytes // 4, np.float32)
    sides = [build(world, name, x, out) for build in (through_stages, attached)]
    times = np.empty((repeats, 2))
    for repeat in range(repeats):
        for side, action in enumerate(sides):
            np.copyto(x, np.float32(repeat))
            world.barrier()
            begin = time.perf_counter()
            action()
            times[repeat, side] = time.perf_counter() - begin
    world.allreduce(times, op="max")
    return np.median(times[1:], axis=0)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--repeats", default=30, show_default=True)
def main(repeats):
    world = paceline.init()
    if world.size != 2:
        raise click.UsageError(f"{world.size} ranks; this is for 2: paceline run -n 2 ...")
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[world.rank % os.cpu_count()]})
    table = Table("collective", "KiB", "stages us", "attached us", "stages are")
    for name in ("allreduce", "broadcast", "allgather"):
        for nbytes in SIZES:
            ours, theirs = measure(world, name, nbytes, repeats)
            table.add_row(name, str(nbytes >> 10), f"{ours * 1e6:.0f}", f"{theirs * 1e6:.0f}",
                          f"{theirs / ours:.2f} times as fast")
    if world.rank == 0:
        Console().print(table)
    paceline.finalize()


if __name__ == "__main__":
    main()
