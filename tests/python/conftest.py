"""For all Python tests: the command line in this process, and nothing stays in shared memory after
the last of them."""

import launched
import pytest

from paceline import _core
from paceline.cli import main


@pytest.fixture(scope="session", autouse=True)
def no_shared_memory_left():
    yield
    assert list(launched.shared_folder().iterdir()) == []


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
