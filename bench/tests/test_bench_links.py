"""What must cross the borders of nodes, and which figures are refused."""

import json
from types import SimpleNamespace

import pytest
from paceline import _core
from paceline_bench.measure import launching, links, wire_check
from paceline_bench.measure.plan import Plan
from paceline_bench.measure.variants import Variant

COUNT, SIZE = 1 << 10, 4
PLACES = ([[0], [1], [2], [3]], [[0, 1], [2, 3], [4, 5]], [[0, 1, 2], [3]], [[0, 1, 2]])
CLUSTER = links.Cluster(nodes=3, ppn=1, rate=200e6, interface="eth0", folder="", about={})
NBYTES = 1 << 20
BOUND_S = 2 * 2 / 3 * NBYTES * 8 / 200e6


def sending():
    """(collective, algorithm) of those that send their messages."""
    return [(row["collective"], row["name"]) for row in _core.algorithms()
            if row["access"] == "messages"]


@pytest.mark.parametrize("collective, algorithm", sending())
def test_no_schedule_sends_less_than_any_must(collective, algorithm):
    checked = 0
    for ranks_of in PLACES:
        ranks = sum(map(len, ranks_of))
        for root in (0, ranks - 1) if _core.has_root(collective) else (0,):
            world = _core.World(collective, algorithm, ranks, root=root)
            if world.rejects():
                continue
            pieces = 1 if collective in ("allreduce", "reduce", "broadcast") else ranks
            needed = links.least(collective, COUNT * pieces * SIZE, ranks_of, root)
            sends = links.of_schedule(world, COUNT, SIZE, ranks_of)
            names = [str(node) for node in range(len(ranks_of))]
            counted = list(zip(sends.sent, sends.received))
            assert not links.short_of(needed, counted, names), (ranks_of, root)
            checked += 1
    assert checked or collective == "barrier"


@pytest.mark.parametrize("collective, algorithm", [
    ("allreduce", "ring"), ("broadcast", "chain"), ("reduce", "chain"), ("allgather", "ring"),
    ("reduce_scatter", "ring"), ("alltoall", "pairwise"), ("gather", "linear"),
    ("scatter", "linear")])
def test_the_best_schedule_sends_just_that(collective, algorithm):
    ranks_of = PLACES[0]
    pieces = 1 if collective in ("allreduce", "reduce", "broadcast") else 4
    needed = links.least(collective, COUNT * pieces * SIZE, ranks_of)
    sends = links.of_schedule(_core.World(collective, algorithm, 4), COUNT, SIZE, ranks_of)
    assert sends.total == needed.total


@pytest.mark.parametrize("ranks_of", [[[0, 1], [2, 3]], [[0, 2], [1, 3]]])
def test_parts_of_leaders_are_what_their_nodes_ask_for(ranks_of):
    world = _core.World("allreduce", "multilane", 4, **wire_check.nodes(ranks_of))
    sends = links.of_schedule(world, COUNT, SIZE, ranks_of)
    needed = links.least("allreduce", COUNT * SIZE, ranks_of)
    assert sends.total == needed.total
    unaware = links.of_schedule(_core.World("allreduce", "ring", 4), COUNT, SIZE, ranks_of)
    assert unaware.total > needed.total  # so that figures of theirs were refused


def test_a_byte_less_is_refused():
    needed = links.Crossing([10, 20], [30, 40], 35)
    assert links.short_of(needed, [(15, 30), (20, 40)], "ab") == ""
    assert links.short_of(needed, [(16, 30), (19, 40)], "ab").startswith("b sent 19 bytes a call")
    assert "a received 29 bytes a call" in links.short_of(needed, [(15, 29), (20, 40)], "ab")
    assert "all nodes sent 34" in links.short_of(needed, [(14, 30), (20, 40)], "ab")


def test_faster_than_the_links_is_refused_where_bursts_do_not_matter():
    assert not links.too_fast(1.02, NBYTES) and not links.too_fast(3, NBYTES - 1)
    assert not links.too_fast(None, NBYTES)
    assert "1.03 of what the links allow" in links.too_fast(1.03, NBYTES)


def test_the_bound_is_that_of_the_slowest_node():
    assert CLUSTER.bound_s("allreduce", 3, NBYTES) == pytest.approx(BOUND_S)
    assert CLUSTER.bound_s("broadcast", 3, NBYTES) == pytest.approx(NBYTES * 8 / 200e6)
    assert CLUSTER.bound_s("barrier", 3, 0) is None


def test_counters_of_an_interface_that_is_not_there():
    assert all(number >= 0 for number in links.counters("lo"))
    with pytest.raises(LookupError, match="outside the lab"):
        links.counters("eth77")


def test_a_launcher_may_hang_once(monkeypatch):
    ends = [launching.Late("hangs"), "results", launching.Late("hangs"), launching.Late("again")]

    def launch(plan, show):
        end = ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    monkeypatch.setattr(launching, "launch_plan", launch)
    plan = SimpleNamespace(cluster=CLUSTER)
    assert launching.launch_once(plan, None) == "results"
    with pytest.raises(launching.Late, match="again"):
        launching.launch_once(plan, None)
    ends = [launching.Late("here")]  # on this machine nothing may hang
    with pytest.raises(launching.Late, match="here"):
        launching.launch_once(SimpleNamespace(cluster=None), None)


# --- a launch's files -----------------------------------------------------------------------------

RING = Variant("paceline", "ring", 1)
HOST = Variant("mpi")


def launch(variant, sent=1.01, nodes=("a", "b", "c"), calls=4):
    """The files of three ranks; `sent`: of what a ring sends."""
    moved = [int(sent * calls * 4 / 3 * NBYTES)] * 2
    case = {"bytes": NBYTES, "moved": {variant.label: moved}, "calls": {variant.label: calls},
            "explained": {variant.label: "ring: asked for"}, "idle": 0.5}
    return [{"node": node, "cases": [json.loads(json.dumps(case))]} for node in nodes]


def refusal(variant, files, fraction=0.9):
    """Of a launch in which it has reached this fraction of the bound."""
    plan = Plan("allreduce", [NBYTES], 3, "float32", "sum", 0, 0, False, [variant],
                cluster=CLUSTER)
    times = {variant.label: [[BOUND_S / fraction]]}
    return wire_check.refusal(variant, [files], [[rank["cases"][0] for rank in files]], times, plan)


def test_what_crosses_the_links_is_believed():
    assert refusal(RING, launch(RING)) == ""
    assert refusal(HOST, launch(HOST)) == ""
    assert wire_check.refusal(RING, [], [], {RING.label: []}, SimpleNamespace(cluster=None)) == ""


def test_what_does_not_is_refused():
    for variant in (RING, HOST):
        assert "must send" in refusal(variant, launch(variant, sent=0.7))
        assert "ran on 1 nodes and not on 3: a" in refusal(variant, launch(variant, nodes="aaa"))
        assert "nothing can be faster" in refusal(variant, launch(variant), fraction=1.03)


def test_ours_must_send_what_its_schedule_says():
    tree = Variant("paceline", "binomial", 1)  # all to one: its node gets twice the message
    files = launch(tree)
    for rank in files:
        rank["cases"][0]["explained"][tree.label] = "binomial: asked for"
    assert refusal(HOST, launch(HOST)) == ""
    assert "2,097,152" in refusal(tree, files)
