"""One rank on a node of the lab: where it is, and an allreduce of ours and of the MPI."""

import json
import os
import socket

import numpy as np

import paceline
from paceline import mpi


def main():
    comm = paceline.init()
    rank, ranks = comm.rank, comm.size
    whole = np.arange(100_000, dtype="float32") % 1000 * ranks
    x = np.arange(100_000, dtype="float32") % 1000
    ours, hosts = comm.allreduce(x.copy()), np.empty_like(x)
    mpi.load()[0].world().run("allreduce", x, hosts, "sum", 0)
    print(json.dumps({
        "rank": rank, "ranks": ranks, "node": socket.gethostname(), "process": os.getpid(),
        "ours": bool((ours == whole).all()), "hosts": bool((hosts == whole).all()),
    }), flush=True)  # fmt: skip
    comm.barrier()


if __name__ == "__main__":
    main()
