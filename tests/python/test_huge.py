"""Arrays of more than 4 GiB on two ranks: what counts in 32 bits would show."""

import re
from pathlib import Path

import launched
import mpis
import pytest
import test_preload
from length import in_long

pytestmark = pytest.mark.ranks

NEEDED_GIB = 16  # two arrays of 4.5 GiB, and what calls in place keep besides
CALLS = {"numpy": ["allreduce", "pipelined allreduce", "broadcast", "allgather", "alltoall"],
         "torch": ["allreduce", "torch allreduce", "torch broadcast", "torch allgather"]}
LIMIT_S = 600


def available_gib():
    told = Path("/proc/meminfo").read_text()
    return int(re.search(r"MemAvailable: +(\d+)", told)[1]) / (1 << 20)


@in_long
@pytest.mark.limit_s(LIMIT_S + 60)
@pytest.mark.parametrize("over", ["shm", "mpich5"])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_arrays_above_4_gib(library, over):
    if library == "torch":
        pytest.importorskip("torch")
    host = next((m for m in mpis.found() if m.name == over), None)
    if over != "shm" and not host:
        pytest.skip(f"{over} is not installed (./dev mpi)")
    if available_gib() < NEEDED_GIB:
        pytest.skip(f"{available_gib():.1f} GiB of memory are free; this needs {NEEDED_GIB}")
    env = {"PACELINE_TRANSPORT": "mpi" if host else "shm", "PACELINE_TIMEOUT_MS": "300000"}
    run = launched.start("huge.py", 2, library, env=env, mpi=host, timeout_s=LIMIT_S)
    assert run.status == 0, run.text()
    lines = run.text(stream="stdout").splitlines()
    assert lines == [f"{name}: right" for name in CALLS[library]]


@in_long
@pytest.mark.parametrize("name", ["mpich5", "openmpi5"])
def test_broadcasts_above_2_gib_under_the_drop_in(name):
    """By a long count, or by 8 bytes each; and packed, which MPI counts in an int."""
    if available_gib() < NEEDED_GIB:
        pytest.skip(f"{available_gib():.1f} GiB of memory are free; this needs {NEEDED_GIB}")
    mpi = test_preload.mpi_of(name)
    mpicc = test_preload.mpicc_of(mpi)
    program = test_preload.compiled(mpicc, "huge")
    status, said = test_preload.run(mpi, 2, test_preload.built(mpicc), program)
    assert status == 0 and said.count("whole") == 2, said
    assert test_preload.served(said) == {"Bcast": (2, 0)}, said
