"""What ranks hold does not grow with the number of their calls."""

import json

import launched
import pytest
from length import LONG, param

pytestmark = pytest.mark.ranks

CALLS = 100_000 if LONG else 5_000
# Between the first look, after a fifth of the calls, and any later one. Left alone, ranks grow by
# some pages; 6 bytes a call of the long run, or one stage that is not given back, do not fit.
ROOM = {"own": 512 << 10, "shared": 1 << 20, "files": 0, "maps": 8, "threads": 0}


def growth(ranks, calls, *words, **env):
    """By what each rank held more than after the warm-up, at most: (rank, what, how much)."""
    run = launched.start("steady.py", ranks, calls, *words, timeout_s=900 if LONG else 60,
                         env={"PACELINE_TIMEOUT_MS": "60000", **env})  # fmt: skip
    assert run.status == 0, run.text()
    assert launched.left() == []
    found = []
    for rank in range(ranks):
        first, *rest = json.loads(run.text(rank, "stdout").splitlines()[-1])
        found += [(rank, what, max(look[what] for look in rest) - first[what]) for what in first]
    return found


def too_much(found):
    return [one for one in found if one[2] > ROOM[one[1]]]


@pytest.mark.parametrize("ranks, progress", [(2, "thread"), param(3, "caller")])
def test_mixed_calls_leave_memory_as_it_was(ranks, progress):
    found = growth(ranks, CALLS, PACELINE_PROGRESS=progress)
    assert too_much(found) == [], found


@pytest.mark.parametrize("leak, what", [
    param("results", "own"), param("plans", "own"), ("splits", "shared"),
])  # fmt: skip
def test_a_leak_is_seen(leak, what):
    found = too_much(growth(2, 3_000, leak))
    assert what in {kind for _, kind, _ in found}, found
