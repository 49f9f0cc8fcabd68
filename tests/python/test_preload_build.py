"""For which MPIs the drop-in library is built: those that were named, while they answer."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from paceline.cli import preload_made

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 100

# What the library's part of the project wants of the rest.
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(tried LANGUAGES C CXX)
set(PACELINE_MPICC "" CACHE STRING "")
find_package(Threads REQUIRED)
add_library(paceline_core INTERFACE)
function(paceline_precompile)
endfunction()
function(paceline_warnings)
endfunction()
include({ROOT}/src/preload/library.cmake)
"""


class Tried:
    """A project with compilers of MPIs that are none."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "CMakeLists.txt").write_text(PROJECT)
        (folder / "src").symlink_to(ROOT / "src")

    def mpicc(self, name):
        """A compiler, and the header of its MPI."""
        path = self.folder / name / "mpicc"
        path.parent.mkdir()
        self.answer(path, f"echo gcc -I{path.parent}")
        (path.parent / "mpi.h").write_text('#define MPICH_VERSION "9.8.7"\n')
        return path

    def answer(self, path, command):
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)

    def configure(self, *named):
        """What `./dev build --mpicc ...` does: status, words, the compilers with a library."""
        asked = [f"-DPACELINE_MPICC={';'.join(map(str, named))}"] if named else []
        done = subprocess.run(["cmake", "-S", self.folder, "-B", self.folder / "made", *asked],
                              capture_output=True, text=True, timeout=LIMIT_S)
        made = (self.folder / "made/Makefile").read_text()
        built = {path.read_text().split("-I")[1].strip()
                 for path in self.folder.glob("build/preload/*/mpicc.txt")
                 if f"paceline_mpi_{path.parent.name}:" in made}
        return done.returncode, done.stdout + done.stderr, {Path(path).name for path in built}


@pytest.fixture
def tried(tmp_path, monkeypatch):
    monkeypatch.setenv("CMAKE_GENERATOR", "Unix Makefiles")
    if not shutil.which("cmake"):
        monkeypatch.setenv("PATH", f"{ROOT / '.venv/bin'}:/usr/bin:/bin")
    return Tried(tmp_path)


@pytest.mark.parametrize("has", [(), ("Gather_init",), ("Gather_c", "Gather_init")])
def test_the_stub_is_told_which_calls_the_mpi_declares(tried, has):
    """Alike by ./dev build and by a wheel."""
    mpicc = tried.mpicc("one")
    with (mpicc.parent / "mpi.h").open("a") as header:
        header.writelines(f"int MPI_{name}(int n);\n" for name in has)
        header.write("int PMPI_Gather_d(int n);\n")
    assert tried.configure(mpicc)[0] == 0
    made = (tried.folder / "made").rglob("flags.make")
    told = set(re.findall(r"-D(PACELINE_MPI_HAS_\w+)", "".join(path.read_text() for path in made)))
    family, version, macros = preload_made.ask_header(mpicc, [f"-I{mpicc.parent}"])
    assert (family, version) == ("mpich", "9.8.7")
    assert {f"-D{macro}" for macro in told} == set(macros) and len(told) == len(has)


def test_a_compiler_that_no_longer_answers_is_left_out(tried):
    one, other = tried.mpicc("one"), tried.mpicc("other")
    assert tried.configure(one)[::2] == (0, {"one"})
    assert tried.configure(other)[::2] == (0, {"one", "other"})
    tried.answer(other, "exit 7")
    status, said, built = tried.configure()
    assert (status, built) == (0, {"one"}) and f"{other}, which an earlier" in said, said
    assert "`mpicc -show` fails (7)" in said
    tried.answer(other, f"echo gcc -I{other.parent}")
    header = other.parent / "mpi.h"
    for text in (None, "#define SOME_OTHER_MPI 1\n"):
        header.unlink()
        if text:
            header.write_text(text)
        status, said, built = tried.configure()
        assert (status, built) == (0, {"one"}) and f"{other}, which an earlier" in said, said
        header.write_text('#define MPICH_VERSION "9.8.7"\n')
    assert tried.configure()[::2] == (0, {"one", "other"})  # it answers again
    other.unlink()
    status, said, built = tried.configure()
    assert (status, built) == (0, {"one"}) and f"{other}, which an earlier" in said, said
    assert str(other) not in tried.configure()[1]


def test_one_that_is_asked_for_must_answer(tried):
    one, bad = tried.mpicc("one"), tried.mpicc("bad")
    assert tried.configure(one)[::2] == (0, {"one"})
    tried.answer(bad, "exit 3")
    status, said, _ = tried.configure(bad)
    assert status != 0 and f"{bad}: `mpicc -show` fails (3)" in " ".join(said.split()), said
    status, said, built = tried.configure()
    assert (status, built) == (0, {"one"}) and str(bad) not in said, said
