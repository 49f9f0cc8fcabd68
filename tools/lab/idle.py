"""Builds what lets waiting ranks rest: idle.c beside this file."""

import shutil
import subprocess
from pathlib import Path

from lab.plan import LabError

SOURCE = Path(__file__).with_name("idle.c")
LIBRARY = "idle.so"
ABOUT = "a thread that looks in vain 4 times sleeps for 50 us, before every further look"


def build(folder):
    """Compiles it into a folder."""
    if not shutil.which("cc"):
        raise LabError("there is no C compiler; on Debian or Ubuntu: apt-get install gcc")
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(folder / LIBRARY), str(SOURCE)]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise LabError(f"{' '.join(command)}: {found.stderr.strip()}")
