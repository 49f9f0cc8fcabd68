"""One rank on a node of the lab: where it is, and an allreduce of ours and of the MPI."""

import json
import os
import socket

import numpy as np

import paceline
from paceline import mpi
from paceline_bench.measure.variants import OfMpi


def main():
    comm = paceline.init()
    rank, ranks = comm.rank, comm.size
    whole = np.arange(100_000, dtype="float32") % 1000 * ranks
    x = np.arange(100_000, dtype="float32") % 1000
    ours, hosts = comm.allreduce(x.copy()), np.empty_like(x)
    OfMpi(*mpi.load()).allreduce(x, hosts)
    print(json.dumps({
        "rank": rank, "ranks": ranks, "node": socket.gethostname(), "process": os.getpid(),
        "ours": bool((ours == whole).all()), "hosts": bool((hosts == whole).all()),
    }), flush=True)  # fmt: skip
    comm.barrier()


if __name__ == "__main__":
    main()
