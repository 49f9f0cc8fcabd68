"""A rank whose number 1 has not the launcher's secret; what init() says. Argument: its own."""

import os
import sys

rank = os.environ["RANK"]
if rank == "1":
    os.environ["PACELINE_SECRET"] = sys.argv[1]

import paceline  # noqa: E402

try:
    paceline.init()
    print(f"rank {rank}: nothing was raised")
except paceline.RefusalError as error:
    print(f"rank {rank}: {error}")
