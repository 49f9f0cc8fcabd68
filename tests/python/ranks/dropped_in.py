"""One rank of mpi4py under the drop-in library: its first collectives, and how long one takes."""

import sys
import time

import numpy as np
from mpi4py import MPI


def main():
    comm = MPI.COMM_WORLD
    mine = np.arange(100_000, dtype="float32") % 1000 + comm.rank
    whole = np.empty_like(mine)
    comm.alltoall([None] * comm.size)  # the host's: its own connections
    begun_s = time.perf_counter()
    comm.Allreduce(mine, whole)
    first_s = time.perf_counter() - begun_s
    expected = comm.size * (np.arange(100_000) % 1000) + comm.size * (comm.size - 1) / 2
    for root in range(comm.size):
        comm.Bcast(whole, root)
    right = bool((whole == expected).all())
    sys.stdout.write(f"rank {comm.rank}: {'right' if right else 'wrong'}, first {first_s:.3f} s\n")


if __name__ == "__main__":
    main()
