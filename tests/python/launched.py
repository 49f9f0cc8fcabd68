"""Runs the scripts in tests/python/ranks on several ranks, once per session and shape."""

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import forkserver
from dev import stacks, watching
from length import SLOWNESS

import paceline.launch
from paceline.on_ranks import LAUNCHED

RANKS = Path(__file__).with_name("ranks")
LIMIT_S = 100 * SLOWNESS
MARK = "TESTS_OF"  # the process whose tests have started what has this in its environment
AT_IMPORT = ("LD_", "MALLOC_", "OMP_", "PYTHON", "TORCH_", "PACELINE_REPLACE")  # what reads them

sys.path.insert(0, str(RANKS))


@functools.cache
def shared_folder():
    """Where the ranks of all tests share memory: apart from whatever else runs here, and as root in
    a file system of its own, whose free pages tell of files that have no names."""
    prefix = watching.memory_prefix(os.getpid())
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=watching.MEMORY))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(folder)]
    if os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0:
        atexit.register(subprocess.run, ["umount", "-l", str(folder)], capture_output=True)
    return folder


def uses_of(folder):
    """Processes that have open or mapped what lies in `folder`, named or not, or memory of ranks
    that lies in no folder and is of a job whose folder it is: "number (command): what"."""
    told = f"PACELINE_SHM_DIR={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            maps = (process / "maps").read_text(errors="replace").splitlines()
            files = [os.readlink(file) for file in (process / "fd").iterdir()]
            ours = told in (process / "environ").read_bytes().split(b"\0")
            command = (process / "comm").read_text().strip()
        except OSError:  # it has ended, or is another user's
            continue
        what = {line.split(maxsplit=5)[-1] for line in maps} | set(files)
        kept = {path for path in what if path.startswith(f"{folder}/")
                or (ours and path.startswith("/memfd:paceline"))}  # fmt: skip
        found += [f"{process.name} ({command}): {path}" for path in sorted(kept)]
    return found


def left(wait_s=5):
    """What ranks have left in shared memory: names, whoever still uses some, pages. The last rank
    that was told to end may take that long to do so."""
    folder = shared_folder()
    deadline = time.monotonic() + wait_s
    while True:
        room = os.statvfs(folder)
        found = [*map(str, folder.iterdir()), *uses_of(folder)]
        if os.path.ismount(folder) and room.f_bfree < room.f_blocks:
            found.append(f"{room.f_blocks - room.f_bfree} pages of {folder}")
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def outlived(wait_s=5):
    """Processes that the tests of this process have started and that are still there."""
    server.cache_clear()
    while servers:
        servers.pop().end()
    deadline = time.monotonic() + wait_s
    while found := stacks.told(f"{MARK}={os.getpid()}"):
        if time.monotonic() > deadline:
            return [stacks.line(process) for process in found]
        time.sleep(0.05)
    return []


def limits():
    """What the ranks of all tests find in their environment."""
    return {
        "PACELINE_TIMEOUT_MS": "20000", "PACELINE_START_TIMEOUT_MS": "30000",
        "PACELINE_SHM_DIR": str(shared_folder()),
    }  # fmt: skip


# Instead, for ranks that load torch and train: on cores that others use, one of them was 20 s later
# than the others, and a launch took 100 s. Four of them end within the limit of a long test.
PATIENT = {"PACELINE_TIMEOUT_MS": "60000", "PACELINE_START_TIMEOUT_MS": "60000"}
PATIENT_S = 140 * SLOWNESS


class Run:
    """How a launch went: its status, and the lines that each rank wrote."""

    def __init__(self):
        self.status = None
        self.lines: dict[tuple[int, str], list[str]] = {}

    def add(self, rank, stream, line):
        self.lines.setdefault((rank, stream), []).append(line)

    def text(self, rank=None, stream=None):
        """What was written, of one rank or stream or of all."""
        return "\n".join(
            line for (r, s), lines in sorted(self.lines.items()) for line in lines
            if rank in (None, r) and stream in (None, s)
        )  # fmt: skip


def imports_torch(script):
    """Whether a script does so, itself or by what lies beside it, before it does anything else."""
    lines = re.findall(r"^(?:from|import) ([\w.]+)", script.read_text(), re.MULTILINE)
    beside = [script.with_name(f"{name}.py") for name in lines]
    return any(re.match(r"(paceline\.)?torch\b", name) for name in lines) or any(
        imports_torch(module) for module in beside if module.exists())


