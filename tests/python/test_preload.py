"""The drop-in library under every MPI at hand: C programs as they stand, with and without it."""

import dataclasses
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import launched
import mpis
import pytest
from length import each, in_long, param

from paceline.cli import attach, main
from paceline.cli.preload import library_for
from paceline.errors import Error, ResourceError, UsageError

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/preload"
LIMIT_S = 100

NAMES = ("openmpi5", "openmpi4", "mpich5", "mpich4")
CALLS = ("Allreduce", "Bcast", "Reduce", "Reduce_scatter_block", "Allgather", "Barrier",
         "Reduce_scatter", "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv", "Alltoall",
         "Alltoallv")  # fmt: skip
# A barrier has no data that could be wrong.
WITH_DATA = tuple(call.lower() for call in CALLS if call != "Barrier")
# MPI and ranks; MPIs wait by spinning, and there may be few processors.
SHORT = [("openmpi4", 2), ("openmpi4", 3), ("mpich5", 1), ("mpich5", 3)]
PARTS = ("progress", "many", "threads", "between", "errors", "finalize")


@functools.cache
def folder():
    """For what is compiled here; gone at the end."""
    return tempfile.TemporaryDirectory(prefix="paceline-preload-")


def mpi_of(name):
    """The Mpi of that name; skips the test where there is none."""
    found = [mpi for mpi in mpis.found() if mpi.name == name]
    if not found:
        pytest.skip(f"{name} is not installed (./dev mpi)")
    return found[0]


def mpicc_of(mpi):
    """Its C compiler; skips the test where it comes without one."""
    mpiexec = Path(mpi.mpiexec[0])
    path = mpiexec.with_name(mpiexec.name.replace("mpiexec", "mpicc"))
    if not path.exists():
        pytest.skip(f"{mpi} comes without a C compiler")
    return str(path)


@functools.cache
def compiled(mpicc, program, *flags):
    """tests/preload/<program>.c, by the compiler of an MPI."""
    target = Path(folder().name) / f"{program}-{abs(hash((mpicc, flags)))}"
    command = [mpicc, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *flags,
               PROGRAMS / f"{program}.c", "-o", target, "-lpthread"]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return target


def built(mpicc):
    """The drop-in library for this MPI; skips the test where nobody has built it."""
    try:
        return library_for(mpicc)
    except Error as error:
        pytest.skip(str(error))


