"""Run a command with a time-out; nothing that it started outlives it."""

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
GRACE_S = 5  # between asking a process group to end and ending it


class Failed(Exception):
    """A command failed or took too long; `summary` is the line it was asked to keep."""

    def __init__(self, message, summary=""):
        super().__init__(message)
        self.summary = summary


def cores():
    return len(os.sched_getaffinity(0))


def environment(**extra):
    """The caller's environment with .venv in front, and sanitizers that stop at the first find."""
    env = dict(os.environ)
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["VIRTUAL_ENV"] = str(VENV)
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.setdefault("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1")
    env.update(extra)
    return env


def end_group(group):
    """End every process of `group`: first politely, then surely."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, sign)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + GRACE_S
        while sign == signal.SIGTERM and time.monotonic() < deadline and alive(group):
            time.sleep(0.05)


def alive(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def run(command, *, timeout_s, env=None, keep=None):
    """Run `command` in the repository root; raise Failed unless it exits with 0 in time.

    With `keep` (a regular expression), return the last line of output that matches it; when the
    command fails, Failed carries that line.
    """
    command = [str(word) for word in command]
    print("+ " + shlex.join(command), flush=True)
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if keep else None,
        stderr=subprocess.STDOUT if keep else None,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    late = threading.Event()

    def expire():
        late.set()
        end_group(child.pid)

    timer = threading.Timer(timeout_s, expire)
    timer.start()
    try:
        line = copy_output(child.stdout, re.compile(keep)) if keep else ""
        code = child.wait()
    finally:
        timer.cancel()
        end_group(child.pid)  # whatever it left behind, also after ^C
    if late.is_set():
        raise Failed(f"no end after {timeout_s} s: {shlex.join(command)}", line)
    if code:
        raise Failed(f"exit status {code}: {shlex.join(command)}", line)
    return line


def copy_output(stream, wanted):
    found = ""
    for line in stream:
        print(line, end="", flush=True)
        if wanted.search(line):
            found = line.strip()
    return found
