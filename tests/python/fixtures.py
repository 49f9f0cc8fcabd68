"""For all Python tests: the command line in this process, and what some of them need to be root
for."""

import os
import subprocess
import time
from pathlib import Path

import launched
import pytest
import running

from paceline import _core
from paceline.cli import main

# Nothing that whoever runs the tests has set, no choice that measured time has a say in, and
# nothing in their home.
for row in _core.options():
    os.environ.pop(row["variable"], None)
os.environ["PACELINE_MACHINE"] = "usual"
os.environ[launched.MARK] = str(os.getpid())


def pytest_configure(config):
    if not config.pluginmanager.is_registered(running):
        config.pluginmanager.register(running)


@pytest.fixture
def small_memory(tmp_path):
    """Makes a file system in memory with room for so much, such as "256k"; gives its folder."""
    folder = tmp_path / "memory"

    def make(size):
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
            pytest.skip("only root can make a full /dev/shm")
        return folder

    yield make
    if os.path.ismount(folder):
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def control_group():
    """Makes a control group where there are those of a kind ("cgroup2", or a controller of version
    1), with so much memory; gives its folder."""
    made = []

    def make(kind, memory=None):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            _, folder, type_, options = line.split()[:4]
            offers = type_ == "cgroup" and kind in options.split(",")
            if type_ == "cgroup2":
                controllers = (Path(folder) / "cgroup.controllers").read_text().split()
                offers = kind == "cgroup2" or kind in controllers
            if offers and os.access(folder, os.W_OK):
                made.append(Path(folder) / f"paceline-test-{os.getpid()}")
                made[-1].mkdir()
                if memory:
                    limits = ("memory.max", "memory.limit_in_bytes")
                    next(made[-1] / name for name in limits
                         if (made[-1] / name).exists()).write_text(memory)
                return made[-1]
        pytest.skip(f"no control group of kind {kind} can be made here")

    yield make
    for group in made:
        deadline = time.monotonic() + 10
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        group.rmdir()


@pytest.fixture
def paceline(capsys, monkeypatch, tmp_path_factory):
    """Runs a command line in this process; returns (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    for row in _core.options():
        monkeypatch.delenv(row["variable"], raising=False)

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run
