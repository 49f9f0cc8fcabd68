"""For all Python tests: the command line in this process, and nothing stays in shared memory after
the last of them."""

import os
import subprocess

import launched
import pytest

from paceline import _core
from paceline.cli import main


@pytest.fixture(scope="session", autouse=True)
def no_shared_memory_left():
    yield
    assert list(launched.shared_folder().iterdir()) == []


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
def paceline(capsys, monkeypatch):
    """Runs a command line in this process; returns (status, stdout, stderr)."""
    monkeypatch.setenv("COLUMNS", "100")
    for row in _core.options():
        monkeypatch.delenv(row["variable"], raising=False)

    def run(*arguments):
        status = main([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return run
