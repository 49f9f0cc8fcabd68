"""Ranks that count as being on several nodes: leaders, lanes, and rings and chains node by node."""

import launched
import mpis
import pytest
from length import each, in_long

pytestmark = pytest.mark.ranks

STARTS = [m for m in mpis.found() if m.family == "mpich"]
FEW = ["0,1,0,1", "0,1,0", "0,1,1,0,1"]
MORE = ["0,1,1,0", "0,0,1,1", "0,1,2,0,1,2", "0,1"]


@each("nodes", FEW, MORE)
def test_nodes(nodes):
    """Equally many ranks on each node, side by side and in turn, and not equally many."""
    settings = (*STARTS[-1].environment().items(), ("NODES", nodes))
    assert launched.failures("node_checks", nodes.count(",") + 1, *settings, nodes=nodes) == {}


@each("nodes", ["0,1,1,1"], ["0,0,1,1", "0,1,0,1"])
def test_disagreeing_ranks(nodes):
    """Inside a node, where flags tell, and between nodes, where messages do."""
    settings = STARTS[-1].environment().items()
    assert launched.failures("mismatch_checks", nodes.count(",") + 1, *settings, nodes=nodes) == {}


@each("nodes", ["0,1,1,1"], ["0,0,0,1"])
def test_killed_rank(nodes):
    """The last one, alone on its node and not: every other rank hears of it, with its name."""
    env = {**STARTS[-1].environment(), "PACELINE_ALGORITHM": "allreduce=hierarchical"}
    script = launched.RANKS / "failing.py"
    run = launched.start("on_nodes.py", 4, nodes, script, "killed", env=env, grace_s=20)
    assert "Traceback" not in run.text(), run.text()
    for rank in range(3):
        lines = run.text(rank, "stdout").splitlines()
        assert len(lines) == 2, run.text()
        assert all(line.startswith("RankLost ") and "rank 3" in line for line in lines), lines


@in_long
def test_futures():
    pytest.importorskip("torch")
    found = launched.failures("future_checks", 2, *STARTS[-1].environment().items(), nodes="0,1")
    assert found == {}


def test_checks_that_are_told_of_other_nodes_fail():
    settings = (*STARTS[-1].environment().items(), ("NODES", "0,1,0,1"))
    found = launched.failures("node_checks", 4, *settings, nodes="0,0,0,1")
    assert {"collectives", "what_is_said"} <= set(found), found
