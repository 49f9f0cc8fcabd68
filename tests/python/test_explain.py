"""`paceline explain`: one choice with its reasons, and the whole decision as a table."""

import re

import pytest
from launched import flat

from paceline import _core
from paceline.cli import attach


def test_explain_marks_the_choice_of_the_library(paceline):
    _, out, _ = paceline("explain", "broadcast", "--size", "64MiB", "-n", 8)
    choice = _core.choose("broadcast", 8, 64 << 20)
    assert choice["blocks"] > 1
    assert f"{choice['algorithm']}, {choice['blocks']} blocks - {choice['why']}" in flat(out)
    assert len(re.findall("<- chosen", out)) == 1
    for row in _core.algorithms():
        assert (row["name"] in out) or row["collective"] != "broadcast"


def test_explain_says_what_groups_change(paceline, monkeypatch):
    _, out, _ = paceline("explain", "allreduce", "-n", 8, "--group", 4)
    assert "8 ranks: grouped" in flat(out)
    assert "in 2 groups of 4 ranks" in flat(out)
    _, out, _ = paceline("explain", "allreduce", "-n", 8)
    assert "8 ranks: sliced" in flat(out) and "no groups; --group N" in flat(out)
    monkeypatch.setenv("PACELINE_GROUPS", "3")
    _, out, _ = paceline("explain", "allreduce", "-n", 8)
    assert "no groups: 8 ranks make no two groups of 3" in flat(out)


def test_explain_says_whether_the_system_copies(paceline, monkeypatch):
    monkeypatch.setattr(attach, "trouble", lambda: "")
    _, out, _ = paceline("explain", "broadcast", "-n", 2, "--size", "8MiB")
    assert "2 ranks: attached - " in flat(out) and "ranks of a node are attached" in flat(out)
    _, out, _ = paceline("explain", "allreduce", "-n", 2, "--size", "8MiB")
    assert "attached" not in flat(out)
    monkeypatch.undo()
    monkeypatch.setenv("PACELINE_ATTACH", "off")
    _, out, _ = paceline("explain", "broadcast", "-n", 2, "--size", "8MiB")
    assert "2 ranks: staged" in flat(out) and "not attached: PACELINE_ATTACH=off" in flat(out)


def test_explain_takes_knobs(paceline):
    _, out, _ = paceline("explain", "allreduce", "--algorithm", "circulant", "--radix", 3,
                         "--segments", 4, "--window", 2)
    assert "circulant, radix 3, 4 segments, 2 at a time - asked for" in flat(out)


@pytest.mark.parametrize("ranks, machine", [(2, "shm"), (16, "edr-100g"), (1, "shm")])
def test_explain_shows_every_decision(paceline, ranks, machine):
    status, out, _ = paceline("explain", "-n", ranks, "--machine", machine)
    assert status == 0
    is_attached = not attach.trouble()
    rows, collective = {}, ""   # (collective, first size) -> algorithm
    for line in out.splitlines()[4:]:
        found = re.match(r"(\w+)?\s+(?:(\d+(?:\.\d+)? (?:B|[KMG]iB))\s+)?(\w+)", line)
        if not line.startswith(" " * 40):
            collective = found[1] or collective
            rows[collective, _core.parse_bytes(found[2] or "0")] = found[3]
    assert {name for name, _ in rows} == set(_core.collectives())
    for (name, first), algorithm in rows.items():
        def chosen(size, name=name):
            return _core.choose(name, ranks, size, machine=machine, attach=is_attached)["algorithm"]

        assert chosen(max(1, first)) == algorithm
        assert first == 0 or chosen(first // 2) != algorithm
