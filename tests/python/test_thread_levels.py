"""Programs of MPI at each of its levels of threads: beside mpi4py, under the drop-in library."""

import functools
import re

import launched
import mpis
import pytest
import test_preload
from length import each, param

pytestmark = pytest.mark.ranks

FEW, MORE = ("single", "multiple"), ("funneled", "serialized")   # levels
HOSTS = [mpi for mpi in mpis.found() if mpi.name in ("openmpi5", "mpich5")]

each_level = each("level", FEW, MORE)
each_host = each("host", HOSTS[:1], HOSTS[1:])
each_served = each("name", ["openmpi4"], ["openmpi5", "mpich5"])


def beside_mpi4py(host, level, *mutant, transport="mpi"):
    """Runs levels.py on two ranks; fails unless each found all as it should be."""
    run = launched.start("levels.py", 2, level, *mutant, mpi=host, timeout_s=60,
                         env={"PACELINE_TRANSPORT": transport})
    assert run.status == 0 and run.text().count(f"{level}: True []") == 2, run.text()


@each_host
@each_level
def test_beside_mpi4py(host, level):
    """Over MPI alone: there it is we who call it."""
    beside_mpi4py(host, level)


@each_level
def test_beside_mpi4py_in_shared_memory(level):
    beside_mpi4py(HOSTS[0], level, transport="auto")


@pytest.mark.parametrize("level, mutant, trouble", [
    param("serialized", "wrong", "serialized: True [(29, "),   # a sum
    param("funneled", "thread", "funneled: True ['"),       # a thread of ours that may call MPI
    ("single", "lower", "single: False []"),                # less than was asked for
])  # fmt: skip
def test_what_goes_wrong_is_noticed(level, mutant, trouble):
    with pytest.raises(AssertionError, match=re.escape(trouble)):
        beside_mpi4py(HOSTS[0], level, mutant)


@functools.cache
def program(mpicc):
    return test_preload.compiled(mpicc, "levels")


@each_served
@each_level
def test_under_the_drop_in_library(name, level):
    host = test_preload.mpi_of(name)
    mpicc = test_preload.mpicc_of(host)
    status, said = test_preload.run(host, 2, test_preload.built(mpicc), program(mpicc), level)
    assert status == 0 and said.count(f"{level} ok") == 2, said
    assert test_preload.served(said)["Allreduce"][0] >= 98, said


@each_served
@pytest.mark.parametrize("part, count", [("worlds", 5), ("made", 8)])
def test_first_calls_of_two_threads(name, part, count):
    """Both begin with what all threads share; the program itself keeps one of them back."""
    host = test_preload.mpi_of(name)
    mpicc = test_preload.mpicc_of(host)
    program = test_preload.compiled(mpicc, "seats", "-rdynamic", "-ldl")
    status, said = test_preload.run(host, 2, test_preload.built(mpicc), program, part)
    assert status == 0 and said.count(f"{part} ok") == 2, said
    assert test_preload.served(said)["Allreduce"][0] == count, said
