"""Worlds through MPI: under every mpiexec found, beside mpi4py, and between nodes of torchrun."""

import json
import os
import re
import subprocess
import sys

import launched
import mpis
import pytest
from length import LONG, each, in_long, param

from paceline import launchers, mpi
from paceline_bench.measure import campaign
from paceline.launch import held_port

pytestmark = pytest.mark.ranks
NEWEST = [m for m in mpis.found() if m.name in ("openmpi5", "mpich5")]
MPIS = mpis.found() if LONG else NEWEST  # test_mpi.py has the older ones always
for family in ("openmpi", "mpich"):  # almost all below is about both
    if family not in {m.family for m in MPIS}:
        pytest.skip(f"{family}5 is not installed (./dev mpi)", allow_module_level=True)
CAN_START = [m for m in MPIS if m.family == "mpich"]
WHEELS = [name for name in ("openmpi5", "mpich5", "impi")  # Intel's is there for some processors
          if any((mpis.ROOT / "build/mpi" / name / "lib").glob("libmpi.so.*"))]
# mpi4py's wheel asks for libmpi.so.12 by that name, which Debian's MPICH does not have.
WITH_MPI4PY = [m for m in MPIS if m.name != "mpich4"]
ONLY_MPI = ("PACELINE_TRANSPORT", "mpi")
HARD_LIMIT_S = 90
each_host = pytest.mark.parametrize("host", MPIS, ids=str)
each_that_starts = pytest.mark.parametrize("host", CAN_START, ids=str)


# --- under mpiexec ---------------------------------------------------------------------------


@each("host", MPIS[:1], MPIS[1:])
@pytest.mark.parametrize("ranks, nodes", [param(2, "0,1"), (3, "0,0,1")])
def test_collectives(host, ranks, nodes):
    assert launched.failures("collective_checks", ranks, mpi=host, nodes=nodes) == {}


@each("host", CAN_START[-1:], [m for m in MPIS if m not in CAN_START[-1:]])
def test_requests_over_mpi_alone(host):
    assert launched.failures("request_checks", 3, ONLY_MPI, mpi=host) == {}


@each_host
def test_own_collectives(host):
    assert launched.failures("host_checks", 3, mpi=host) == {}


