"""The wheel of what `./dev build` has built, in an empty virtual environment: no clone is needed,
and no compiler but where something is compiled."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import launched
import mpis
import pytest
import test_preload
from length import in_long
from test_preload import PROGRAMS, mpicc_of, served

from paceline.cli import main, preload_made

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 140
COMPILES_S = 600  # processors shared with other tests; the compiler alone takes 20 s
NEEDS = ("numpy", "click", "rich", "markdown-it-py", "mdurl", "pygments")  # and what those need
SUM = ("import numpy, paceline; world = paceline.init(); x = numpy.full(3, world.rank + 1.0); "
       "print(world.allreduce(x).tolist(), paceline.__file__)")


def run(*command, **keywords):
    """What a command prints; fails with that unless it returns 0."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, **keywords)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The files: of the package, of the laboratory."""
    assert (ROOT / "build/release/libpaceline.so").exists(), "build it first: ./dev build"
    out = tmp_path_factory.mktemp("wheel")
    said = run(sys.executable, ROOT / "tools/dev/make_wheel.py", "--out", out, cwd=out)
    made = sorted(out.glob("*.whl"))
    assert [line[6:] for line in said.splitlines() if line.startswith("Wrote ")] == [
        str(file) for file in made]
    return made


@pytest.fixture(scope="module")
def wheel(wheels):
    return wheels[0]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The bin of a virtual environment that has the wheel, and what that needs: links to packages
    of this Python, which nothing has to fetch."""
    venv = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    run(sys.executable, "-m", "pip", "--python", venv / "bin/python", "install", "--quiet",
        "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
    site = Path(run(venv / "bin/python", "-c",
                    "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for name in NEEDS:
        for file in importlib.metadata.files(name):
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (site / top).exists():
                (site / top).symlink_to(Path(file.locate()).parents[len(file.parts) - 1] / top)
    return venv / "bin"


@pytest.fixture
def bare(installed, tmp_path, monkeypatch):
    """An environment in which there is nothing but that bin, and a home."""
    for name in ("PYTHONPATH", "XDG_CACHE_HOME", "CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return {**os.environ, **launched.limits(), "PATH": str(installed), "HOME": str(tmp_path)}


def test_it_holds_the_package_and_what_is_compiled(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "ls-files", "-co", "--exclude-standard", "paceline", cwd=ROOT / "python")
    assert set(tracked.split()) <= names
    others = names - set(tracked.split())
    kinds = {re.sub(r"src/.*", "src/", name) for name in others if ".dist-info/" not in name}
    native, drop_in = "paceline/native/", "paceline/native/drop_in/"
    module = {name for name in kinds if name.startswith("paceline/_core.")}
    assert len(module) == 1 and kinds - module == {
        f"{native}include/paceline/paceline.h", f"{native}lib/libpaceline.so",
        f"{native}lib/libpaceline.so.1", f"{native}lib/pkgconfig/paceline.pc",
        f"{drop_in}libpaceline_core.a", f"{drop_in}src/"}


def test_the_laboratory_is_a_wheel_of_its_own(wheels):
    tracked = run("git", "ls-files", "-co", "--exclude-standard", "paceline_bench",
                  cwd=ROOT / "bench").split()
    package, laboratory = (set(zipfile.ZipFile(file).namelist()) for file in wheels)
    results = {f"paceline_bench/{path.relative_to(ROOT / 'bench')}"
               for path in (ROOT / "bench/results").rglob("*") if path.is_file()}
    others = [name for name in laboratory - set(tracked) - results if ".dist-info/" not in name]
    assert set(tracked) | results <= laboratory
    assert len(others) == 1 and others[0].startswith("paceline_bench/_native.")
    assert not any(name.startswith("paceline_bench") for name in package)


@in_long
def test_commands_of_the_laboratory_say_where_it_is(installed, bare):
    for name in ("bench", "train", "report"):
        found = subprocess.run([installed / "paceline", name], env=bare, capture_output=True,
                               text=True, timeout=LIMIT_S)
        assert found.returncode == 2 and "pip install ./bench" in found.stderr
    assert "paceline-bench" not in run(installed / "paceline", "--help", env=bare)


def test_pip_takes_what_cmake_installs_for_it():
    """The same components as ./dev wheel: pip reads them in pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text()
    assert 'install.components = ["python", "wheel"]' in text and 'PACELINE_CAPI = "ON"' in text


