"""The mpi transport under every MPI at hand: C++ ranks started by its mpiexec."""

import contextlib
import dataclasses
import os
import re
import signal
import subprocess
from pathlib import Path

import mpis
import pytest
from length import LONG, each, in_long

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / "build/release"
RANKS = RELEASE / "tests/mpi_ranks"

EVERY = re.findall(r"PACELINE_SCENARIO\((\w+)\),", (ROOT / "tests/mpi/scenarios.cpp").read_text())
MOST = [name for name in EVERY if name != "late_behind"]  # in which ranks spin for 6 s

# What runs on how many ranks. MPIs wait by spinning, and there may be few processors, so most of it
# runs on few ranks, and with the newest of each family. PACELINE_LONG=1 runs everything everywhere.
SCENARIOS = {
    1: ("algorithms_in_pieces",),
    2: ("algorithms_in_pieces", "long_messages", "two_nodes"),
    3: MOST,
    5: ("algorithms_in_pieces", "two_nodes", "given_up"),
    8: ("algorithms_in_pieces",),
}
NEWEST = ("openmpi5", "mpich5")
OLDER = (*SCENARIOS[2], "given_up")  # what each of the others tries: it cancels receives

ABI = {"openmpi": "OpenMpi", "mpich": "Mpich"}
NAMES = (
    "openmpi5", "openmpi4", "mpich5", "mpich4", "impi", "mpich5-standard", "impi-standard",
)  # fmt: skip
ONE_EACH = ("openmpi4", "mpich4", "mpich5-standard")  # of the binary interfaces


def known():
    """name -> Mpi: those found, Intel's where it lies beside them, and standard interfaces."""
    found = {mpi.name: mpi for mpi in mpis.found()}
    intel = ROOT / "build/mpi/impi"
    if (intel / "bin/mpiexec").exists():
        found.setdefault("impi", mpis.Mpi(
            "impi", "mpich", intel / "lib/libmpi.so.12", (str(intel / "bin/mpiexec"),)
        ))  # fmt: skip
    for mpi in list(found.values()):
        library = mpi.library.with_name("libmpi_abi.so.1")
        if library.exists():
            name = f"{mpi.name}-standard"
            found[name] = dataclasses.replace(mpi, name=name, library=library)
    return found


def get(name):
    """The Mpi of that name; skips the test where there is none."""
    if name not in known():
        pytest.skip(f"{name} is not installed (./dev mpi)")
    return known()[name]


def run(command, limit_s=300):
    """Status and output. Nothing of it lives on after the limit."""
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        return process.communicate(timeout=limit_s)[0], process.returncode
    except subprocess.TimeoutExpired:
        for end in (signal.SIGTERM, signal.SIGKILL):  # mpiexec passes the first one on
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, end)
                process.wait(5)
        return f"still running after {limit_s} s\n{process.communicate()[0]}", None


def compiler(mpi):
    """The C++ compiler that belongs to the MPI's mpiexec."""
    mpiexec = Path(mpi.mpiexec[0])
    name = mpiexec.name.replace("mpiexec", "mpicxx")
    path = mpiexec.with_name(name + ("_abi" if mpi.library.name.startswith("libmpi_abi") else ""))
    if not path.exists():
        pytest.skip(f"{mpi.name} comes without a compiler")
    return path


def interface(mpi):
    return "Standard" if mpi.library.name.startswith("libmpi_abi") else ABI[mpi.family]


def check(mpi, folder, mutant):
    """Compiles the comparison with mpi.h and runs it; what it said, and whether all is equal."""
    program = folder / "check"
    said, status = run([
        compiler(mpi), "-std=c++20", "-Isrc", "-Ibench", f"-DPACELINE_ABI={interface(mpi)}",
        f"-DPACELINE_MUTANT={mutant}", "tests/mpi/header/check.cpp",
        RELEASE / "libpaceline_core.a", "-o", program, "-ldl",
    ])  # fmt: skip
    if status == 0:
        said, status = run([program], 60)
    return said, status == 0


@pytest.mark.parametrize("name, ranks", [
    pytest.param(name, ranks, marks=[in_long] * (
        (name, ranks) in (("mpich5", 3), ("mpich5", 5), ("openmpi5", 5)) or name not in NEWEST and (
            name, ranks) not in (("openmpi4", 3), ("mpich5-standard", 3))))
    for name in NAMES for ranks in SCENARIOS
])  # fmt: skip
def test_ranks(name, ranks):
    mpi = get(name)
    scenarios = SCENARIOS[ranks] if name in NEWEST else OLDER
    scenarios = () if LONG else scenarios
    said, status = run(mpi.command(ranks, RANKS, mpi.library, *scenarios))
    assert status == 0, said[-6000:]
    abi = "standard" if "-" in name else mpi.family
    assert said.count(f"{abi}, ") == 1, said  # one world, and the interface that was meant
    assert said.count(f"rank 0 of {ranks}: ok") == (len(scenarios) or len(EVERY)), said


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_those_of_the_header(name, tmp_path):
    said, equal = check(get(name), tmp_path, 0)
    assert equal, said


@pytest.mark.parametrize("mutant, word", [
    (1, "MPI_THREAD_MULTIPLE"), (2, "offsetof"), (3, "Allreduce"), (4, "sum"),
])  # fmt: skip
@each("name", ONE_EACH[:1], ONE_EACH[1:])
def test_wrong_numbers_are_found(name, mutant, word, tmp_path):
    said, equal = check(get(name), tmp_path, mutant)
    assert not equal
    assert word in said


@each("name", ONE_EACH[-1:], sorted({*NAMES} - {*ONE_EACH[-1:]}))
def test_from_header(name, tmp_path):
    mpi = get(name)
    program = tmp_path / "use"
    said, status = run([
        compiler(mpi), "-std=c++20", "-Isrc", "-Iinclude", "tests/mpi/header/use.cpp",
        RELEASE / "libpaceline_core.a", "-o", program, "-ldl", "-lpthread",
    ])  # fmt: skip
    assert status == 0, said
    said, status = run(mpi.command(3, program), 60)
    assert status == 0 and "header: sum 6 of 3 ranks" in said, said


def test_no_library(tmp_path):
    missing, other = tmp_path / "libmpi.so", Path("/lib/x86_64-linux-gnu/libm.so.6")
    said, status = run([RANKS, missing], 60)
    assert status == 1 and str(missing) in said and "cannot be loaded" in said
    if not other.exists():
        pytest.skip("no library at hand that is no MPI")
    said, status = run([RANKS, other], 60)
    assert status == 1 and f"'{other}' has no PMPI_Init_thread" in said
