"""Records which process runs which test, and since when, in files of a folder: a test that hangs
is named and ended from outside, however it waits, and the other tests go on.

Each process that runs tests writes its present test to a file of its own (`Teller`). A thread of
the process that hands the tests out (`Watcher`) reads these files. It ends a late process with all
that this has started; pytest-xdist then starts another worker, which goes on with the next test.
"""

import contextlib
import faulthandler
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from dev import stacks

FOLDER = "TESTS_UNDER_WAY"  # the variable that names it
# After a test's own limit, which ends it where Python can be interrupted.
GRACE_S = float(os.environ.get("TESTS_GRACE_S", 10))
LOOK_S = 0.25
MEMORY = Path("/dev/shm")


def memory_prefix(process):
    """Prefix of the folders in which the ranks of a process's tests share memory."""
    return f"paceline-tests-{process}-"


# --- in the process that runs a test --------------------------------------------------------------


class Teller:
    """Writes down this process's present test, and leaves its stacks of Python when it is late."""

    def __init__(self):
        folder = os.environ.get(FOLDER)
        self.file = Path(folder) / str(os.getpid()) if folder else None
        self.stacks = None
        # Without xdist no other process can end the one that also hands out the tests.
        self.alone = "PYTEST_XDIST_WORKER" not in os.environ

    @contextlib.contextmanager
    def telling(self, test, when, limit_s):
        self.begin(test, when, limit_s)
        try:
            yield
        finally:
            self.end()

    def begin(self, test, when, limit_s):
        if not self.file:
            return
        if self.alone:
            faulthandler.dump_traceback_later(limit_s + GRACE_S, exit=True, file=sys.__stderr__)
        else:
            self.stacks = self.stacks or open(f"{self.file}.stacks", "w")
            faulthandler.dump_traceback_later(limit_s + GRACE_S / 2, file=self.stacks)
        self.write(json.dumps({
            "test": test, "when": when, "begun": time.monotonic(), "limit_s": limit_s,
            "worker": os.environ.get("PYTEST_XDIST_WORKER", "main"),
            "run": os.environ.get("PYTEST_XDIST_TESTRUNUID", ""),
        }))  # fmt: skip

    def end(self):
        if self.file:
            faulthandler.cancel_dump_traceback_later()
            self.write("{}")

    def write(self, text):
        """Replaces the file as a whole: a reader never sees half of it."""
        part = self.file.with_suffix(".part")
        part.write_text(text)
        part.replace(self.file)


# --- in the process that hands the tests out ------------------------------------------------------


@dataclass(frozen=True)
class UnderWay:
    process: int
    test: str
    when: str  # setup, call, teardown
    begun: float  # by time.monotonic(), which is one clock on a machine
    limit_s: float
    worker: str
    run: str

    def seconds(self):
        return time.monotonic() - self.begun

    def is_late(self):
        return self.seconds() > self.limit_s + GRACE_S

    def __str__(self):
        return f"{self.test} ({self.worker}, {self.when}, for {self.seconds():.0f} s)"


def under_way(folder):
    """The tests that live processes are running."""
    found = []
    for file in Path(folder).glob("[0-9]*"):
        if not file.name.isdigit() or not Path("/proc", file.name).exists():
            continue
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
            if known := json.loads(file.read_text()):
                found.append(UnderWay(process=int(file.name), **known))
    return sorted(found, key=lambda one: one.begun)


def describe(folder):
    """The tests under way, and the stacks of their processes: printed before all of them end."""
    text = []
    for one in under_way(folder):
        text += [f"UNDER WAY: {one}", stacks.describe(stacks.tree(one.process))]
    return "\n".join(text)


class Watcher(threading.Thread):
    """Ends late processes, and says so; `ended`: test -> why."""

    def __init__(self, folder, say):
        super().__init__(name="tests' watcher", daemon=True)
        self.folder, self.say, self.ended = Path(folder), say, {}
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(LOOK_S):
            for one in under_way(self.folder):
                if one.is_late() and one.process != os.getpid():
                    self.end(one)

    def end(self, late):
        self.ended[late.test] = f"no end after {late.limit_s + GRACE_S:g} s ({late.when})"
        all_of_it = stacks.tree(late.process)
        marks = f"PYTEST_XDIST_WORKER={late.worker}", f"PYTEST_XDIST_TESTRUNUID={late.run}"
        all_of_it += [one for one in stacks.told(*marks) if one not in all_of_it]
        text = [f"NO END: {late}; its processes:", stacks.describe(all_of_it)]
        with contextlib.suppress(OSError):
            text.append((self.folder / f"{late.process}.stacks").read_text())
        stacks.end(all_of_it)
        self.say("\n".join(filter(None, text)))
        give_back(late.process)

    def stop(self):
        self.over.set()
        self.join(60)
        for file in self.folder.glob("[0-9]*"):
            if file.name.isdigit() and not Path("/proc", file.name).exists():
                give_back(int(file.name))


def give_back(process):
    """Removes the shared memory of a process that could not do so itself."""
    for folder in MEMORY.glob(memory_prefix(process) + "*"):
        if os.path.ismount(folder):
            subprocess.run(["umount", "-l", str(folder)], capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)
