"""Describes processes that wait: their commands, and their stacks, by gdb or py-spy if present."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

FRAMES = 14
MOST = 8  # processes whose stacks are asked for
DEBUGGER_S = 15  # for one process


def parents():
    """Process -> its parent, of all that are there now."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            _, _, fields = (folder / "stat").read_text().rpartition(")")
            found[int(folder.name)] = int(fields.split()[1])
        except OSError:  # it has ended
            continue
    return found


def tree(root):
    """`root` and all that it has started and that still knows its parent, parents first."""
    children = {}
    for process, parent in parents().items():
        children.setdefault(parent, []).append(process)
    found = [root]
    for process in found:  # grows meanwhile
        found += sorted(children.get(process, ()))
    return found


def told(*settings):
    """Processes that were started with all of these "NAME=value" in their environment, under any
    parent."""
    wanted = [setting.encode() for setting in settings]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if all(setting in environment for setting in wanted):
            found.append(int(folder.name))
    return sorted(found)


def line(process):
    """4711 S 12 s futex_wait: mpiexec -n 2 ..."""
    folder = Path(f"/proc/{process}")
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        waits = (folder / "wchan").read_text() if os.access(folder / "wchan", os.R_OK) else "?"
    except OSError:
        return f"{process} has ended"
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return f"{process} {fields[0]} {age_s:.0f} s {waits}: {command.strip()[:160]}"


def stack(process):
    """The stacks of its threads; empty if no tool here can tell."""
    commands = []
    if shutil.which("py-spy"):
        commands.append(["py-spy", "dump", "--nonblocking", "--pid", str(process)])
    if shutil.which("gdb"):
        commands.append(["gdb", "--batch", "--nx", "-p", str(process), "-ex",
                         f"thread apply all backtrace {FRAMES}"])
    text = []
    for command in commands:
        try:
            said = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  stdin=subprocess.DEVNULL, timeout=DEBUGGER_S).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        text += [row for row in said.splitlines() if row.startswith(("#", "Thread", "    "))]
    return "\n".join(f"    {row}"[:200] for row in text)


def describe(processes):
    """A line for each, and the stacks of the first few."""
    rows = []
    for place, process in enumerate(processes):
        rows.append(line(process))
        if place < MOST:
            rows.append(stack(process))
    return "\n".join(row for row in rows if row)


def end(processes):
    """Ends them surely, the last first, so that no parent starts one again."""
    for process in reversed(processes):
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:  # it has ended
            continue
