"""Builds idle.c, beside this file, which lets waiting ranks rest."""

import shutil
import subprocess
from pathlib import Path

from lab.plan import LabError

SOURCE = Path(__file__).with_name("idle.c")
LIBRARY = "idle.so"
ALONE_US, TOGETHER_US = 300, 50  # ranks of one node do not come by the sockets that wake


def nap_us(ppn):
    return ALONE_US if ppn == 1 else TOGETHER_US


def about(ppn):
    return ("a thread that looks in vain at sockets 4 times waits for them in every further look, "
            f"for at most {nap_us(ppn)} us")


def environment(folder, ppn):
    """The environment of ranks that rest."""
    return {"LD_PRELOAD": str(Path(folder) / LIBRARY), "IDLE_NAP_NS": str(1000 * nap_us(ppn))}


def build(folder):
    """Compiles it into a folder."""
    if not shutil.which("cc"):
        raise LabError("there is no C compiler; on Debian or Ubuntu: apt-get install gcc")
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(folder / LIBRARY), str(SOURCE)]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:
        raise LabError(f"{' '.join(command)}: {found.stderr.strip()}")
