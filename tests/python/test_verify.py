"""paceline verify: proofs of small worlds, faults that can be repeated, and interruptions."""

import os
import re
import sys

import pytest
from launched import flat
from length import LONG

from paceline import _core
from paceline.cli.verify import chunks

pytestmark = pytest.mark.ranks


def test_verify_proves_small_worlds(paceline):
    most = 6 if LONG else 4
    status, out, _ = paceline("verify", "--max-ranks", most)
    assert status == 0
    counts = re.search(r"(\d+) worlds proven, (\d+) rejected .* 0 faults", flat(out))
    proven, rejected = map(int, counts.groups())
    assert proven + rejected == len(_core.Sweep("", "", most))
    assert proven > 800 and rejected > 100
    assert "allreduce/ring: the operation is not commutative" in out


def test_verify_reaches_every_algorithm():
    for row in _core.algorithms():
        sweep = _core.Sweep(row["collective"], row["name"], 3)
        assert sweep.run(0, len(sweep)).proven > 0, row


def test_verify_prints_a_schedule(paceline):
    for algorithm, head in ("binomial", "1 block"), ("scatter_allgather", "4 blocks"):
        words = ["--algorithm", algorithm, "--ranks", 4, "--print", 0]
        _, out, _ = paceline("verify", "broadcast", *words)
        assert out.splitlines()[0] == f"broadcast/{algorithm}, rank 0 of 4, {head}"


def test_verify_names_a_fault_and_how_to_repeat_it(paceline, monkeypatch):
    line = "allreduce --algorithm ring --ranks 3 --fused --segments 3 --window 2 --whole-tail"

    class Sweep:
        def __init__(self, *names):
            pass

        def __len__(self):
            return 100

        def ranks(self, world):
            return 3

        def run(self, first, count):
            class Outcome:
                proven, rejected = 3, {}
                faults = [(line, "contract: rank 1 [0] is wrong")] if first else []

            return Outcome

    monkeypatch.setattr(_core, "Sweep", Sweep)
    status, out, _ = paceline("verify")
    assert status == 1
    assert "contract: rank 1 [0] is wrong" in out
    assert f"paceline verify {line}" in out
    assert "1 faults" in out


def test_verify_that_is_interrupted_says_how_far_it_came(paceline, monkeypatch, capsys):
    class Sweep:
        def __init__(self, *names):
            pass

        def __len__(self):
            return 200

        def ranks(self, world):
            return 1 + world // 50

        def run(self, first, count):
            if first >= 128:
                raise KeyboardInterrupt

            class Outcome:
                proven, rejected, faults = count - 1, {"allreduce/ring: no": 1}, []

            return Outcome

    monkeypatch.setattr(_core, "Sweep", Sweep)
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit, match="130"):
        paceline("verify")
    out = flat(capsys.readouterr().out)
    assert "126 worlds proven, 2 rejected" in out and "1 to 2 ranks" in out
    assert "72 of 200 worlds are left, of 3 and more ranks" in out


@pytest.mark.parametrize("world", [
    ("allreduce", "ring", 5, 0, True, True, 3, 2, False),
    ("reduce", "binomial", 6, 5, True, False, 1, 1, False),
    ("allreduce", "binomial", 4, 0, False, True, 1, 1, True),
    ("alltoall", "pairwise", 5, 0, True, False, 1, 1, False, True),
    ("alltoall", "bruck", 5, 0, False, False, 2, 2, False, False, 3),
    ("allreduce", "double_binary_tree", 5, 0, False, True, 1, 1, False, False, 0, 6),
    ("allreduce", "circulant", 6, 0, False, True, 1, 1, False, False, 3, 0, True),
])  # fmt: skip
def test_verify_repeats_a_world_from_its_line(paceline, world):
    line = _core.World(*world).line
    status, out, _ = paceline("verify", *line.split(), "--seed", 7, "--print", 1)
    assert status == 0
    assert f"proven {line}" in flat(out)
    assert "seed 7" in out and "rank 1 of" in out


def test_verify_leaves_no_world_out():
    sweep, reached = _core.Sweep("", "", 20), 0
    for first, count, work in chunks(sweep):
        assert first == reached and count > 0 and work > 0
        reached += count
    assert reached == len(sweep)


def test_verify_of_a_rejected_world_fails(paceline):
    status, out, _ = paceline(
        "verify", "allreduce", "--algorithm", "ring", "--ranks", 3, "--ordered")
    assert status == 1
    assert "not commutative" in out
