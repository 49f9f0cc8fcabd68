"""Checks that ranks fit into this machine's memory, before they start."""

from pathlib import Path

from paceline.errors import UsageError

INFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # of a container: its limit and use


def available():
    """Bytes that can be had without swapping; None if the system does not say."""
    found = []
    try:
        for line in INFO.read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) << 10)
    except (OSError, ValueError):
        pass
    try:
        limit, used = ((GROUP / name).read_text(encoding="utf-8").strip()
                       for name in ("memory.max", "memory.current"))
        left = int(limit) - int(used)  # "max" is no number
        for line in (GROUP / "memory.stat").read_text(encoding="utf-8").splitlines():
            if line.startswith("inactive_file "):  # the page cache is freed when memory is needed
                left += int(line.split()[1])
        found.append(left)
    except (OSError, ValueError):
        pass
    return min(found, default=None)


def check(name, ranks, images, each):
    """Raises UsageError if `ranks` ranks, of `each` bytes at least, do not fit."""
    there = available()
    if there is not None and ranks * each > there:
        raise UsageError(
            f"train: {ranks} ranks of {name} with {images} pictures a step take "
            f"{ranks * each / 1e9:.1f} GB at least, and {max(there, 0) / 1e9:.1f} GB of memory are "
            "available; take fewer --ranks, a smaller --batch or --side, or another --model.")
