"""Programs under a profile: of MPI in C, of the Python API, of torch; clocks that are shifted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import launched
import numpy as np
import pytest
from length import each, param
from test_preload import LIMIT_S, PROGRAMS, built, compiled, mpi_of, mpicc_of, served

from paceline.profiling import calls, files
from paceline.profiling.summary import summarise

pytestmark = pytest.mark.ranks

COLLECTIVES = ("allreduce", "bcast", "reduce", "reduce_scatter_block", "allgather", "barrier",
               "reduce_scatter", "allgatherv", "gather", "gatherv", "scatter", "scatterv",
               "alltoall", "alltoallv", "alltoallw", "scan", "exscan")
NOT_BLOCKING = len(COLLECTIVES) - 2  # all but the two with vectors of vectors


def latest(found):
    """The rank that came last most often. A loaded machine makes others late, too, and once for
    longer than all that a test waits."""
    return max(summarise(found).late, key=lambda late: late.last).rank


# --- programs of MPI ------------------------------------------------------------------------------


def profiled(mpi, tmp_path, ranks, *arguments, program="profiled", flags=(), target=None):
    """(exit status, what was shown, the calls) of a program under `paceline profile`."""
    mpicc = mpicc_of(mpi)
    built(mpicc)
    target = target or compiled(mpicc, program, *flags)
    command = [sys.executable, "-c", "from paceline.cli import main; raise SystemExit(main())",
               "profile", "--out", tmp_path / "out",
               "--mpicc", mpicc, "--room", "1MiB", "--",
               *mpi.command(ranks, target, *arguments)]
    done = subprocess.run(list(map(str, command)), text=True, timeout=LIMIT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **launched.limits(), "COLUMNS": "160"})
    return done.returncode, done.stdout, calls.read(tmp_path / "out")


@each("name", ["openmpi4", "mpich5"], ["openmpi5", "mpich4"])
def test_every_collective_of_mpi_is_recorded(tmp_path, name):
    status, said, found = profiled(mpi_of(name), tmp_path, 3)
    assert status == 0, said
    world = next(group for group in found.groups if group.members == (0, 1, 2))
    halves = [group for group in found.groups if group.members in ((0, 2), (1,))]
    assert len(halves) == 2 and all(len(half.number) == 3 * len(COLLECTIVES) for half in halves)
    longs = 2 if name.startswith("mpich") else 0  # those have MPI 4
    assert len(world.number) == 3 * (len(COLLECTIVES) + NOT_BLOCKING) + longs
    assert world.complete.all() and not np.isnan(world.leave).any(), said
    assert (world.leave >= world.enter).all()
    names = {files.WORDS.get(one, one) for one in COLLECTIVES}
    assert set(world.collective) == names
    assert world.nonblocking.sum() == 3 * NOT_BLOCKING
    sizes = {kind: set(world.bytes[world.collective == kind]) for kind in names}
    assert sizes["allreduce"] == {32} and sizes["barrier"] == {0} and sizes["scan"] == {32}
    for kind in ("allgather", "gather", "gatherv", "scatterv", "alltoallw", "reduce_scatter"):
        assert sizes[kind] == {48}, kind
    assert all("profiled" in site for site in world.site), set(world.site)


@each("name", ["openmpi4"], ["mpich5", "openmpi5", "mpich4"])
def test_a_rank_of_mpi_that_sleeps_is_named(tmp_path, name):
    status, said, found = profiled(mpi_of(name), tmp_path, 3, "late", 1)
    assert status == 0, said
    assert latest(found) == 1 and "rank 1" in said, said


@each("name", ["mpich5"], ["openmpi4", "mpich4"])
def test_a_program_that_dies_leaves_what_there_is(tmp_path, name):
    status, said, found = profiled(mpi_of(name), tmp_path, 3, "die", 2)
    assert status != 0
    world = next(group for group in found.groups if group.members == (0, 1, 2))
    assert world.complete.sum() == 11, said
    assert any("did not end normally" in note for note in found.notes), said


@pytest.mark.parametrize("name, library", [
    ("openmpi4", "mpi_mpifh"), param("mpich4", "mpichfort"),
])  # fmt: skip
def test_a_program_of_fortran_is_recorded_once_and_where_it_calls(tmp_path, name, library):
    flags = ("-Wl,--no-as-needed", f"-l{library}")
    status, said, found = profiled(mpi_of(name), tmp_path, 2, program="fortran", flags=flags)
    assert status == 0 and "sum 4" in said, said
    [group] = found.groups
    assert group.collective.tolist() == [
        *["allreduce"] * 5, "barrier", "allgatherv", "allreduce", "barrier"]
    assert group.bytes.tolist() == [*[32] * 5, 0, 64, 32, 0]
    assert group.nonblocking.tolist() == [False] * 7 + [True] * 2
    assert not np.isnan(group.leave).any(), said
    assert all(site.startswith("fortran") for site in group.site), set(group.site)
    assert latest(found) == 1


@pytest.mark.parametrize("name, starts", [("openmpi4", 0), param("mpich4", 2)])
def test_a_program_of_mpi_f08_is_recorded_where_it_calls(tmp_path, name, starts):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    fortran = shutil.which(Path(mpicc).name.replace("mpicc", "mpifort"))
    if not fortran:
        pytest.skip(f"{mpi} comes without a Fortran compiler")
    built(mpicc)
    target = tmp_path / "f08"
    done = subprocess.run(
        [fortran, "-cpp", *["-DPERSISTENT"] * bool(starts), "-O1", f"-J{tmp_path}",
         PROGRAMS / "f08.f90", "-o", target], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    status, said, found = profiled(mpi, tmp_path, 2, target=target)
    assert status == 0 and "sum  4." in said, said
    world, ring = found.groups
    assert world.collective.tolist() == [
        *["allreduce"] * 5, "barrier", "allreduce", "barrier", *["allreduce"] * starts]
    assert world.nonblocking.tolist() == [False] * 6 + [True] * (2 + starts)
    assert set(world.bytes[world.collective == "allreduce"]) == {32}
    assert ring.collective.tolist() == ["neighbor_allgather"] and ring.bytes.tolist() == [32]
    assert world.complete.all() and not np.isnan(world.leave).any(), said
    assert all(site.startswith("f08") for site in (*world.site, *ring.site)), set(world.site)
    assert latest(found) == 1


@each("name", ["openmpi4", "mpich5"], ["openmpi5", "mpich4"])
def test_neighbourhood_collectives_are_recorded(tmp_path, name):
    status, said, found = profiled(mpi_of(name), tmp_path, 3, "one_node")
    assert status == 0, said
    kinds = [f"neighbor_{one}" for one in
             ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")]
    assert len(found.groups) == 2
    # Two doubles of each neighbour: two of them on the ring, one on the graph.
    for group, nbytes in zip(found.groups, (32, 16)):
        assert group.collective.tolist() == [*kinds, kinds[0], kinds[-1]]
        assert set(group.bytes) == {nbytes} and group.nonblocking.sum() == 2
        assert group.complete.all() and not np.isnan(group.leave).any(), said


@each("name", ["mpich5"], ["openmpi5", "mpich4"])
def test_starts_of_persistent_collectives_are_matched_by_what_was_made(tmp_path, name):
    status, said, found = profiled(mpi_of(name), tmp_path, 3, "persistent")
    assert status == 0 and not found.notes, said
    [world] = found.groups
    assert world.complete.all() and not np.isnan(world.leave).any(), said
    assert len(world.number) == 2 * 3 * 4 + 1 and world.nonblocking.sum() == 24
    kinds = world.collective.tolist()
    assert [kinds.count(kind) for kind in ("allreduce", "broadcast", "barrier", "allgather")] == [
        7, 6, 6, 6]
    assert kinds[-1] == "allreduce" and (np.diff(world.enter.min(axis=1)) >= 0).all()
    assert {kind: set(world.bytes[world.collective == kind]) for kind in set(kinds)} == {
        "allreduce": {32}, "broadcast": {16}, "barrier": {0}, "allgather": {48}}
    assert (world.leave >= world.enter).all() and latest(found) == 1
    assert all("profiled" in site for site in world.site), set(world.site)


@each("name", ["openmpi4"], ["openmpi5", "mpich4"])
def test_the_drop_in_can_serve_what_is_recorded(tmp_path, name):
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    (tmp_path / "out").mkdir()
    env = {**os.environ, **launched.limits(), "PACELINE_PRELOAD_SUMMARY": "on",
           "LD_PRELOAD": str(built(mpicc)), "PACELINE_PROFILE": str(tmp_path / "out")}
    done = subprocess.run(mpi.command(2, compiled(mpicc, "profiled"), "late", 1), env=env,
                          text=True, timeout=LIMIT_S, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0 and served(done.stdout)["Allreduce"] == (20, 0), done.stdout
    found = calls.read(tmp_path / "out")
    assert found.sources == ["mpi"], "the drop-in's own messages are nobody's calls"
    [group] = found.groups
    assert len(group.number) == 20 and latest(found) == 1


def test_a_recorded_call_costs_little(tmp_path):
    """Printed and not judged: other work on the machine has a say in it."""
    mpi = mpi_of("mpich5")
    mpicc = mpicc_of(mpi)
    library, target = built(mpicc), compiled(mpicc, "profiled")
    said = []
    for more in ({}, {"LD_PRELOAD": str(library), "PACELINE_PRELOAD": "none",
                      "PACELINE_PROFILE": str(tmp_path)}):
        done = subprocess.run(mpi.command(1, target, "cost"), env={**os.environ, **more},
                              text=True, timeout=LIMIT_S, capture_output=True)
        assert done.returncode == 0, done.stderr
        said.append(float(done.stdout.split()[0]))
    print(f"{said[0]} ns without a profile, {said[1]} ns with one")
    # Two readings of the clock and one cache line: no lock, no allocation, no call of the system.
    [group] = calls.read(tmp_path).groups
    assert len(group.number) == 100_000


# --- Python and torch -----------------------------------------------------------------------------


def test_a_block_of_the_python_api(tmp_path):
    run = launched.start("profiled.py", 2, "api", tmp_path)
    assert run.status == 0, run.text()
    assert "rank 1" in run.text(0) and "step" in run.text(0)
    found = calls.read(tmp_path)
    world = next(group for group in found.groups if group.members == (0, 1))
    kinds = world.collective.tolist()
    # 15 in the loop, two starts of the plan, one with a tag; splitting is an allgather.
    assert kinds.count("allreduce") == 18 and kinds.count("broadcast") == 15
    assert kinds.count("allgather") == 1 and len(kinds) == 34
    assert world.nonblocking.sum() == 17 and world.complete.all()
    assert not np.isnan(world.leave).any() and (world.leave >= world.enter).all()
    assert set(world.site) == {"", "step", "weights"}
    assert set(world.bytes[world.collective == "allreduce"]) == {4000}
    halves = [group for group in found.groups if len(group.members) == 1]
    assert {half.members for half in halves} == {(0,), (1,)}
    assert latest(found) == 1


def test_communicators_that_ranks_first_use_in_other_orders(tmp_path):
    run = launched.start("profiled.py", 2, "orders", tmp_path)
    assert run.status == 0, run.text()
    found = calls.read(tmp_path)
    assert not found.notes
    assert sorted(group.collective.tolist() for group in found.groups) == [
        ["allreduce"], ["allreduce"], ["barrier"]]
    assert sorted(set(group.bytes[0] for group in found.groups)) == [0, 80, 800]
    assert all(group.complete.all() for group in found.groups)


@each("launcher", ["run"], ["torchrun"])
def test_a_program_of_torch(paceline, tmp_path, monkeypatch, launcher):
    pytest.importorskip("torch", reason="could not import 'torch': extra")
    script = launched.RANKS / "profiled.py"
    start = {
        "run": ["-c", "from paceline.cli import main; raise SystemExit(main())", "run", "-n", 2],
        "torchrun": ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2],
    }[launcher]
    for name, value in launched.limits().items():
        monkeypatch.setenv(name, value)
    status, out, err = paceline("profile", "--out", tmp_path / "out", "--", sys.executable, *start,
                                script, "torch")
    assert status == 0, out + err
    found = calls.read(tmp_path / "out")
    assert latest(found) == 1, out
    assert {row.collective for row in summarise(found).rows} >= {"allreduce"}


def test_a_program_of_python_that_dies_leaves_what_there_is(paceline, tmp_path):
    run = launched.start("profiled.py", 2, "die", env={"PACELINE_PROFILE": str(tmp_path)})
    assert run.status != 0
    found = calls.read(tmp_path)
    [group] = found.groups
    assert group.complete.sum() == 7
    assert any("did not end normally" in note for note in found.notes)
    status, out, _ = paceline("profile", "--read", tmp_path)
    assert status == 0 and "allreduce" in out


def test_a_folder_that_cannot_be_written_to_disturbs_nobody(tmp_path):
    run = launched.start("profiled.py", 2, "barriers", env={"PACELINE_PROFILE": "/proc/no/folder"})
    assert run.status == 0, run.text()
    assert "Nothing is recorded there" in run.text(0) and "PACELINE_PROFILE" in run.text(1)


# --- clocks ---------------------------------------------------------------------------------------


def shift_of_namespaces(found):
    """By rank of a source the measured offset, in seconds, of the first reading."""
    return {one.rank: (one.readings[0].offset_ns * 1e-9, one.readings[0].error_ns * 1e-9)
            for one in found if one.readings}


@each("name", ["mpich5"], ["openmpi4", "mpich4"])
def test_clocks_in_time_namespaces_are_found(tmp_path, name):
    """Rank 1's clock is 500 s ahead, rank 2 reads the same one as rank 0."""
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    library, target = built(mpicc), compiled(mpicc, "profiled")
    needs_time_namespaces()
    command = ["env", f"LD_PRELOAD={library}", "PACELINE_PRELOAD=none",
               f"PACELINE_PROFILE={tmp_path}"]
    shifted = ["unshare", "--time", "--monotonic", "500", "--boottime", "500"]
    start = [*mpi.mpiexec, "-n", "1", *command, target, "late", "0", ":",
             "-n", "1", *shifted, *command, target, "late", "0", ":",
             "-n", "1", *command, target, "late", "0"]
    done = subprocess.run(list(map(str, start)), text=True, timeout=LIMIT_S, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = files.read_folder(tmp_path)
    [(rank, (offset_s, error_s))] = shift_of_namespaces(found).items()
    assert rank == 1 and abs(offset_s - 500) <= error_s
    assert error_s < 1, "else any offset would do"
    together = calls.together(found)
    assert not together.notes and latest(together) == 0


def needs_time_namespaces():
    """Skips the test where this system has none, or gives this user none."""
    probe = subprocess.run(["unshare", "--time", "--monotonic", "500", "true"],
                           capture_output=True)
    if probe.returncode != 0:
        pytest.skip("only root can make time namespaces")


@pytest.mark.parametrize("ahead_s", [0, 500])
def test_clocks_of_nodes_are_found_by_the_core(tmp_path, ahead_s):
    """Three ranks that count as being on two nodes; rank 2's clock may be ahead."""
    mpi = mpi_of("mpich5")
    words = ["0,0,1", launched.RANKS / "in_time.py", 2, ahead_s] if ahead_s else ["0,0,1"]
    if ahead_s:
        needs_time_namespaces()
    run = launched.start("on_nodes.py", 3, *words, launched.RANKS / "profiled.py", "barriers",
                         env={"PACELINE_PROFILE": str(tmp_path), "PACELINE_MPI": str(mpi.library)})
    assert run.status == 0, run.text()
    found = files.read_folder(tmp_path)
    measured = shift_of_namespaces(found)
    together = calls.together(found)
    assert not together.notes and len(set(together.nodes.values())) == 2
    assert together.groups[0].complete.sum() == 15
    if not ahead_s:
        assert not measured, "nodes that read one clock need no message"
        return
    [(rank, (offset_s, error_s))] = measured.items()
    assert rank == 2 and abs(offset_s - ahead_s) <= error_s
    assert error_s < 1, "else any offset would do"
    assert np.nanmax(together.groups[0].enter) < 400, "on rank 0's clock"