def test_ranks_run_without_a_compiler(installed, bare):
    assert not any(shutil.which(name, path=bare["PATH"]) for name in ("cc", "gcc", "c++", "cmake"))
    said = run(installed / "paceline", "run", "-n", "2", "--prefix", installed / "python", "-c",
               SUM, env=bare)
    assert said.count("[3.0, 3.0, 3.0]") == len(said.splitlines()) == 2, said
    assert said.count(str(installed.parent)) == 2 and str(ROOT) not in said
    assert "paceline 0" in run(installed / "paceline", "--version", env=bare)
    assert "ring" in run(installed / "paceline", "explain", "allreduce", "--ranks", "4", "--size",
                         "16MiB", env=bare)


def test_programs_in_c_find_header_and_library(installed, bare, tmp_path):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config on this machine")
    folder = run(installed / "paceline", "--pkgconfigdir", env=bare).strip()
    env = {**os.environ, "PKG_CONFIG_PATH": folder}
    flags = run("pkg-config", "--cflags", "--libs", "paceline", env=env).split()
    libdir = run("pkg-config", "--variable=libdir", "paceline", env=env).strip()
    run("cc", ROOT / "examples/c/allreduce.c", *flags, f"-Wl,-rpath,{libdir}", "-o",
        tmp_path / "allreduce")
    said = run(installed / "paceline", "run", "-n", "2", tmp_path / "allreduce", env=bare)
    assert sorted(said.splitlines())[0] == "rank 0 of 2: blocking 3", said


def test_a_source_tree_says_how_its_c_library_is_installed(capsys):
    assert main(["--pkgconfigdir"]) == 1
    assert "--component capi" in capsys.readouterr().err


# --- the drop-in library --------------------------------------------------------------------------


def preload(installed, env, mpicc):
    """`paceline preload` of the virtual environment."""
    return subprocess.run([str(installed / "paceline"), "preload", "--mpicc", mpicc], text=True,
                          capture_output=True, timeout=COMPILES_S, env=env)


@in_long
@pytest.mark.parametrize("mpi", mpis.found(), ids=str)
def test_the_drop_in_library_is_compiled_once(mpi, installed, bare, tmp_path):
    mpicc = mpicc_of(mpi)
    env = {**bare, "PATH": os.environ["PATH"]}
    first = preload(installed, env, mpicc)
    assert first.returncode == 0, first.stderr
    library = Path(first.stdout.strip())
    assert library.is_relative_to(tmp_path / ".cache/paceline/preload")
    assert "compiling the drop-in library" in first.stderr and first.stderr.count("\n") == 1
    assert [path.name for path in library.parents[1].iterdir()] == [library.parent.name]
    second = preload(installed, env, mpicc)
    assert (second.stdout, second.stderr) == (first.stdout, "")
    run(mpicc, "-std=gnu11", "-O1", PROGRAMS / "collectives.c", "-o", "program", "-lpthread")
    status, said = test_preload.run(mpi, 2, library, tmp_path / "program")
    assert status == 0 and said.count("calls compared") == 2, said
    assert served(said)["Allreduce"][0] > 0, said


@in_long
def test_what_cannot_be_compiled_is_said(wheel, tmp_path, monkeypatch, capsys):
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    monkeypatch.setattr(preload_made, "CARRIED", tmp_path / "unpacked/paceline/native/drop_in")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    mpicc, header = tmp_path / "mpicc", tmp_path / "include/mpi.h"
    mpicc.write_text(f"#!/bin/sh\necho gcc -I{header.parent}\n")
    mpicc.chmod(0o755)

    def said(**environment):
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            assert main(["preload", "--mpicc", str(mpicc)]) == 1
        out, err = capsys.readouterr()
        assert not out and err.splitlines()[-1].startswith("paceline: preload: "), err
        return err

    header.parent.mkdir()
    header.write_text("#define SOME_OTHER_MPI 1\n")
    assert "is of an unknown MPI" in said()
    header.write_text('#define MPICH_VERSION "4.0"\n')
    assert "no compiler 'no-such'." in said(CXX="no-such -O3")
    assert "no compiler 'no-such'." in said(CC="no-such")
    assert "Set XDG_CACHE_HOME or HOME." in said(HOME="")
    assert "error" in (broken := said()) and "set CXX to another" in broken
    header.unlink()
    assert "mpi.h" in (lacking := said()) and "Are the headers of" in lacking
    assert not list((tmp_path / ".cache/paceline/preload").iterdir())
