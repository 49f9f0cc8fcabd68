"""Time of an allreduce in place by where in a line its array begins: large arrays of malloc and
numpy begin 16 bytes behind a page.

paceline run -n 2 python bench/unaligned.py
"""

import mmap
import statistics
import time

import numpy
import paceline

SIZES = (64 << 10, 1 << 20, 16 << 20)  # bytes
BEHIND = (0, 16, 32)  # bytes behind a page
ROUNDS, BYTES = 15, 8 << 20  # in a round so many are summed


def main():
    comm = paceline.init()
    for size in SIZES:
        memory = numpy.frombuffer(mmap.mmap(-1, size + mmap.PAGESIZE), dtype=numpy.uint8)
        arrays = {at: memory[at:at + size].view(numpy.float32) for at in BEHIND}
        calls, seconds = max(3, BYTES // size), {at: [] for at in BEHIND}
        for _ in range(ROUNDS):
            for at, array in arrays.items():
                comm.allreduce(array)
                begun = time.perf_counter()
                for _ in range(calls):
                    comm.allreduce(array)
                seconds[at].append((time.perf_counter() - begun) / calls)
        if comm.rank == 0:
            print(f"{size:9d} B " + "".join(
                f"  {at} bytes behind {1e6 * statistics.median(seconds[at]):7.1f} us"
                for at in BEHIND))


main()
