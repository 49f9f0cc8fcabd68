"""_core.pyi, which editors and type checkers read, says what is in the compiled module, and other
libraries of the process see none of it.

After a change of python/binding: python tests/python/test_stubs.py
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import paceline
from paceline import _core

STUB = Path(__file__).parents[2] / "python/paceline/_core.pyi"


def stub_of_module():
    """The stub that nanobind makes of the module as it is, in the form of the house."""
    env = {**os.environ, "PYTHONPATH": str(Path(paceline.__file__).parents[1])}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "_core.pyi"
        for command in (
            ["nanobind.stubgen", "-q", "-m", "paceline._core", "-o", str(path)],
            ["ruff", "format", "-q", "--line-length=100", str(path)],
        ):
            subprocess.run([sys.executable, "-m", *command], env=env, check=True, timeout=60)
        return path.read_text()


def test_stub_is_up_to_date():
    pytest.importorskip("nanobind")
    pytest.importorskip("ruff")
    assert STUB.read_text() == stub_of_module(), f"out of date; run: python {__file__}"


def test_module_shows_what_python_looks_for():
    """A C++ library that is linked into it would otherwise mix with torch's."""
    listing = subprocess.run(["nm", "-D", "--defined-only", _core.__file__],
                             check=True, capture_output=True, text=True, timeout=60).stdout
    assert [line.split()[-1] for line in listing.splitlines()] == ["PyInit__core"]


if __name__ == "__main__":
    STUB.write_text(stub_of_module())
