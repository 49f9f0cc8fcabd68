"""When ranks are stopped by a signal, or frozen: the others hear of it if that lasts too long."""

import os
from pathlib import Path

import pytest
from length import param
from test_failures import GRACE_S, nothing_left, told  # noqa: F401 - the fixture is for all tests

pytestmark = pytest.mark.ranks


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:1]


@pytest.mark.parametrize("ranks, limit_ms, progress", [
    (2, 600, "caller"), param(3, 600, "thread"), (2, None, "thread")])
def test_stopped_rank(ranks, limit_ms, progress):
    env = {"PACELINE_STOPPED_MS": str(limit_ms)} if limit_ms else {}
    grace_s = 1 if ranks == 2 else 4  # a third rank needs time to say what it has heard
    run, lines = told("stopped", ranks, grace_s=grace_s, PACELINE_PROGRESS=progress, **env)
    assert run.status == 3, run.text()
    for rank in range(ranks - 1):
        (_, lost, again, broken) = lines[rank]
        assert lost[0] == again[0] == "RankLost", run.text()
        assert 0 <= lost[1] - (limit_ms or 5000) / 1000 < GRACE_S
        assert f"rank {ranks - 1} is lost" in lost[2] and "stopped by a signal" in lost[2]
        assert broken[2] and "is lost" in broken[2]
    processes = [int(lines[rank][0][1]) for rank in range(ranks)]
    assert [process for process in processes if is_there(process)] == []


@pytest.mark.parametrize("limit_ms", ["15000", "0"])
def test_rank_that_is_continued_in_time(limit_ms):
    run, lines = told("stopped_and_continued", 2, PACELINE_STOPPED_MS=limit_ms,
                      CONTINUED="after 0.9")
    assert run.status == 0 and [line[0] for rank in lines.values() for line in rank] == (
        ["nothing"] * 4), run.text()


def test_rank_that_is_continued_too_late():
    run, lines = told("stopped_and_continued", 2, PACELINE_STOPPED_MS="500", CONTINUED="when")
    assert [line[0] for rank in lines.values() for line in rank] == ["RankLost"] * 4, run.text()
    assert "rank 1 is lost" in lines[1][0][2]   # as it was told


@pytest.mark.parametrize("kind", ["cgroup2", "freezer"])
def test_frozen_rank(kind, control_group):
    """In time and too late, as those that a signal has stopped."""
    group = str(control_group(kind))
    run, lines = told("frozen", 3, PACELINE_STOPPED_MS="600", GROUP=group, CONTINUED="when")
    assert run.status == 0, run.text()
    for rank in range(3):
        assert [line[0] for line in lines[rank]] == ["RankLost"] * 2, run.text()
        _, seconds, message = lines[rank][0]
        assert "rank 2 is lost" in message and "frozen with its control group" in message
        assert rank == 2 or 0.6 <= seconds < 0.6 + GRACE_S, message
    run, lines = told("frozen", 2, PACELINE_STOPPED_MS="15000", GROUP=group, CONTINUED="after 1")
    assert [line[0] for rank in lines.values() for line in rank] == ["nothing"] * 4, run.text()
