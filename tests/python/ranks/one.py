"""Runs the code in its first argument on a process that is alone; prints what it raises."""

import os
import sys

for name in ("PACELINE_RANK", "PACELINE_RANKS", "PACELINE_STORE", "RANK", "WORLD_SIZE"):
    os.environ.pop(name, None)

import paceline  # noqa: E402

try:
    exec(sys.argv[1])
except paceline.Error as error:
    print(f"{type(error).__name__}: {error}")
