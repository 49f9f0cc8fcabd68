"""Runs a script, in a time namespace on one rank: rank, how many seconds its clock is ahead, and
the script with its arguments."""

import os
import sys

rank, ahead_s, *words = sys.argv[1:]
command = [sys.executable, *words]
if os.environ["PACELINE_RANK"] == rank:
    command = ["unshare", "--time", "--monotonic", ahead_s, "--boottime", ahead_s, *command]
os.execvp(command[0], command)
