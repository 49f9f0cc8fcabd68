"""Worlds under srun and sbatch, in a Slurm of two nodes on this machine."""

import re
import shlex
import sys
import time

import launched
import mpis
import pytest
import slurms
from length import in_long, param

from paceline.launch import held_port

pytestmark = pytest.mark.ranks

MPIS = mpis.found()
INTERFACE = {"mpich": "pmi2", "openmpi": "pmix"}
UNDER_MPI = launched.RANKS / "under_mpi.py"
STARTS = launched.RANKS / "starts.py"
REQUEUED = launched.RANKS / "requeued.py"

# Both nodes are this machine: their ranks use MPI between them only if they are told to.
APART = ("bash", "-c", 'PACELINE_NODE=$SLURMD_NODENAME exec "$@"', "bash")
# What scripts for srun write that use no MPI.
BY_HAND = (
    "bash", "-c",
    'RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS MASTER_ADDR=127.0.0.1 exec "$@"', "bash",
)  # fmt: skip

each = pytest.mark.parametrize("host", MPIS, ids=str)


@pytest.fixture(scope="session")
def slurm():
    reason = slurms.missing()
    if reason:
        pytest.skip(reason)
    with slurms.Slurm() as running:
        # Slurm names on stderr which of its plug-ins have been installed.
        running.interfaces = running.run("srun", "--mpi=list")
        yield running


def srun(slurm, interface, shape, *words, before=(), host=None, **env):
    """(status, stdout, stderr) of a Python program under srun."""
    if interface not in str(slurm.interfaces):
        pytest.skip(f"this Slurm has no plug-in for {interface}")
    settings = {**(host.environment() if host else {}), **env}
    command = ["srun", f"--mpi={interface}", *shape.split(), *before, sys.executable, *words]
    return slurm.run(*command, env=settings)


def sums(ranks):
    """What starts.py prints on so many ranks."""
    return [f"rank {r} of {ranks}: {ranks * (ranks + 1) // 2}" for r in range(ranks)]


# Not 3 ranks on a node: Open MPI 5's MPI_Init then fails with PMIx 4.2.2, Debian 12's.
@each
@pytest.mark.parametrize("shape, before", [param("-N1 -n2", ()), param("-N2 -n3", ()),
                                           ("-N2 -n3", APART)])
def test_worlds(slurm, host, shape, before):
    status, out, errors = srun(
        slurm, INTERFACE[host.family], shape, STARTS, "init", before=before, host=host
    )
    assert status == 0, errors
    assert sorted(out.splitlines()) == sums(int(shape[-1]))


@in_long
@pytest.mark.parametrize("interface", INTERFACE.values())
def test_library_is_found(slurm, interface):
    family = next(f for f, name in INTERFACE.items() if name == interface)
    if not any(m.family == family and str(mpis.SYSTEM) in str(m.library) for m in MPIS):
        pytest.skip("no MPI of that family where the loader looks")
    status, out, errors = srun(slurm, interface, "-N2 -n4", STARTS, "init")
    assert status == 0, errors
    assert sorted(out.splitlines()) == sums(4)


@in_long
@each
def test_wrong_interface(slurm, host):
    wrong = next(name for family, name in INTERFACE.items() if family != host.family)
    status, out, _ = srun(slurm, wrong, "-N1 -n2", UNDER_MPI, "init", host=host)
    assert status == 3, out
    assert out.count("RefusalError: init: ") == out.count("every rank would be alone") == 2, out
    assert f"`srun --mpi={INTERFACE[host.family]}`" in out and str(host.library) in out, out


@in_long
def test_without_mpi(slurm):
    status, out, _ = srun(slurm, "none", "-N1 -n2", UNDER_MPI, "init")
    assert status == 3 and out.count("RefusalError: init: srun started 2 ranks without") == 2, out


@in_long
@pytest.mark.parametrize("interface, shape, before", [
    ("pmi2", "-N2 -n2", ()), ("pmix", "-N1 -n2", ()), ("none", "-N1 -n2", BY_HAND),
    ("pmi2", "-N1 -n2", BY_HAND),
])  # fmt: skip
def test_torch(slurm, interface, shape, before):
    pytest.importorskip("torch")
    host = next((m for m in MPIS if INTERFACE[m.family] == interface), None)
    with held_port() as free:
        port = {"MASTER_PORT": str(free)} if before else {}
        status, out, errors = srun(
            slurm, interface, shape, STARTS, "both", before=before, host=host, **port
        )
    assert status == 0, errors
    assert sorted(out.splitlines()) == sums(2)


