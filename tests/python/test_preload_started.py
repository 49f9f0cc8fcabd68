"""The drop-in library: calls that are started and completed later, and calls in Fortran."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import test_preload
from length import each, in_long, param
from test_preload import CALLS, NAMES, served

pytestmark = pytest.mark.ranks

# Calls of tests/preload/served.F90.
IN_FORTRAN = {**dict.fromkeys(CALLS, 3), "Allreduce": 6, "Allgather": 6, "Scatter": 6, "Bcast": 4,
              "Barrier": 1, "Iallreduce": 12, "Ibcast": 12, "Ibarrier": 3}  # fmt: skip
IN_FORTRAN_AGAIN = {"Allreduce_init": 6, "Barrier_init": 6}  # where there are persistent calls
PERSISTENT = "-DWITH_PERSISTENT"


def has_persistent(name):
    return name != "openmpi4"


def run(name, ranks, *arguments, library=None, persistent=True, **options):
    """Status and output of tests/preload/started.c under the drop-in library, or another one."""
    flags = [PERSISTENT] * (persistent and has_persistent(name))
    mpi = test_preload.mpi_of(name)
    mpicc = test_preload.mpicc_of(mpi)
    program = test_preload.compiled(mpicc, "started", *flags)
    if library is None:
        library = test_preload.built(mpicc)
    return test_preload.run(mpi, ranks, library, program, *arguments, **options)


@pytest.mark.parametrize("name, ranks, seed, rounds", [
    ("openmpi4", 2, 2, 60), ("mpich5", 3, 3, 60), param("openmpi5", 3, 1, 60),
    param("mpich4", 2, 4, 60),
])  # fmt: skip
def test_started_calls_are_right_in_any_order(name, ranks, seed, rounds):
    status, said = run(name, ranks, seed, rounds)
    right = re.findall(r"rank \d: \d{3,4} requests compared", said)
    assert status == 0 and len(right) == ranks, said
    ours = [call for call, (count, _) in served(said).items() if count]
    assert sum(call.startswith("I") for call in ours) == len(CALLS), said
    persistent = sum(call.endswith("_init") for call in ours)
    assert persistent == len(CALLS) * has_persistent(name), said


@in_long
@pytest.mark.parametrize("name, ranks", [(name, ranks) for name in NAMES for ranks in (2, 3, 5)])
def test_two_hundred_programs(name, ranks):
    """In ten launches; ranks are more than cores."""
    for first in range(100, 300, 20):
        status, said = run(name, ranks, first, 10, 20)
        right = re.findall(r"rank \d: \d{4} requests compared", said)
        assert status == 0 and len(right) == ranks, said


def test_a_wrong_bit_of_a_started_call_is_noticed():
    mpicc = test_preload.mpicc_of(test_preload.mpi_of("mpich5"))
    mutant = test_preload.compiled(mpicc, "mutant", "-shared", "-fPIC")
    status, said = run("mpich5", 2, 1, 60, library=mutant, persistent=False)
    assert status != 0
    for call in ("allreduce", "alltoall"):
        assert f"rank 1: {call} of" in said, said


def test_without_a_thread_the_host_makes_started_calls():
    status, said = run("mpich5", 2, 1, 5, persistent=False, PACELINE_PROGRESS="caller")
    assert status == 0, said
    assert served(said)["Iallreduce"][0] == 0, said
    assert test_preload.passed(said)["Iallreduce", "no thread may drive them"] > 0, said


@pytest.mark.parametrize("module", [1, 2, 3], ids=["mpif.h", "mpi", "mpi_f08"])
@each("name", ["openmpi4"], ["mpich4"])
def test_fortran_is_served(tmp_path, name, module):
    mpi = test_preload.mpi_of(name)
    mpicc = test_preload.mpicc_of(mpi)
    fortran = shutil.which(Path(mpicc).name.replace("mpicc", "mpifort"))
    if not fortran:
        pytest.skip(f"{mpi} comes without a Fortran compiler")
    library, target = test_preload.built(mpicc), tmp_path / "served"
    command = [fortran, f"-DMODULE={module}", *["-DPERSISTENT"] * has_persistent(name), "-w",
               "-ffree-line-length-none", "-fallow-argument-mismatch", f"-J{tmp_path}",
               test_preload.PROGRAMS / "served.F90", "-o", target]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=test_preload.LIMIT_S)
    assert done.returncode == 0, done.stderr
    status, said = test_preload.run(mpi, 3, library, target)
    assert status == 0 and said.count("right") == 3, said
    made = IN_FORTRAN | (IN_FORTRAN_AGAIN if has_persistent(name) else {})
    assert served(said) == {call: (count, 0) for call, count in made.items()}, said


@pytest.mark.parametrize("name, ranks", [
    ("openmpi4", 2), ("mpich5", 2), param("openmpi5", 3), param("mpich4", 3),
])  # fmt: skip
def test_a_program_that_only_starts_calls_is_served(name, ranks):
    """By what the ranks agree on where communicators are made."""
    mpi = test_preload.mpi_of(name)
    mpicc = test_preload.mpicc_of(mpi)
    library, program = test_preload.built(mpicc), test_preload.compiled(mpicc, "attached")
    status, said = test_preload.run(mpi, ranks, library, program)
    assert status == 0 and said.count(": 13 communicators") == ranks, said
    # The host makes the first two calls of each, but for the first one and MPI_COMM_WORLD.
    assert served(said)["Iallreduce"] == (43, 22), said
    assert test_preload.passed(said)["Iallreduce", "first calls"] == 22, said
