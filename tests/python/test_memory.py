"""What ranks hold does not grow with the number of their calls."""

import itertools
import json

import launched
import pytest
from length import LONG, in_long, param

pytestmark = pytest.mark.ranks

CALLS = 100_000 if LONG else 5_000
STEPS = 10_000 if LONG else 100
# After the first look, which ends the warm-up. Left alone, ranks grow by some pages; 6 bytes a call
# of the long run, or one stage that is not given back each time, do not fit.
ROOM = {"own": 512 << 10, "shared": 1 << 20, "files": 0, "maps": 8, "threads": 0}


def grown(what, looks):
    """By how much from the first look to the last. Memory that an allocator, or the peers' slots,
    take but once is no leak, and how much that is depends on the machine: only what grows in
    each stretch counts, by the least of them. Descriptors and threads are exact."""
    if ROOM[what] == 0:
        return max(looks[1:]) - looks[0]
    return min(b - a for a, b in itertools.pairwise(looks)) * (len(looks) - 1)


def growth(ranks, calls, *words, script="steady.py", **env):
    """By what each rank held more than after the warm-up: (rank, what, how much)."""
    run = launched.start(script, ranks, calls, *words, timeout_s=900 if LONG else 200,
                         env={"PACELINE_TIMEOUT_MS": "60000", **env})  # fmt: skip
    assert run.status == 0, run.text()
    assert launched.left() == []
    found = []
    for rank in range(ranks):
        looks = json.loads(run.text(rank, "stdout").splitlines()[-1])
        found += [(rank, what, grown(what, [look[what] for look in looks])) for what in ROOM]
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


@in_long
def test_steps_of_stores_leave_memory_as_it_was():
    found = growth(2, STEPS, script="steady_store.py")
    assert too_much(found) == [], found


@in_long
def test_a_store_that_kept_gradients_would_be_seen():
    found = too_much(growth(2, STEPS, "kept", script="steady_store.py"))
    assert "own" in {kind for _, kind, _ in found}, found


@in_long
def test_steps_of_overlap_leave_memory_as_it_was():
    pytest.importorskip("torch")
    found = growth(2, STEPS, script="steady_overlap.py")
    assert too_much(found) == [], found


@in_long
def test_an_overlap_that_kept_gradients_would_be_seen():
    pytest.importorskip("torch")
    found = too_much(growth(2, 100, "kept", script="steady_overlap.py"))
    assert "own" in {kind for _, kind, _ in found}, found


@pytest.mark.parametrize("ranks", [2, param(3)])
def test_calls_of_the_world_find_their_staging_buffers_in_place(ranks):
    """In one of three starts at least: the system may take pages away (tests/FLAKY.md)."""
    for _ in range(3):
        run = launched.start("warm.py", ranks)
        assert run.status == 0, run.text()
        found = [json.loads(run.text(rank, "stdout").splitlines()[-1]) for rank in range(ranks)]
        for pages in found:
            assert pages.pop("another communicator") > 200, "buffers that are not there are seen"
        if all(n <= 50 for pages in found for n in pages.values()):
            return
    pytest.fail(f"calls had page faults in three starts of three: {found}")
