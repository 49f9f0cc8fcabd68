"""Run a command with a time-out; nothing that it started outlives it, in whatever session."""

import contextlib
import itertools
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from pathlib import Path

from dev import progress, stacks

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
GRACE_S = 5  # between asking a process group to end and ending it
RUNS = itertools.count()


class Failed(Exception):
    """A command failed or took too long; `summary` has the lines it was asked to keep, `unseen` the
    last of what a progress bar has hidden."""

    def __init__(self, message, summary="", unseen=""):
        super().__init__(message)
        self.summary = summary
        self.unseen = unseen


def cores():
    return len(os.sched_getaffinity(0))


def environment(**extra):
    """The caller's environment with .venv in front, and sanitizers that stop at the first find.

    Python keeps compiled modules in build/pycache, whatever the caller has set: else each process
    compiles all of torch that it imports.
    """
    env = dict(os.environ)
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env["PYTHONPYCACHEPREFIX"] = str(ROOT / "build/pycache")
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["VIRTUAL_ENV"] = str(VENV)
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.setdefault("TSAN_OPTIONS", "halt_on_error=1:second_deadlock_stack=1")
    env.update(extra)
    return env


def end_group(child):
    """End every process of the group that `child` leads: first politely, then surely."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sign)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + GRACE_S
        while sign == signal.SIGTERM and time.monotonic() < deadline and alive(child):
            time.sleep(0.05)


def alive(child):
    child.poll()   # one that has ended and is not waited for counts as a member of its group
    try:
        os.killpg(child.pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def ended_by_signals():
    """Makes SIGTERM and SIGHUP end this process by SystemExit, so that `finally` blocks run.

    A second signal is ignored: it must not cut these short. Signals ignored by nohup stay so.
    """
    before = {sign: signal.getsignal(sign) for sign in (signal.SIGTERM, signal.SIGHUP)}
    ours = [sign for sign, handler in before.items() if handler == signal.SIG_DFL]

    def end(sign, _):
        for one in ours:
            signal.signal(one, signal.SIG_IGN)
        raise SystemExit(128 + sign)   # as a shell says it

    for sign in ours:
        signal.signal(sign, end)
    try:
        yield
    finally:
        for sign in ours:
            signal.signal(sign, before[sign])


def default_signals():
    """Run first by a child: resets every signal, blocks none. A shell starts background commands
    with SIGINT ignored, and that would be inherited."""
    for sign in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(sign, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


@contextlib.contextmanager
def started(command, *, env, **how):
    """Starts a child that leads a process group. On the way out ends that group, and all processes
    that have left it: they carry the variable that this function sets in the child's environment.

    Signals wait until that is certain: one that comes while the child is being started would
    otherwise leave it behind. The child has every signal as usual.
    """
    mark = f"DEV_RUN_{os.getpid()}_{next(RUNS)}"
    before = signal.pthread_sigmask(signal.SIG_BLOCK,
                                    {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, text=True,
                                 errors="replace", start_new_session=True,
                                 env={**env, mark: "1"},
                                 preexec_fn=default_signals, **how)
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield child
        finally:
            end_group(child)  # whatever it left behind, also after ^C and kill
            while left := stacks.told(f"{mark}=1"):
                stacks.end(left)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def run(command, *, timeout_s, env=None, keep=None, bar=None, on_late=None):
    """Run `command` in the repository root; raise Failed unless it exits with 0 in time.

    With `keep` (a regular expression), return the lines of output that match it; when the command
    fails, Failed carries them.

    With `bar` (a word or two), show a progress bar of the steps "[3/70] ..." that the command
    prints, in the place of its output; when it fails, Failed carries the last of that as `unseen`.

    When the time is over, on_late(the child's process number) is called before the child is ended.
    """
    command = [str(word) for word in command]
    print("+ " + shlex.join(command), flush=True)
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if keep or bar else {}
    with ended_by_signals(), started(command, env=env or environment(), **pipe) as child:
        code, line, late = wait_for(child, timeout_s, keep, bar, on_late)
    kept = {"unseen" if bar else "summary": line}
    if late:
        raise Failed(f"no end after {timeout_s:g} s: {shlex.join(command)}", **kept)
    if code:
        raise Failed(f"exit status {code}: {shlex.join(command)}", **kept)
    return line


def wait_for(child, timeout_s, keep, bar=None, on_late=None):
    """(its exit status, the lines of output to keep, whether it took too long)"""
    late = threading.Event()

    def expire():
        late.set()
        try:
            if on_late:
                on_late(child.pid)
        finally:
            end_group(child)

    timer = threading.Timer(timeout_s, expire)
    line = ""
    try:
        timer.start()   # a signal may come before this returns; the interpreter waits for threads
        if bar:
            line = progress.show(child.stdout, bar)
        elif keep:
            line = copy_output(child.stdout, re.compile(keep))
        code = child.wait()
    finally:
        timer.cancel()
    return code, line, late.is_set()


def copy_output(stream, wanted):
    found = []
    for line in stream:
        print(line, end="", flush=True)
        if wanted.search(line):
            found.append(line.strip())
    return "\n".join(found)