servers = []


@functools.cache
def server(torch):
    # torch._dynamo: the first optimizer imports it, which takes 2 s.
    modules = (["torch", "paceline.torch", "torch._dynamo"]
               if torch and importlib.util.find_spec("torch") else [])
    env = {"OMP_NUM_THREADS": "1", **limits()}
    servers.append(forkserver.Server("paceline", *modules, env=env))
    return servers[-1]


class ForkedRun(paceline.launch._Run):
    """A launch whose ranks are forked from a process that has imported what they import."""

    def popen(self, words, environment):
        scripts = [Path(word) for word in words if word.endswith(".py")]
        if words[1:2] == ["-m"]:
            scripts = [Path(importlib.util.find_spec(words[2]).origin)]
        elif not words[1:] or not words[1].endswith(".py"):  # no program of Python
            return super().popen(words, environment)
        torch = "WITH_TORCH" in environment or any(map(imports_torch, scripts))
        return server(torch).popen(words[1:], environment)


def forking():
    """Launches within it fork their ranks."""
    return mock.patch.object(paceline.launch, "_Run", ForkedRun)


def start(script, ranks, *arguments, env=None, timeout_s=LIMIT_S, mpi=None, **keywords):
    """Runs ranks/<script> and returns the Run. Ranks give up waiting after 20 s by themselves.

    mpi: started by the mpiexec of this Mpi (mpis.py); all output then counts as rank 0's. Else
    ranks are forked (forkserver.py), unless `env` has what is read when modules are imported.
    """
    run = Run()
    settings = limits() | (env or {})
    command = [str(RANKS / script), *map(str, arguments)]
    if mpi:
        settings = {**mpi.environment(), **settings}
        forget = [word for name in LAUNCHED for word in ("-u", name)]
        command = ["env", *forget, *mpi.command(ranks, sys.executable, *command)]
        ranks = 1
    cold = mpi or any(name.startswith(AT_IMPORT) for name in settings)
    with contextlib.nullcontext() if cold else forking():
        run.status = paceline.launch.launch(
            command, ranks, env=settings, timeout_s=timeout_s, on_line=run.add, **keywords
        )
    return run


@functools.cache
def failures(script, ranks, *settings, mpi=None, nodes=None):
    """Runs all checks of a script on so many ranks; failed check -> its tracebacks.

    settings: ("NAME", "value") pairs of the environment. nodes: "0,0,1", the node that each rank
    counts as being on.
    """
    first, *words = ["on_nodes.py", nodes, RANKS / f"{script}.py"] if nodes else [f"{script}.py"]
    with tempfile.TemporaryDirectory() as folder:
        env = {"RESULTS": folder, **dict(settings)}
        run = start(first, ranks, *words, env=env, mpi=mpi)
        found = {}
        for rank in range(ranks):
            path = Path(folder) / f"{rank}.json"
            results = json.loads(path.read_text()) if path.exists() else {}
            told = run.text(0 if mpi else rank)[-4000:]
            for name in names(script):
                trouble = results.get(name, "the check did not run")
                if trouble and len(trouble.splitlines()) == 1:
                    trouble += "\n" + told
                if trouble:
                    found[name] = found.get(name, "") + f"\nrank {rank} of {ranks}: {trouble}"
    if run.status or "nanobind: leaked" in run.text():
        found["end"] = f"status {run.status}; output:\n{run.text()[-4000:]}"
    return found


def names(script):
    """The checks of a script, without running it."""
    module = importlib.import_module(script)
    return [name.removeprefix("check_") for name in vars(module) if name.startswith("check_")]


def expect(script, name, ranks, *settings):
    """Fails if this check failed on any rank."""
    trouble = failures(script, ranks, *settings).get(name)
    assert not trouble, trouble


def errors_of_ranks(text):
    """The errors, one a line, that ranks under torchrun ended with; where they said nothing, all
    that torchrun wrote."""
    error = r"(\[rank\d+\]: )?(?!torch\.distributed\.elastic\.)\S*(Error|RankLost)\b"
    return "\n".join(line for line in text.splitlines() if re.match(error, line)) or text


def flat(text):
    """The text without its line breaks, which depend on the width."""
    return " ".join(text.split())
