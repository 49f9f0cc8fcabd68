"""Ranks that start unlike each other: the first difference is named, over every channel."""

import launched
import mpis
import pytest
from test_preload import built, compiled, mpi_of, mpicc_of, run

pytestmark = pytest.mark.ranks

SAID = ("start-up: option transport differs between ranks (rank 0: auto, rank 1: mpi); "
        "all ranks must have the same. PACELINE_TRANSPORT sets it.")  # fmt: skip
CHANNELS = ("folder", "torchrun", *(mpi.name for mpi in mpis.found()))


@pytest.mark.parametrize("channel", CHANNELS)
def test_transport_differs(channel):
    if channel == "torchrun":
        pytest.importorskip("torch")
    mpi = None if channel in ("folder", "torchrun") else mpi_of(channel)
    said = launched.start("unlike.py", 2, channel, mpi=mpi, timeout_s=60)
    for rank in range(2):
        assert f"rank {rank}: {SAID}" in said.text(), said.text()


@pytest.mark.parametrize("name", ["openmpi5", "mpich5"])
def test_transport_differs_under_the_drop_in(name, tmp_path):
    """Its calls are the host's on both ranks, and whoever runs it is told."""
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    wrapper = tmp_path / "unlike"
    wrapper.write_text(
        '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && export PACELINE_TRANSPORT=mpi\n'
        'exec "$@"\n'
    )
    wrapper.chmod(0o755)
    _, said = run(mpi, 2, built(mpicc), wrapper, compiled(mpicc, "collectives"))
    assert said.count(SAID) >= 2, said
    assert "MPI_Allreduce: 0 served" in said, said
    for rank in range(2):
        assert f"rank {rank} of 2: 6194 calls compared" in said, said


@pytest.mark.parametrize("own, words", [
    ("", ("this rank has a secret, and it bears no seal", "and this rank has none")),
    ("another", ("its seal is by another secret",) * 2),
])  # fmt: skip
def test_secret_of_the_launcher(own, words):
    """Who has it not is no rank, and each says so of the other."""
    said = launched.start("unproven.py", 2, own, timeout_s=60)
    for rank in range(2):
        line = next(x for x in said.text().split("\n") if x.startswith(f"rank {rank}: "))
        assert words[rank] in line and f"/{1 - rank}'" in line, said.text()