def test_bench_against_mpi(tmp_path):
    """In processes of the mpiexec that belongs to the library, with both in the record."""
    host, file = CAN_START[0], tmp_path / "records.json"
    main = "import sys; from paceline.cli import main; sys.exit(main())"
    command = [
        sys.executable, "-c", main, "bench", "allreduce", "--sizes", "1KiB", "--repeats", "2",
        "--against", "mpi", "--mpi", str(host.library), "--json", str(file), "--mpi-set",
        "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=ring",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert [row["library"] for row in found["records"]] == ["paceline", "mpi"]
    assert found["records"][0]["peer"]["name"] == "mpi"
    assert {row["timed"] for row in found["records"]} == {"natively"}
    assert not [note for note in found["notes"] if "mpi at" in note and "fastest" not in note]
    assert found["mpi"]["set"] == {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring"}
    assert found["mpi"]["library"] == str(host.library) and "MPICH" in found["mpi"]["version"]
    assert found["mpi"]["mpiexec"][0] == host.mpiexec[0]


@each("name", WHEELS[:1], WHEELS[1:])
def test_bench_of_a_node(name, tmp_path):
    """The whole table, as short as it gets: a campaign with a series of all settings."""
    command = [
        sys.executable, str(mpis.ROOT / "bench/node/run.py"), "--mpis", name, "--collectives",
        "allreduce", "--settings", "default,reduce_scatter_allgather", "--sizes", "64,32KiB",
        "--launches", "1", "--repeats", "2", "--out", str(tmp_path),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    file = tmp_path / "node.csv"
    assert str(mpis.ROOT) not in file.read_text(encoding="utf-8")
    assert list(found := campaign.read(file)) == [f"node-{name}-allreduce"]
    settings = found[f"node-{name}-allreduce"]
    more = ["reduce_scatter_allgather"] if name == "mpich5" else []
    assert list(settings) == ["default", *more]
    for setting, content in settings.items():
        assert {(row["bytes"], row["variant"]) for row in content["records"]} == {
            (size, name) for size in (64, 32768) for name in ("paceline", "paceline shared", "mpi")}
        assert bool(content["mpi"]["set"]) == (setting != "default")


@each_host
def test_library_is_found(host):
    """Without a word about it: that of the launcher, whatever else there is."""
    settings = {"PACELINE_MPI": "", "MPI4PY_LIBMPI": ""}
    run = launched.start("starts.py", 2, "init", mpi=host, env=settings, timeout_s=HARD_LIMIT_S)
    assert run.status == 0, run.text()
    assert sorted(run.text(stream="stdout").split("\n")) == ["rank 0 of 2: 3", "rank 1 of 2: 3"]


@each_host
def test_one_rank_needs_no_mpi(host):
    run = launched.start("under_mpi.py", 1, "alone", mpi=host, timeout_s=HARD_LIMIT_S)
    assert run.text(stream="stdout") == "0 1 no mpi"


def test_shm_alone_refuses_other_nodes():
    run = launched.start(
        "on_nodes.py", 2, "0,1", launched.RANKS / "under_mpi.py", "init", mpi=MPIS[0],
        env={"PACELINE_TRANSPORT": "shm"}, timeout_s=HARD_LIMIT_S,
    )  # fmt: skip
    assert run.status and "transport=shm forbids" in run.text(), run.text()


def test_stages_that_would_differ_are_an_error_at_once():
    run = launched.start(
        "with_values.py", 2, "PACELINE_STAGE_BYTES", "8MiB,4MiB", launched.RANKS / "under_mpi.py",
        "init", mpi=MPIS[0], timeout_s=HARD_LIMIT_S,
    )  # fmt: skip
    assert run.status, run.text()
    assert "stage_bytes differs between ranks (rank 0: 8 MiB" in run.text(), run.text()


@pytest.mark.parametrize("host", [MPIS[0], None], ids=str)
def test_little_shared_memory(host, small_memory):
    """For the inboxes, and then no more: stages are made besides or, where a sandbox forbids that,
    ranks send messages; one of them says so."""
    env = {"PACELINE_SHM_DIR": str(small_memory("2300k")), "PACELINE_SHM_BYTES": "1MiB"}
    starts = launched.RANKS / "starts.py"
    for script, words, warnings in ("starts.py", [], 0), ("cramped.py", [starts], 1):
        run = launched.start(
            script, 2, *words, "init", mpi=host, env=env, timeout_s=HARD_LIMIT_S)
        assert run.status == 0, run.text()
        lines = run.text(stream="stdout").split("\n")
        assert sorted(lines) == ["rank 0 of 2: 3", "rank 1 of 2: 3"]
        assert run.text(stream="stderr").count("they send messages") == warnings, run.text()


# --- with mpi4py -----------------------------------------------------------------------------


@pytest.mark.parametrize("host", WITH_MPI4PY, ids=str)
@pytest.mark.parametrize("ranks, first", [(3, "mpi4py"), param(2, "mpi4py"), param(3, "paceline")])
def test_beside_mpi4py(host, ranks, first):
    pytest.importorskip("mpi4py")
    assert launched.failures("mpi4py_checks", ranks, ("FIRST", first), mpi=host) == {}


# --- torch -----------------------------------------------------------------------------------


def torchrun(*words, ranks=2, env=None, agents=1):
    """What a script prints under torchrun, sorted; on two agents they meet on this machine."""
    if agents == 1:
        return agents_told(["--standalone", f"--nproc-per-node={ranks}", *words], 1, env)
    with held_port() as port:
        return agents_told([
            f"--nnodes={agents}", f"--nproc-per-node={ranks // agents}", "--rdzv-backend=c10d",
            f"--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1", *words,
        ], agents, env)  # fmt: skip


def agents_told(words, agents, env):
    """The lines that so many torchruns with these words print, sorted."""
    command = [sys.executable, "-m", "torch.distributed.run", *map(str, words)]
    settings = {**os.environ, **launched.limits(), **(env or {})}
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env=settings)
        for _ in range(agents)
    ]  # fmt: skip
    try:
        told = [agent.communicate(timeout=launched.PATIENT_S) for agent in running]
    finally:
        for agent in running:
            agent.kill()
    for agent, (_, errors) in zip(running, told, strict=True):
        assert agent.returncode == 0, launched.errors_of_ranks(errors)
    return sorted(line for out, _ in told for line in out.splitlines())


def losses_under(host, ranks):
    run = launched.start("losses.py", ranks, mpi=host, env=launched.PATIENT,
                         timeout_s=launched.PATIENT_S)  # fmt: skip
    assert run.status == 0, run.text()
    return sorted(run.text(stream="stdout").splitlines())


@in_long
@pytest.mark.parametrize("ranks", [2, 3])
def test_training_is_the_same_everywhere(ranks):
    """The same bits under torchrun, under each mpiexec, and between nodes."""
    pytest.importorskip("torch")
    expected = torchrun(launched.RANKS / "losses.py", ranks=ranks, env=launched.PATIENT)
    assert len(expected) == ranks and all(line.count("0x") == 8 for line in expected), expected
    for host in NEWEST:
        assert losses_under(host, ranks) == expected, host
    if ranks == 2:
        return
    wrapped = [launched.RANKS / "on_nodes.py", "0,1,1", launched.RANKS / "losses.py"]
    found = torchrun(*wrapped, ranks=ranks, env={**CAN_START[0].environment(), **launched.PATIENT})
    assert found == expected, "between nodes"


@each("host", NEWEST[:1], NEWEST[1:])
@each("how", ["both"], ["autoload"])
def test_torch_starts(host, how):
    pytest.importorskip("torch")
    run = launched.start("starts.py", 2, how, mpi=host)
    assert run.status == 0, run.text()
    assert sorted(run.text(stream="stdout").split("\n")) == ["rank 0 of 2: 3", "rank 1 of 2: 3"]


@in_long
def test_torch_with_two_agents():
    """Four ranks of two torchruns that count as two nodes."""
    pytest.importorskip("torch")
    words = [launched.RANKS / "on_nodes.py", "0,0,1,1", launched.RANKS / "starts.py", "both"]
    found = torchrun(*words, ranks=4, agents=2, env=CAN_START[0].environment())
    assert found == [f"rank {r} of 4: 10" for r in range(4)]


# --- between nodes, without a launcher of MPI ------------------------------------------------


@each_that_starts
@pytest.mark.parametrize("ranks, nodes", [(3, "0,1,0"), param(2, "0,1"), param(4, "0,0,1,1")])
def test_started_through_the_store(host, ranks, nodes):
    settings = tuple(host.environment().items())
    assert launched.failures("request_checks", ranks, *settings, nodes=nodes) == {}


def refused(what, ranks=2, nodes="0,1", **env):
    """What the ranks say on nodes of their own."""
    run = launched.start(
        "on_nodes.py", ranks, nodes, launched.RANKS / "under_mpi.py", what, env=env,
        timeout_s=HARD_LIMIT_S, grace_s=20,
    )  # fmt: skip
    assert run.status not in (0, 124), run.text()
    return [run.text(rank, "stdout") for rank in range(ranks)]


def test_no_library_for_nodes():
    for text in refused("no library"):
        for words in (
            "ResourceError", "2 ranks on 2 nodes (rank 0 | rank 1)", "on different machines",
            "pip install 'paceline[mpi]'", "mpiexec -n 2", "none was found",
        ):  # fmt: skip
            assert words in text, text


def test_library_that_cannot_be_started():
    openmpi = next(m for m in MPIS if m.family == "openmpi")
    for text in refused("init", PACELINE_MPI=str(openmpi.library)):
        assert "is Open MPI, which only its own launcher can start" in text
        assert "pip install 'paceline[mpi]'" in text


def test_rank_that_does_not_come():
    text = refused("absent", PACELINE_START_TIMEOUT_MS="1500", **CAN_START[0].environment())[1]
    assert "TimeoutError" in text and "Did every rank start" in text, text


# --- what goes wrong under mpiexec -----------------------------------------------------------


def fails(host, what, library=None, **env):
    """What the ranks say; they must have ended by themselves, and with an error."""
    if library:
        env = {"PACELINE_MPI": str(library), "MPI4PY_LIBMPI": str(library), **env}
    run = launched.start("under_mpi.py", 2, what, mpi=host, env=env, timeout_s=HARD_LIMIT_S)
    assert run.status not in (0, 124), run.text()
    return run.text()


@each_host
def test_wrong_family(host):
    other = next(m for m in MPIS if m.family != host.family)
    text = fails(host, "init", other.library)
    assert "RefusalError" in text and "every rank would be alone" in text, text
    assert str(other.library) in text


@pytest.mark.parametrize("host", CAN_START[:1], ids=str)
def test_wrong_family_of_mpi4py(host):
    pytest.importorskip("mpi4py")
    openmpi = next(m for m in MPIS if m.family == "openmpi")
    text = fails(host, "mpi4py first", PACELINE_MPI="", MPI4PY_LIBMPI=str(openmpi.library))
    assert "RefusalError" in text and "in this process already" in text, text


@each_that_starts
def test_launcher_that_is_not_there(host):
    """MPI starts, but alone: what a launcher that it does not understand would lead to."""
    env = {"PMI_RANK": "0", "PMI_SIZE": "4", **host.environment()}
    run = launched.start("under_mpi.py", 1, "init without store", env=env, timeout_s=HARD_LIMIT_S)
    assert run.status == 3, run.text()
    assert "RefusalError" in run.text() and "started 4 ranks, but MPICH" in run.text(), run.text()
    assert "counts 1" in run.text(), run.text()


@pytest.mark.parametrize("path", ["/nowhere/libmpi.so", __file__])
def test_no_library_at_the_path(path):
    text = fails(MPIS[0], "init", path)
    assert "ResourceError" in text and path in text and "cannot be loaded" in text, text


@each_host
def test_killed_rank_ends_the_job(host):
    fails(host, "killed")


@each_host
def test_error_of_a_rank_ends_the_job(host):
    assert "KeyError" in fails(host, "raises")


@each_host
def test_broken_world_ends(host):
    """A rank that goes on after an error does not wait in MPI for those who have left."""
    run = launched.start("under_mpi.py", 3, "left", mpi=host, timeout_s=HARD_LIMIT_S)
    assert run.status != 124 and "RankLost" in run.text(), run.text()


# --- who started this process ----------------------------------------------------------------

SLURM = {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4"}
TORCHRUN = {"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


@pytest.mark.parametrize("env, expected", [
    ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "1"},
     ("openmpi", 1, 4)),
    ({"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_FD": "7"}, ("mpich", 3, 4)),
    ({**SLURM, "PMI_RANK": "2", "PMI_SIZE": "4"}, ("mpich", 2, 4)),
    ({**SLURM, "PMIX_RANK": "2"}, ("openmpi", 2, 4)),
    (SLURM, ("", 2, 4)),
    # One rank, a batch script, a shell on a node, ranks of torchrun or of ours: not under MPI.
    ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),
    # Nor is a script for srun that does all itself; with an MPI interface it is.
    ({**SLURM, **TORCHRUN}, None),
    ({**SLURM, **TORCHRUN, "PMI_RANK": "2", "PMI_SIZE": "4"}, ("mpich", 2, 4)),
    ({"PMI_RANK": "0"}, None),
    ({}, None),
    ({"PMI_RANK": "3", "PMI_SIZE": "4", "TORCHELASTIC_RUN_ID": "x"}, None),
    ({"PMI_RANK": "3", "PMI_SIZE": "4", "PACELINE_STORE": "/x"}, None),
])  # fmt: skip
def test_launcher(env, expected):
    found = launchers.mpi_launcher(env)
    if expected is None:
        assert found is None
    else:
        assert (*found.families[:1], found.rank, found.ranks) == tuple(filter(
            lambda part: part != "", expected))


