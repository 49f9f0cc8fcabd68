"""Time of an urgent call beside a long one: paceline run -n 2 -- python bench/node/urgent.py

Every rank starts an allreduce of 64 MiB and, 2 ms later, one of 8 KiB that is more urgent, ROUNDS
times; then a blocking one of 16 bytes, CALLS times in a row. Rank 0 prints medians, and the longest
wait.
"""

import statistics
import time

import numpy as np

import paceline

ROUNDS, SERIES, CALLS = 50, 100, 200


def urgent(world):
    """Seconds that the urgent call took, and the long one, of each round."""
    long, short = np.ones(1 << 24, np.float32), np.ones(1 << 11, np.float32)
    found = []
    for _ in range(ROUNDS):
        world.barrier()
        begun_s = time.perf_counter()
        request = world.iallreduce(long, out=long, op="max")
        time.sleep(0.002)
        started_s = time.perf_counter()
        world.iallreduce(short, out=short, op="max", priority=5).wait()
        short_s = time.perf_counter() - started_s
        request.wait()
        found.append((short_s, time.perf_counter() - begun_s))
    return zip(*found, strict=True)


def blocking(world):
    """Seconds of a call of 16 bytes, in each series."""
    x, found = np.ones(2), []
    for _ in range(SERIES):
        world.barrier()
        begun_s = time.perf_counter()
        for _ in range(CALLS):
            world.allreduce(x, out=x, op="max")
        found.append((time.perf_counter() - begun_s) / CALLS)
    return found


def main():
    world = paceline.init()
    (short, long), calls = urgent(world), blocking(world)
    if world.rank == 0:
        print(f"urgent {1e3 * statistics.median(short):.2f} ms, at most {1e3 * max(short):.2f}; "
              f"the long one {1e3 * statistics.median(long):.1f} ms; "
              f"16 bytes {1e6 * statistics.median(calls):.3f} us")


if __name__ == "__main__":
    main()