@in_long
def test_batch_script(slurm, tmp_path):
    """Its own process is alone; srun inside of it starts a world, as does mpiexec."""
    host = next(m for m in MPIS if m.family == "mpich")
    script, told = tmp_path / "batch.sh", tmp_path / "told"
    script.write_text(f"""#!/bin/bash
{sys.executable} {UNDER_MPI} alone
srun --mpi=pmi2 {sys.executable} {STARTS} init
{" ".join(map(str, host.command(2, sys.executable, STARTS, "init")))}
""")
    status, _, errors = slurm.run(
        "sbatch", "--wait", "-N2", "-n3", "-o", told, script, env=host.environment()
    )
    lines = told.read_text().splitlines()
    assert status == 0, errors + told.read_text()
    assert lines[0] == "0 1 no mpi"
    assert sorted(lines[1:4]) == sums(3) and sorted(lines[4:]) == sums(2)


@in_long
@pytest.mark.parametrize("interface, before, error", [
    ("pmi2", (), r"RankLost: allreduce .* rank 2 is lost: its process has died"),
    ("pmix", (), r"RankLost: allreduce .* rank 2 is lost: its process has died"),
    ("pmi2", APART, r"TimeoutError: allreduce .* rank 2 (?:has not called|does not answer)"),
])  # fmt: skip
def test_killed_rank(slurm, interface, before, error):
    """The others end by themselves: srun lets them wait."""
    host = next(m for m in reversed(MPIS) if INTERFACE[m.family] == interface)
    status, out, errors = srun(slurm, interface, "-N2 -n3", UNDER_MPI, "killed", before=before,
                               host=host, PACELINE_TIMEOUT_MS="3000")
    assert status not in (0, -1), out + errors
    assert len(re.findall(error, out)) == 2, out + errors


@in_long
@pytest.mark.parametrize("interface", INTERFACE.values())
def test_rank_that_does_not_come(slurm, interface):
    """It waits in MPI_Init for it, but not for ever."""
    come = "import os, paceline; os.environ['SLURM_PROCID'] == '1' or paceline.init()"
    host = next(m for m in MPIS if INTERFACE[m.family] == interface)
    status, out, errors = srun(slurm, interface, "-N1 -n2", "-c", come, host=host,
                               PACELINE_START_TIMEOUT_MS="2000")
    assert status == 1, out + errors
    assert "rank 0 of 2: MPI has not started within 2000 ms" in errors, errors


def until(is_so, told):
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, told.read_text()
        time.sleep(0.1)


@in_long
@pytest.mark.parametrize("ending", ["killed", "under_way"])
@pytest.mark.parametrize("how, interface", [
    ("init", "pmi2"), ("init", "pmix"), ("torch", "none"), ("folder", "none"),
])  # fmt: skip
def test_requeued(slurm, tmp_path, how, interface, ending):
    """A job that starts again, with the number and the ports it had: one world, on one node."""
    if how == "torch":
        pytest.importorskip("torch")
    if interface not in str(slurm.interfaces):
        pytest.skip(f"this Slurm has no plug-in for {interface}")
    host = next((m for m in MPIS if INTERFACE[m.family] == interface), None)
    before = shlex.join(BY_HAND) if how == "torch" else ""
    (tmp_path / "store").mkdir()
    program = shlex.join([sys.executable, str(REQUEUED), how, ending, str(tmp_path)])
    script, told = tmp_path / "batch.sh", tmp_path / "told"
    script.write_text(f"""#!/bin/bash
srun --mpi={interface} {before} {program} &
while [ -z "$SLURM_RESTART_COUNT" ]; do
  [ -e {tmp_path}/0 -a -e {tmp_path}/1 -a -e {tmp_path}/2 ] && scontrol requeue $SLURM_JOB_ID
  sleep 0.1
done
wait $!
""")
    with held_port() as free:
        settings = {**(host.environment() if host else {}), "MASTER_PORT": str(free)}
        status, out, errors = slurm.run("sbatch", "--parsable", "--requeue", "-N2", "-n3",
                                        "--open-mode=append", "-o", told, script, env=settings)
        assert status == 0, errors
        job = ["scontrol", "--oneliner", "show", "job", out.strip()]
        until(lambda: "JobState=PENDING Reason=BeginTime" in slurm.tell(*job), told)
        # The news that its first run is over must not be taken for news of the second; and slurmd
        # runs nothing of a job in the second in which it was told to end it.
        until(lambda: not slurm.tell("pgrep", "-f", rf"^slurmstepd: \[{job[-1]}\."), told)
        time.sleep(2)
        slurm.tell("scontrol", "update", f"JobId={job[-1]}", "StartTime=now")
        end = "FAILED" if how == "folder" else "COMPLETED"
        until(lambda: f"JobState={end}" in slurm.tell(*job), told)
    said = told.read_text()
    if how == "folder":  # which init() wants new for each run
        assert len(re.findall("is in the store from an earlier run", said)) == 3, said
    else:
        lines = sorted(line for line in said.splitlines() if line.startswith("run "))
        assert lines == [f"run 1: rank {r} of 3: 6, nodes 1" for r in range(3)], said
