"""A rank of which number 1 has another transport; what init() says to it. Argument: the channel."""

import os
import sys

channel = sys.argv[1]
if channel == "torchrun":  # its store, and nothing of `paceline run`
    for name in ("PACELINE_RANK", "PACELINE_RANKS", "PACELINE_STORE"):
        del os.environ[name]
NAMES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
rank = next(os.environ[name] for name in NAMES if name in os.environ)
if rank == "1":
    os.environ["PACELINE_TRANSPORT"] = "mpi"

import paceline  # noqa: E402
from paceline import mpi  # noqa: E402

try:
    paceline.init()
    print(f"rank {rank}: nothing was raised")
except paceline.UsageError as error:
    print(f"rank {rank}: {error}")
mpi.finalize()  # else a launcher of MPI ends the other rank before it has said anything
