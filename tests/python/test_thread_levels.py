"""Programs of MPI at each of its levels of threads: beside mpi4py, under the drop-in library."""

import functools

import launched
import mpis
import pytest
import test_preload

LEVELS = ("single", "funneled", "serialized", "multiple")
HOSTS = [mpi for mpi in mpis.found() if mpi.name in ("openmpi5", "mpich5")]

each_level = pytest.mark.parametrize("level", LEVELS)
each = pytest.mark.parametrize("host", HOSTS, ids=str)


@each
@each_level
def test_beside_mpi4py(host, level):
    """Over MPI alone: there it is we who call it."""
    run = launched.start("levels.py", 2, level, mpi=host, timeout_s=60,
                         env={"PACELINE_TRANSPORT": "mpi"})
    assert run.status == 0 and run.text().count(f"{level}: True []") == 2, run.text()


@each_level
def test_beside_mpi4py_in_shared_memory(level):
    run = launched.start("levels.py", 2, level, mpi=HOSTS[0], timeout_s=60)
    assert run.status == 0 and run.text().count(f"{level}: True []") == 2, run.text()


@functools.cache
def program(mpicc):
    return test_preload.compiled(mpicc, "levels")


@each
@each_level
def test_under_the_drop_in_library(host, level):
    mpicc = test_preload.mpicc_of(host)
    status, said = test_preload.run(host, 2, test_preload.built(mpicc), program(mpicc), level)
    assert status == 0 and said.count(f"{level} ok") == 2, said
    assert test_preload.served(said)["Allreduce"][0] > 100, said
