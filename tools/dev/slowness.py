"""Measures how slow this machine is now: the factor for the time limits of tests and phases.

It is the time of a fixed start over its time on two idle cores, and never less than 1.
"""

import os
import time

from dev.process import VENV, run

VARIABLE = "TESTS_SLOWNESS"  # the tests read it
STARTS = 3
USUAL_S = 1.2  # of all of them, by ./dev test on a virtual machine of two idle cores (Intel Xeon)
PROGRAM = "import numpy, paceline; paceline.init().barrier()"


def factor():
    return float(os.environ.get(VARIABLE, 1))


def measure():
    """Sets the number for this process and for those that it starts; the line that says so."""
    command = [VENV / "bin/paceline", "run", "-n", 2, "--", VENV / "bin/python", "-c", PROGRAM]
    run(command, timeout_s=300)  # which compiles modules, once
    begun = time.monotonic()
    for _ in range(STARTS):
        run(command, timeout_s=300)
    took_s = time.monotonic() - begun
    os.environ[VARIABLE] = f"{max(1, took_s / USUAL_S):.2f}"
    return f"{STARTS} starts took {took_s:.1f} s: limits are multiplied by {factor():g}"