@pytest.mark.parametrize("per_node, node, expected", [
    ("4", "0", 4), ("2(x2)", "1", 2), ("3(x2),1", "1", 3), ("3(x2),1", "2", 1),
    ("2", "1", None), ("", "0", None), ("two", "0", None), ("2", "", None),
])  # fmt: skip
def test_tasks_of_a_node(per_node, node, expected):
    env = {**SLURM, "PMI_RANK": "2", "PMI_SIZE": "4", "SLURM_LOCALID": "0",
           "SLURM_STEP_TASKS_PER_NODE": per_node, "SLURM_NODEID": node}  # fmt: skip
    found = launchers.mpi_launcher(env)
    assert (found.is_srun, found.local_rank, found.local_ranks) == (True, 0, expected)
    # mpiexec of an allocation, as many ranks as srun has started daemons for it
    found = launchers.mpi_launcher({**env, "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"})
    assert (found.is_srun, found.local_rank, found.local_ranks) == (False, 1, 2)


def test_srun_without_mpi():
    run = launched.start("one.py", 1, "paceline.init()", env=SLURM)
    assert run.text().startswith("RefusalError: init: srun started 4 ranks without"), run.text()


@pytest.mark.parametrize("host", MPIS, ids=str)
def test_family_is_read_from_the_file(host):
    assert mpi.family_of(str(host.library)) == host.family
    assert mpi.family_of(__file__) == mpi.family_of("/nowhere") == ""


def test_doctor_names_the_mpi():
    for host in NEWEST:
        run = launched.start("one.py", 1, """
from paceline.cli.doctor import mpi
found = mpi(2)
print(found.state, found.text)""", env=host.environment())
        assert re.match(rf"ok \S.*{re.escape(str(host.library))} \(PACELINE_MPI names it\)",
                        run.text()), run.text()
    run = launched.start("one.py", 1, """
from paceline.cli.doctor import mpi
print(mpi(2).state)""", env={"PACELINE_MPI": "/nowhere"})
    assert run.text() == "fail"
