"""Ranks that count as being on several nodes: leaders, lanes, and rings and chains node by node."""

import launched
import mpis
import pytest
from length import each, in_long

STARTS = [m for m in mpis.found() if m.family == "mpich"]
FEW = ["0,1,0,1", "0,1,0"]
MORE = ["0,1,1,0", "0,0,1,1", "0,1,2,0,1,2", "0,1"]


@each("nodes", FEW, MORE)
def test_nodes(nodes):
    """Equally many ranks on each node, side by side and in turn, and not equally many."""
    settings = (*STARTS[-1].environment().items(), ("NODES", nodes))
    assert launched.failures("node_checks", nodes.count(",") + 1, *settings, nodes=nodes) == {}


@in_long
def test_futures():
    pytest.importorskip("torch")
    found = launched.failures("future_checks", 2, *STARTS[-1].environment().items(), nodes="0,1")
    assert found == {}


def test_checks_that_are_told_of_other_nodes_fail():
    settings = (*STARTS[-1].environment().items(), ("NODES", "0,1,0,1"))
    found = launched.failures("node_checks", 4, *settings, nodes="0,0,0,1")
    assert {"collectives", "what_is_said"} <= set(found), found
