"""Tells if other programs keep this machine busy."""

import os
import time
from pathlib import Path

ENOUGH = 0.2  # of a core


class Watch:
    """Counts the time that other programs compute from now on."""

    def __init__(self):
        self.start = _counted()

    def cores(self):
        """The mean number of cores that other programs used: all but this program and its ended
        children. 0 if /proc/stat cannot be read."""
        passed_s, all_s, own_s = (b - a for a, b in zip(self.start, _counted(), strict=True))
        return max(0.0, all_s - own_s) / passed_s


def leaves_too_little(cores, ranks):
    """True if `ranks` ranks lack cores while other programs use `cores` cores."""
    return cores > ENOUGH and cores + ranks > os.cpu_count() + ENOUGH


def _counted():
    """Seconds on the clock, of all processors, and of this program with its children. On a virtual
    machine stolen time counts as spent."""
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
        user, nice, system, _, _, interrupts, soft, stolen = map(int, words)
    except (OSError, ValueError):
        user = nice = system = interrupts = soft = stolen = 0
    all_s = (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")
    return time.monotonic(), all_s, sum(os.times()[:4])
