"""Arguments under the drop-in library: those that MPI refuses, and buffers in a GPU's memory."""

import re

import pytest
import test_preload
from length import each

NAMES = test_preload.NAMES

# What ends the host itself, alone: without a word, or by an assertion that is its own.
NULLS = {
    f"{call}_no_{side}put" for call in ("allreduce", "reduce", "block", "allgather")
    for side in ("in", "out")
}  # fmt: skip
BREAKS = {
    "openmpi": NULLS | {"bcast_nothing", "bcast_nothing_of_vectors", "allgatherv_negative"},
    "mpich": {"allreduce_negative", "allreduce_no_type", "reduce_in_place_away",
              "allgather_aliased_other_type", "bcast_in_place"},
}  # fmt: skip
GPU = "feigned_cuda"


def run(name, program, *arguments, served=True, ranks=2, **options):
    """Status and lines of the ranks, with the drop-in library or without."""
    mpi = test_preload.mpi_of(name)
    mpicc = test_preload.mpicc_of(mpi)
    library = test_preload.built(mpicc) if served else ""
    return test_preload.run(mpi, ranks, library, test_preload.compiled(mpicc, program), *arguments,
                            **options)


def cases_of(name):
    """Those that do not break this MPI."""
    text = (test_preload.PROGRAMS / "refused.c").read_text()
    breaks = next(broken for family, broken in BREAKS.items() if name.startswith(family))
    return [case for case in re.findall(r"CASE\((\w+)\)[,}]", text) if case not in breaks]


def answers(said):
    return sorted(re.findall(r"rank \d: \w+ \d+ handled \d+", said))


@each("name", ["openmpi4", "mpich5"], ["openmpi5", "mpich4"])
def test_what_the_host_refuses_is_refused(name):
    cases = cases_of(name)
    status, said = run(name, "refused", *cases, served=False)
    alone = answers(said)
    assert status == 0 and len(alone) == 2 * len(cases), said
    status, said = run(name, "refused", *cases)
    assert status == 0 and answers(said) == alone, said
    wrong = {call for call, why in test_preload.passed(said) if why == "wrong arguments"}
    assert wrong >= {"Allreduce", "Bcast", "Reduce", "Reduce_scatter_block", "Allgather",
                     "Gather", "Gatherv", "Alltoall", "Alltoallv"}, said


@each("name", ["openmpi4", "mpich5"], ["openmpi5", "mpich4"])
def test_what_breaks_the_host_is_refused(name):
    """Null addresses under Open MPI; MPI_IN_PLACE where data must be, under MPICH."""
    cases = sorted(NULLS) if name.startswith("openmpi") else ["bcast_in_place",
                                                              "reduce_in_place_away"]
    status, said = run(name, "refused", *cases)
    assert status == 0, said
    for case in cases:
        assert re.search(rf"rank 1: {case} 1[23] handled 1", said) or (
            case == "reduce_no_output" and re.search(rf"rank 0: {case} 13 handled 1", said)), said


@pytest.mark.parametrize("transport", ["auto", "mpi"])
@pytest.mark.parametrize("part, refused", [("bcast", "022"), ("allreduce", "111")])
@each("name", ["mpich5"], ["openmpi5", "openmpi4", "mpich4"])
def test_after_lengths_that_differ_the_host_goes_on(name, part, refused, transport):
    """Under the host alone MPI_Allreduce of other lengths ends some MPIs; ours tell all ranks."""
    status, said = run(name, "lengths", part, ranks=3, PACELINE_TRANSPORT=transport)
    assert status == 0, said
    assert "".join(sorted(re.findall(rf"{part} ok, refused (\d)", said))) == refused, said
    assert said.count("Further calls on this communicator of 3 ranks are the host MPI's") == 1, said
    assert test_preload.passed(said)["Barrier", "calls differed"] == 20, said
    assert test_preload.served(said)["Barrier"] == (20, 20), said
    assert test_preload.served(said)["Allreduce"][0] >= 1, "a later communicator is ours"


@each("name", ["openmpi4", "mpich5"], ["openmpi5", "mpich4"])
def test_buffers_on_a_device(name):
    """By a driver that is loaded after the first calls; ranks differ in what they have there."""
    mpicc = test_preload.mpicc_of(test_preload.mpi_of(name))
    driver = test_preload.compiled(mpicc, GPU, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")
    status, said = run(name, "device", driver)
    right = re.findall(r"rank \d: \d+ calls ok, \d{3,4} copies", said)
    assert status == 0 and len(right) == 2, said
    counts = test_preload.served(said)
    assert all(counts[call][0] >= 12 for call in test_preload.CALLS if call != "Barrier"), said
