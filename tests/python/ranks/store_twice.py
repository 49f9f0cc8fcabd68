"""Joins a world through the folder of its first argument, and says what comes of it. Where the
second one is its rank, it is killed then."""

import os
import signal
import sys

del os.environ["PACELINE_SECRET"]  # as whoever hands in a folder starts them

import paceline  # noqa: E402

try:
    comm = paceline.init(int(os.environ["PACELINE_RANK"]), int(os.environ["PACELINE_RANKS"]),
                         sys.argv[1])  # fmt: skip
    comm.barrier()
    if sys.argv[2:] == [str(comm.rank)]:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier()
    print("fine")
except paceline.RankLost as error:
    print(error)
