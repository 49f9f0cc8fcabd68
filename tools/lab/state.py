"""State of the one lab of a folder: if it is up, and what `run` and `down` need to know."""

import json
import os
import shutil
import signal
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from lab import idle, namespaces, network, switch
from lab.asking import ask
from lab.plan import LabError, Plan, plan_from

FOLDER = Path("/run/paceline-lab")
LAB = namespaces.NET | namespaces.UTS | namespaces.IPC | namespaces.MOUNT
END_S = 60  # the kernel takes mounts and interfaces away first, slowly on a busy machine
TIMED_OUT = 124  # the exit status of coreutils' timeout


def forbidden():
    """Why there can be no lab here, whatever is installed; empty if there can."""
    if os.geteuid() != 0:
        return "the lab makes namespaces and interfaces; it needs root"
    try:
        namespaces.try_out(LAB)
    except OSError as error:
        return f"the lab needs namespaces, and this system gives none ({error})"
    return ""


def begun(process):
    """Start time of a process, in the kernel's units: with its number it is unique."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    state, *rest = text.rpartition(")")[2].split()
    return "" if state in "ZX" else rest[18]


def is_up(found):
    """True if the lab that read() has found runs. A lab that ended before its start time could be
    written down has none."""
    return bool(found) and found[1] != "" and begun(found[0]) == found[1]


class State:
    """The file that describes the lab of a folder."""

    def __init__(self, folder=FOLDER):
        self.folder = Path(folder).absolute()
        self.file = self.folder / "state.json"

    def read(self):
        """(process, when it began, Plan), or None."""
        try:
            found = json.loads(self.file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found["process"], found["begun"], plan_from(found["plan"])

    def plan(self):
        """The plan of the lab that is up. Raises LabError."""
        found = self.read()
        if not is_up(found):
            raise LabError("no lab is up; ./dev lab up NODES --rate 200mbit")
        return found[2]

    def inside(self, path):
        """A path of the lab as this process reaches it."""
        return Path(f"/proc/{self.read()[0]}/root{path}")

    def run(self, node, words, environment, descriptors=(0, 1, 2), limit_s=None, sweep=True):
        """Runs a command on a node; its status. sweep: then ends what it has left on any node."""
        plan = self.plan()
        request = {"words": words, "folder": os.getcwd(), "environment": environment}
        try:
            return ask(self.inside(plan.socket(node)), request, descriptors, limit_s)
        except TimeoutError:
            return TIMED_OUT
        finally:
            for number in range(plan.nodes if sweep else 0):
                ask(self.inside(plan.socket(number)), {"end": True})

    def up(self, nodes, ppn, rate, rate_text):
        """Starts a lab; its Plan. Raises LabError."""
        trouble = forbidden() or network.missing()
        if trouble:
            raise LabError(trouble)
        found = self.read()
        if is_up(found):
            raise LabError(f"a lab of {found[2].nodes} nodes is up; ./dev lab down ends it")
        self.clear()
        self.folder.mkdir(parents=True)
        plan = Plan(nodes, ppn, rate, rate_text, str(self.folder / "shared"))
        Path(plan.folder).mkdir()
        try:
            self.start(plan)
        except BaseException:
            try:
                self.down()
            except LabError as left:  # the error that came first says more
                print(f"lab: {left}", file=sys.stderr)
            raise
        return plan

    def start(self, plan):
        """Starts its process 1, and writes it down first; returns when all nodes run."""
        read, write = os.pipe()
        sys.stdout.flush()
        process = namespaces.spawn(LAB, lambda: self.life(plan, write))
        os.close(write)
        text = {"process": process, "begun": begun(process), "plan": plan.to_json()}
        self.file.write_text(json.dumps(text), encoding="utf-8")
        with os.fdopen(read) as told:
            trouble = told.read()  # until all have closed their end
        if trouble or not begun(process):
            raise LabError(trouble.strip() or f"the lab ended at once; {self.log()}")
        idle.build(self.inside(plan.folder))

    def life(self, plan, write):
        """The life of the lab's process 1: apart from the process that started it and its files."""
        os.setsid()
        os.closerange(3, write)
        os.closerange(write + 1, os.sysconf("SC_OPEN_MAX"))
        os.chdir("/")
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for old, new in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(old, new)
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, signal.SIG_DFL)
        switch.main(plan, write)

    def log(self):
        """The output of its processes."""
        try:
            return (self.folder / "log").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def down(self):
        """Ends the lab, if there is one; True if there was. The kernel takes the rest away."""
        found = self.read()
        was_up = is_up(found)
        if was_up:
            with suppress(ProcessLookupError):  # it has ended just now
                os.kill(found[0], signal.SIGKILL)
            deadline = time.monotonic() + END_S
            while is_up(found):
                if time.monotonic() > deadline:
                    raise LabError(f"process {found[0]} of the lab has not ended {END_S} s after "
                                   f"SIGKILL; {self.folder} stays, ./dev lab down tries again")
                time.sleep(0.01)
        self.clear()
        return was_up

    def clear(self):
        """Removes its files."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def lab(folder, nodes, rate_text="200mbit", ppn=1):
    """A lab as long as the context lasts; its State."""
    state = State(folder)
    state.up(nodes, ppn, network.rate_of(rate_text), rate_text)
    try:
        yield state
    finally:
        state.down()
