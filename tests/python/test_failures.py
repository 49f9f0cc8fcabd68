"""When ranks die, leave, are late or find no room: every other rank hears of it, with a name."""

import ast
import re
import subprocess
import tempfile

import launched
import mpis
import pytest
from length import each

pytestmark = pytest.mark.ranks


# No more than this later than it should be: the lower bound tells that a limit is kept, and who
# waits for ever, or for another limit, waits longer. A busy machine is slow.
GRACE_S = 10


def told(what, ranks=3, first=("failing.py",), grace_s=10, **env):
    """Runs failing.py; the lines of each rank, as (class, seconds, message)."""
    with tempfile.TemporaryDirectory() as notes:
        env["NOTES"] = notes
        run = launched.start(first[0], ranks, *first[1:], what, env=env, grace_s=grace_s)
    assert "Traceback" not in run.text(), run.text()
    lines = {}
    for rank in range(ranks):
        text = run.text(rank, "stdout")
        lines[rank] = [
            (match[1], float(match[2] or 0), match[3])
            for match in re.finditer(r"^(\w+)(?: ([\d.]+))? ?(.*)$", text, re.MULTILINE)
        ]
    return run, lines


@pytest.fixture(autouse=True)
def nothing_left(tmp_path, monkeypatch):
    """Whatever happens, shared memory and temporary folders are gone afterwards."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert launched.left() == []
    assert list(tmp_path.glob("paceline-*")) == []


@pytest.mark.parametrize("what", ["killed", "killed_while_sending", "killed_unnoticed"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_killed_rank(what, ranks):
    run, lines = told(what, ranks)
    assert run.status == 128 + 9
    for rank in range(ranks - 1):
        assert lines[rank], run.text()
        for kind, seconds, message in lines[rank]:
            assert kind == "RankLost", message
            assert seconds < GRACE_S
            assert f"rank {ranks - 1}" in message, message


def test_rank_that_runs_out_of_memory(control_group):
    """Really: more than its control group may have, so that the system kills it."""
    run, lines = told("out_of_memory", 3, GROUP=str(control_group("memory", "100M")))
    assert run.status == 128 + 9 and lines[2] == [], run.text()
    for rank in range(2):
        assert [line[0] for line in lines[rank]] == ["RankLost"] * 2, run.text()
        assert lines[rank][0][1] < GRACE_S and "rank 2 is lost" in lines[rank][0][2], run.text()


@pytest.mark.parametrize("progress", ["thread", "caller"])
def test_rank_that_is_refused_memory(progress):
    """It says so, and the others hear it: nobody waits for a rank that cannot take part."""
    run, lines = told("no_memory", 3, PACELINE_PROGRESS=progress)
    assert run.status == 0, run.text()
    for rank in range(3):
        first, again, broken = lines[rank]
        assert first[0] == again[0] == "ResourceError" and first[1] < GRACE_S
        assert "rank 2" in first[2] and "memory" in first[2] and broken[2], run.text()


def test_broken_communicators_that_are_closed_keep_nothing():
    run, lines = told("broken_and_closed", 2)
    assert run.status == 0, run.text()
    for rank in range(2):
        assert [line[0] for line in lines[rank]] == ["TimeoutError"] * 6 + ["kept"], run.text()
        kept = ast.literal_eval(lines[rank][-1][2])
        assert len(set(kept[1:])) == 1, kept


@pytest.mark.parametrize("ranks", [2, 3])
def test_rank_that_left(ranks):
    run, lines = told("left", ranks)
    assert run.status == 0
    for rank in range(ranks - 1):
        ((kind, seconds, message),) = lines[rank]
        assert kind == "RankLost" and f"rank {ranks - 1}" in message, message
        assert seconds < GRACE_S


def test_finalize_and_init_again():
    run, lines = told("finalized", 2)
    assert run.status == 0, run.text()
    for rank in range(2):
        ((kind, _, message),) = lines[rank]
        assert kind == "UsageError" and "left" in message, message


@pytest.mark.parametrize("progress", ["thread", "caller"])
def test_late_rank_is_named(progress):
    _, lines = told("late", 3, PACELINE_PROGRESS=progress)
    for rank in (0, 2):
        ((kind, seconds, message),) = lines[rank]
        assert kind == "TimeoutError" and 0.6 < seconds < 0.7 + GRACE_S, (kind, seconds, message)
        assert "allreduce" in message
    named = lines[0][0][2] + lines[2][0][2]
    assert "rank 1 has" in named, named  # what it did last
    ((kind, _, message),) = lines[1]  # it hears why nobody waited
    assert kind == "TimeoutError", message


def test_who_waits_long_says_so_once():
    run, _ = told("late", 3, PACELINE_WARN_MS="200")
    said = run.text(stream="stderr")
    for rank in (0, 2):
        line = (rf"^paceline: allreduce #2 .*: rank {rank} has waited \d+ s; "
                r".*rank 1 has .*barrier #1")
        assert len(re.findall(line, said, re.MULTILINE)) == 1, said


def test_late_request():
    _, lines = told("late_request", 2)
    (first, again), ((kind, _, _),) = lines[0], lines[1]
    assert first[0] == again[0] == kind == "TimeoutError"
    assert 0.4 < first[1] < 0.5 + GRACE_S and first[2] == again[2]


def test_a_limit_of_one_wait_ends_with_it():
    run, lines = told("late_after_a_limited_wait", 2)
    assert run.status == 0, run.text()
    for rank in (0, 1):
        assert [kind for kind, _, _ in lines[rank]] == ["nothing"] * 4, run.text()


def test_a_communicator_has_a_limit_of_its_own():
    _, lines = told("late_of_two", 3)
    for rank in (0, 2):
        limits, *waited, last = lines[rank]
        assert limits[2] == "[400, 400]" and last[0] == "nothing"
        for kind, seconds, message in waited:
            assert kind == "TimeoutError" and 0.3 < seconds < 0.4 + GRACE_S, message
            assert "has waited 0.4 s" in message and "rank 1" in message, message


def test_interrupt():
    run, lines = told("interrupted", 2)
    assert run.status == 0, run.text()
    kind, seconds, _ = lines[0][0]
    assert kind == "KeyboardInterrupt" and seconds < 1 + GRACE_S
    assert lines[0][1][0] == lines[1][0][0] == "sum"
    assert [line for line in run.text(stream="stdout").splitlines() if line == "sum 2.0"] != []


def test_rank_that_never_starts():
    run, lines = told("absent", 2, PACELINE_START_TIMEOUT_MS="800")
    ((kind, seconds, message),) = lines[0]
    assert kind == "TimeoutError" and 0.5 < seconds < 0.8 + GRACE_S, message
    assert "Did every rank start" in message


@pytest.mark.parametrize("variable", ["PACELINE_STAGE_BYTES", "PACELINE_SHM_BYTES"])
def test_memory_that_ranks_would_share_differs(variable):
    script = launched.RANKS / "failing.py"
    _, lines = told("differing", 3, ["with_values.py", variable, "8MiB,8MiB,4MiB", script])
    option = variable.removeprefix("PACELINE_").lower()
    for rank in range(3):
        ((kind, seconds, message),) = lines[rank]
        assert kind == "UsageError" and seconds < GRACE_S, message
        assert f"{option} differs" in message and variable in message, message
        assert "rank 0: 8 MiB" in message and "rank 2: 4 MiB" in message, message


def test_no_room_in_the_folder(small_memory):
    """Ranks take memory that is in no folder, and leave nothing in this one."""
    tiny_folder = small_memory("256k")
    _, lines = told("no_room", 2, PACELINE_SHM_DIR=str(tiny_folder))
    assert [kind for rank in range(2) for kind, _, _ in lines[rank]] == ["nothing"] * 2, lines
    assert list(tiny_folder.iterdir()) == []


def test_no_free_page_makes_no_nodes(small_memory):
    """Ranks of a machine whose folder is full from the beginning still share memory."""
    folder = small_memory("64k")
    (folder / "full").write_bytes(bytes(64 << 10))
    said = launched.start("count_nodes.py", 2, env={"PACELINE_SHM_DIR": str(folder)})
    assert said.text() == "nodes 1\nnodes 1"


SPACES = {
    "processes": ["unshare", "--pid", "--fork", "--mount-proc"],
    "processes, with the /proc of the others": ["unshare", "--pid", "--fork"],
    "users": ["unshare", "--user", "--map-root-user"],
}


@each("name", ["mpich5"], ["mpich4"])
@each("space", ["processes", "users"], ["processes, with the /proc of the others"])
def test_ranks_of_a_machine_that_share_no_memory_say_so(space, name):
    """MPICH carries what they send, by UCX, and one of them says why, once."""
    alone = SPACES[space]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip(f"this user cannot make a space of {space}")
    mpi = next((mpi for mpi in mpis.found() if mpi.name == name), None)
    if not mpi:
        pytest.skip(f"{name} is not installed (./dev mpi)")
    env = {**mpi.environment(), "MPIR_CVAR_CH4_NETMOD": "ucx"}
    said = launched.start("count_nodes.py", 2, *alone, env=env)
    assert said.text(stream="stdout") == "nodes 2\nnodes 2", said.text()
    lines = [line for line in said.text(stream="stderr").splitlines() if "on one machine" in line]
    assert len(lines) == 1, said.text()
    assert re.search("rank (0 and rank 1|1 and rank 0) share no memory: shm: /proc/", lines[0])


def test_no_mpi_for_ranks_that_count_as_on_several_nodes():
    said = launched.start("on_nodes.py", 2, "0,1", launched.RANKS / "count_nodes.py",
                          env={"PACELINE_MPI": "/nonexistent/libmpi.so"}).text()
    assert "they are on different machines, or PACELINE_NODE differs. Between nodes" in said
    assert "libmpi.so.40. Either `pip install 'paceline[mpi]'` on every node and start as" in said


def test_no_folder_for_shared_memory():
    """Each rank says so; that they reach nobody's memory is no news then."""
    said = launched.start("count_nodes.py", 2, env={"PACELINE_SHM_DIR": "/nonexistent"}).text()
    assert "ResourceError: shm: no unnamed file can be made in '/nonexistent'" in said, said
    assert "share no memory" not in said, said


def test_no_room_in_shared_memory(small_memory):
    """Nor is there memory in no folder: every rank gets an error, one of which names the folder."""
    tiny_folder = small_memory("4k")   # not even for the shortest rings
    script = ["cramped.py", launched.RANKS / "failing.py"]
    _, lines = told("no_room", 2, script, PACELINE_SHM_DIR=str(tiny_folder))
    kinds = {kind for rank in range(2) for kind, _, _ in lines[rank]}
    assert kinds <= {"ResourceError", "RankLost", "TimeoutError"} and "ResourceError" in kinds
    message = next(m for rank in range(2) for k, _, m in lines[rank] if k == "ResourceError")
    assert str(tiny_folder) in message, message
    assert list(tiny_folder.iterdir()) == []


def test_shared_memory_is_gone_at_once():
    """What ranks share has no name any more once all have it: not even a crash leaves anything."""
    code = "paceline.init(); import os; print(os.listdir(os.environ['PACELINE_SHM_DIR']))"
    assert launched.start("one.py", 1, code).text() == "[]"
