"""Provenance of stored numbers: machine, date, command and versions."""

import os
import platform
import shlex
import sys
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from paceline import _core

TORCH = "2.12", "2.15"  # oldest and newest minor with which the backend was tested


def processor():
    """The processor's name as the system knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def memory_bytes():
    """Memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def version_of(package):
    """An installed version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def minor(version: str) -> tuple[int, ...]:
    """2.15.0+cu132 -> (2, 15); (): another form."""
    words = version.split(".")[:2]
    return tuple(map(int, words)) if all(word.isdigit() for word in words) else ()


def machine():
    """Facts about the machine. `load_before` is the load that other programs made."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "system": f"{platform.system()} {platform.release()}",
        "kernels": _core.kernel_targets()[-1],
        "load_before": os.getloadavg()[0],
    }


def describe_machine():
    """The same in a line."""
    about = machine()
    size = _core.human_bytes(about["memory_bytes"])
    return f"{about['processor']}, {about['cores_allowed']} of {about['cores']} cores, {size}"


def provenance(mpi=None):
    """Machine, date, command and versions, for the head of a JSON file; `mpi`: a dict about it."""
    packages = ("paceline", "numpy", "torch")
    return {
        "machine": machine(),
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": shlex.join(["paceline", *sys.argv[1:]]),
        **({"mpi": mpi} if mpi else {}),
        "versions": {"python": platform.python_version(),
                     **{name: version_of(name) for name in packages}},
    }
