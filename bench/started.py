"""Time of a call that is started and waited for, beside one that blocks.

paceline run -n 2 python bench/started.py
"""

import statistics
import time

import numpy
import paceline

SIZES = (8, 1 << 10, 16 << 10, 64 << 10)  # bytes
ROUNDS, CALLS = 15, 200


def main():
    comm = paceline.init()

    def median_us(call):
        seconds = []
        for _ in range(ROUNDS):
            comm.barrier()
            begun = time.perf_counter()
            for _ in range(CALLS):
                call()
            seconds.append((time.perf_counter() - begun) / CALLS)
        return 1e6 * statistics.median(seconds)

    for size in SIZES:
        mine = numpy.ones(size // 4, dtype="float32")
        out = numpy.empty_like(mine)
        started = median_us(lambda mine=mine, out=out: comm.iallreduce(mine, out).wait())
        blocking = median_us(lambda mine=mine, out=out: comm.allreduce(mine, out))
        if comm.rank == 0:
            print(f"{size:6d} B  started {started:6.2f} us  blocking {blocking:6.2f} us")


main()