def run(mpi, ranks, library, program, *arguments, **options):
    """Status and output of ranks under a preloaded library."""
    env = {
        **os.environ, **launched.limits(), "PACELINE_PRELOAD_SUMMARY": "on",
        "LD_PRELOAD": str(library), **options,
    }  # fmt: skip
    done = subprocess.run(
        mpi.command(ranks, program, *arguments), env=env, text=True, timeout=LIMIT_S,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout


def served(said):
    """Call -> (served, passed) as the summary says."""
    ours = re.findall(r"^  MPI_(\w+) +(\d+) +[\d.]+ [KMG]?i?B +[\d.]+ m?s   \S", said, re.MULTILINE)
    theirs = passed(said)
    found = {name: [0, 0] for name, _ in ours} | {name: [0, 0] for name, _ in theirs}
    for name, calls in ours:
        found[name][0] += int(calls)
    for (name, _), calls in theirs.items():
        found[name][1] += calls
    return {name: tuple(counts) for name, counts in found.items()}


def passed(said):
    """(Call, reason) -> number of calls that the host made, of those that may be served."""
    rows = re.findall(r"^  MPI_(\w+) +(\d+) +[\d.]+ m?s   (.+)$", said, re.MULTILINE)
    return {(name, why): int(calls) for name, calls, why in rows}


@pytest.mark.parametrize("name, ranks", [
    pytest.param(name, ranks, marks=[in_long] * ((name, ranks) not in SHORT))
    for name in NAMES for ranks in (1, 2, 3, 5)
])  # fmt: skip
def test_calls_do_what_they_should(name, ranks):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    status, said = run(mpi, ranks, built(mpicc), compiled(mpicc, "collectives"))
    assert status == 0, said
    assert len(re.findall(rf"rank \d of {ranks}: \d{{5}} calls compared", said)) == ranks, said
    counts = served(said)
    assert sorted(counts) == sorted(CALLS), said
    for call, (ours, theirs) in counts.items():
        assert (ours == 0) == (ranks == 1), f"{call}: {said}"
        assert theirs > 0, f"{call}: those on MPI_COMM_SELF are not ours"
    if ranks > 1:
        assert counts["Allreduce"][0] > 1000 and counts["Bcast"][0] > 150


@pytest.mark.parametrize("name, ranks", [
    ("mpich5", 3), ("openmpi4", 2), pytest.param("openmpi5", 3, marks=in_long),
    pytest.param("mpich4", 5, marks=in_long),
])  # fmt: skip
def test_operations_that_only_the_host_has(name, ranks):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    status, said = run(mpi, ranks, built(mpicc), compiled(mpicc, "folds"))
    assert status == 0 and said.count(": 224 folds compared") == ranks, said
    for call in ("Allreduce", "Reduce", "Reduce_scatter_block", "Reduce_scatter"):
        assert served(said)[call] == (56, 0), said


@pytest.mark.parametrize("name, ranks", [
    ("mpich5", 2), pytest.param("openmpi5", 3, marks=in_long), ("openmpi4", 2),
    pytest.param("mpich4", 2, marks=in_long),
])  # fmt: skip
def test_hundreds_of_communicators_at_once(name, ranks):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    status, said = run(mpi, ranks, built(mpicc), compiled(mpicc, "communicators"), "300")
    assert status == 0, said
    assert said.count("300 communicators at once") == ranks, said
    # The host makes the first two calls of each, except on the first, which joins as it is made.
    assert served(said)["Bcast"] == (601, 599), said
    assert passed(said)["Bcast", "first calls"] == 599, said


@pytest.mark.parametrize("calls, served_ones, passed", [(2, 0, 100), (3, 50, 100)])
def test_the_host_makes_the_first_two_calls_of_a_communicator(calls, served_ones, passed):
    mpi = mpi_of("mpich5")
    mpicc = mpicc_of(mpi)
    status, said = run(mpi, 2, built(mpicc), compiled(mpicc, "brief"), 10, calls)
    assert status == 0, said
    assert served(said)["Allreduce"] == (served_ones, passed), said
    assert served(said)["Barrier"] == (6, 0), "those of MPI_COMM_WORLD are ours from the first on"


@pytest.mark.parametrize("name", ["openmpi4"])
def test_a_wrong_bit_is_noticed(name):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    mutant = compiled(mpicc, "mutant", "-shared", "-fPIC")
    status, said = run(mpi, 2, mutant, compiled(mpicc, "collectives"), "less")
    assert status != 0
    for call in WITH_DATA:
        assert f"rank 1 of 2: {call} of" in said, said
    status, said = run(mpi, 2, mutant, compiled(mpicc, "folds"))
    assert status != 0 and "rank 1 of 2: allreduce of 1 " in said, said


@each("name", ["mpich5"], [name for name in NAMES if name != "mpich5"])
def test_programs_are_not_spoilt(name):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    ranks = 3 if name.startswith("openmpi") else 2
    status, said = run(mpi, ranks, built(mpicc), compiled(mpicc, "manners"), *PARTS)
    assert status == 0, said
    for part in PARTS:
        assert said.count(f": {part} ok") == ranks, said
    assert said.count("operation differs between ranks") == ranks, said


@each("name", ["mpich5"], [name for name in NAMES if name != "mpich5"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")
def test_a_rank_may_change_its_user(name):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    status, said = run(mpi, 2, built(mpicc), compiled(mpicc, "manners"), "user")
    assert status == 0 and said.count(": user ok") == 2, said
    assert "this rank has changed its user (setuid)" in said, said
    assert served(said)["Allreduce"] == (2, 3) and served(said)["Bcast"] == (6, 0), said
    if not attach.trouble():  # which this user's ranks had before
        assert "rank 1 may not read the memory of rank 0: Operation not permitted" in said, said


@in_long  # other MPIs serve them without that rank
def test_a_rank_that_its_mpi_keeps_busy_does_not_sleep():
    # Others' one-sided calls are served between two looks of a rank that waits in our call.
    mpi = mpi_of("openmpi5")
    mpicc = mpicc_of(mpi)
    status, said = run(mpi, 2, built(mpicc), compiled(mpicc, "awake", "-rdynamic"))
    assert status == 0, said
    rows = re.findall(r"moves (\d): (\d+) looks, (\d+) sleeps", said)
    (_, looks, sleeps), (_, busy_looks, busy_sleeps) = rows
    assert int(looks) > 0 < int(sleeps), said
    assert int(busy_sleeps) < 0.1 * int(busy_looks), said


@each("name", ["openmpi4", "mpich5"], ["openmpi5"])
def test_one_sided_calls_reach_a_rank_that_waits_in_ours(name):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    status, said = run(mpi, 2, built(mpicc), compiled(mpicc, "one_sided"), "500")
    assert status == 0 and "sum 1000 of 1000" in said, said
    assert served(said)["Barrier"][0] >= 500, said


@in_long
@pytest.mark.parametrize("what", ["revoke", "death"])
def test_programs_recover_as_under_their_mpi_alone(what):
    mpi = mpi_of("openmpi5")
    mpicc = mpicc_of(mpi)
    program = compiled(mpicc, "recovers")
    tolerant = dataclasses.replace(mpi, mpiexec=(*mpi.mpiexec, "--with-ft", "ulfm"))
    status, said = run(tolerant, 3, built(mpicc), program, what)
    assert status == 0 or what == "death", said
    left = 3 - (what == "death")
    assert said.count("first success") == 3 and said.count("then as it should") == 2, said
    assert said.count(f"rest success, {left} of {left}") == left, said
    assert said.count("MPI runs with fault tolerance (ULFM)") == 1, said
    if what == "revoke":  # else nobody comes to MPI_Finalize, which sums up
        assert served(said)["Allreduce"] == (0, 3), said


def test_options_choose_what_is_served():
    mpi = mpi_of("mpich5")
    mpicc = mpicc_of(mpi)
    some = {"PACELINE_PRELOAD": "broadcast,barrier"}
    words = (built(mpicc), compiled(mpicc, "collectives"), "less")
    status, said = run(mpi, 2, *words, **some)
    assert status == 0, said
    ours = {call for call, (count, _) in served(said).items() if count}
    assert ours == {"Bcast", "Barrier"}
    assert passed(said)["Reduce", "PACELINE_PRELOAD"] >= 100, said
    manners = compiled(mpicc, "manners")
    status, said = run(mpi, 2, words[0], manners, "progress", PACELINE_PRELOAD="barrier")
    assert status == 0 and "To change that, unset PACELINE_PRELOAD" in said, said
    status, said = run(mpi, 2, words[0], manners, "progress", PACELINE_PRELOAD="bcast")
    assert status == 0, said
    assert "PACELINE_PRELOAD is 'bcast'; it must be all, none, or a list" in said
    assert "are the host MPI's" in said


def test_ranks_must_have_the_same_options(tmp_path):
    mpi = mpi_of("mpich5")
    mpicc = mpicc_of(mpi)
    script = tmp_path / "one.sh"
    script.write_text(
        f'#!/bin/sh\n[ "$PMI_RANK" = 1 ] && export PACELINE_PRELOAD=barrier\n'
        f'exec {compiled(mpicc, "manners")} progress\n'
    )
    script.chmod(0o755)
    status, said = run(mpi, 2, built(mpicc), script)
    assert status == 0 and said.count("progress ok") == 2, said
    assert said.count("PACELINE_PRELOAD differs between ranks") == 1, said
    assert served(said)["Allreduce"][0] == 0


@pytest.mark.parametrize("name, other", [
    ("mpich5", "openmpi4"), ("openmpi4", "mpich5"), param("mpich5", "mpich4"),
])  # fmt: skip
def test_under_another_mpi_everything_passes(name, other):
    mpi = mpi_of(name)
    program = compiled(mpicc_of(mpi), "manners")
    status, said = run(mpi, 2, built(mpicc_of(mpi_of(other))), program, "progress", "between")
    assert status == 0 and said.count("between ok") == 2, said
    assert said.count("all calls pass through to the host MPI") == 2, said
    assert not served(said)


def test_programs_without_mpi_do_not_notice():
    library = built(mpicc_of(mpi_of("mpich5")))
    done = subprocess.run(["/bin/sh", "-c", "echo well"], env={"LD_PRELOAD": str(library)},
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")


@pytest.mark.parametrize("name, has", [
    ("openmpi4", 44), param("openmpi5", 66), ("mpich5", 129),
])  # fmt: skip
def test_only_calls_of_the_mpi_are_shown(name, has):
    """Blocking ones and those with a request; persistent ones; and both with long counts."""
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    program = compiled(mpicc, "shown", f"-I{ROOT}/src/preload", "-ldl")
    status, said = run(mpi, 1, built(mpicc), program)
    assert status == 0 and f"{has} found, 0 wrong" in said, said


@pytest.mark.parametrize("ranks", [1, 3])
@each("name", ["openmpi4"], ["openmpi5"])
def test_what_another_mpis_library_shows_is_made_or_refused(name, ranks):
    mpi = mpi_of(name)
    program = compiled(mpicc_of(mpi), "narrow", "-ldl")
    status, said = run(mpi, ranks, built(mpicc_of(mpi_of("mpich5"))), program)
    assert status == 0 and said.count(": right\n") == ranks, said
    assert "MPI_Allgather_c: a count exceeds 2147483647" in said, said
    assert ("MPI_Barrier_init: the MPI of this process has no such call" in said) == (
        name == "openmpi4"), said  # fmt: skip


@pytest.mark.parametrize("name, library", [
    ("openmpi4", "mpi_mpifh"), param("mpich4", "mpichfort"),
])  # fmt: skip
def test_fortran_of_an_extension(name, library):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    extension = compiled(mpicc, "fortran", "-shared", "-fPIC", "-Dmain=run", "-Wl,--no-as-needed",
                         f"-l{library}")
    loader = compiled("gcc", "brought", "-ldl")
    status, said = run(mpi, 2, built(mpicc), loader, extension)
    assert status == 0 and "sum 4" in said, said
    assert served(said) == {"Allreduce": (5, 0), "Barrier": (1, 0), "Allgatherv": (1, 0),
                            "Iallreduce": (1, 0), "Ibarrier": (1, 0)}, said


@pytest.mark.parametrize("name", ["openmpi4", "mpich5"])  # without long counts, and by them
def test_mpi4py_is_served(name):
    pytest.importorskip("mpi4py")
    mpi = mpi_of(name)
    program = (
        "from mpi4py import MPI; import numpy; x = numpy.arange(9.) + MPI.COMM_WORLD.rank; "
        "y = numpy.empty(9); MPI.COMM_WORLD.Allreduce(x, y); "
        "assert (y == 2 * numpy.arange(9.) + 1).all(); "
        "[MPI.COMM_WORLD.Alltoall(x[:2].copy(), y[:2]) for _ in range(28)]"
    )
    status, said = run(mpi, 2, built(mpicc_of(mpi)), sys.executable, "-c", program,
                       MPI4PY_LIBMPI=str(mpi.library))
    assert status == 0, said
    assert served(said)["Allreduce"][0] >= 1, said
    assert served(said)["Alltoall"] == (28, 0), said


@in_long
def test_who_is_missing_is_said_after_half_a_minute():
    pytest.importorskip("mpi4py")
    mpi = mpi_of("mpich5")
    program = ("from mpi4py import MPI; import time; MPI.COMM_WORLD.Barrier(); "
               "time.sleep(33 * MPI.COMM_WORLD.rank); MPI.COMM_WORLD.Barrier()")
    status, said = run(mpi, 2, built(mpicc_of(mpi)), sys.executable, "-c", program,
                       MPI4PY_LIBMPI=str(mpi.library), PACELINE_TIMEOUT_MS="")
    assert status == 0 and re.search(r"rank 0 has waited 3\d s; rank 1 ", said), said


def test_command_says_where_and_what_to_do(capsys, tmp_path):
    mpicc = mpicc_of(mpi_of("mpich5"))
    library = built(mpicc)
    assert main(["preload", "--mpicc", mpicc]) == 0
    assert capsys.readouterr().out.strip() == str(library)
    with pytest.raises(UsageError, match="there is no program"):
        library_for(str(tmp_path / "mpicc"))
    other = tmp_path / "mpicc"
    other.write_text("#!/bin/sh\necho gcc -I/nowhere/include\n")
    other.chmod(0o755)
    with pytest.raises(ResourceError, match=f"./dev build --mpicc {other}"):
        library_for(str(other))
    other.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(UsageError, match="exit status 3"):
        library_for(str(other))
