"""`paceline explain`: one choice with its reasons, and the whole decision as a table."""

import re
from pathlib import Path

import pytest
from launched import flat

from paceline import _core
from paceline.cli import attach
from paceline.schedules import SENDS

pytestmark = pytest.mark.ranks

ESTIMATE = Path(__file__).parents[2] / "src/tune/estimate.hpp"


def test_explain_marks_the_choice_of_the_library(paceline):
    _, out, _ = paceline("explain", "broadcast", "--size", "8MiB", "-n", 8)
    choice = _core.choose("broadcast", 8, 8 << 20)
    assert choice["blocks"] > 1
    assert f"{choice['algorithm']}, {choice['blocks']} blocks - {choice['why']}" in flat(out)
    assert len(re.findall("<- chosen", out)) == 1
    for row in _core.algorithms():
        if row["collective"] == "broadcast":   # on one node nothing is written for several
            assert (row["name"] in out) == (row["access"] != "nodes")


def test_explain_knows_nodes(paceline):
    nodes = ["-n", 8, "--machine", "lab-200mbit,ranks_per_node=2"]
    for size, algorithm in ("64B", "hierarchical"), ("4MiB", "multilane"):
        _, out, _ = paceline("explain", "allreduce", "--size", size, *nodes)
        assert f"8 ranks: {algorithm}" in flat(out) and "on 4 nodes of 2 ranks" in flat(out)
    # 2 (k-1) g messages across, 2 (g-1) inside; 3/2 n and n.
    assert re.search(r"multilane.*<- chosen +14 +10 MiB +3.5 MiB", out), out
    _, out, _ = paceline("explain", "allreduce", "-n", 9, *nodes[2:])   # no equal nodes
    assert "multilane" not in out and "hierarchical" not in out


def test_explain_leaves_out_what_needs_one_node(paceline):
    nodes = ["-n", 8, "--machine", "lab-200mbit,ranks_per_node=2"]
    straight = [row["name"] for row in _core.algorithms()
                if row["collective"] == "allreduce" and row["access"] not in SENDS
                and not row["follows_arrival"]]
    _, out, _ = paceline("explain", "allreduce", *nodes)
    told = "left out, since they need all ranks on one node: "
    assert told + ", ".join(straight) in flat(out)
    assert not re.search(rf"^({'|'.join(straight)})\b", out, re.MULTILINE), out
    assert "attached: " not in flat(paceline("explain", "broadcast", *nodes)[1])
    for near in ["-n", 8], ["-n", 2, *nodes[2:]], ["-n", 1, "--machine", "edr-100g"]:
        _, out, _ = paceline("explain", "allreduce", *near)
        assert "left out, since" not in flat(out) and re.search("^two_shot", out, re.MULTILINE)


def test_explain_is_about_the_machine_that_it_is_given(paceline):
    for words in [], ["allreduce"]:
        _, out, _ = paceline("explain", *words, "-n", 9, "--machine", "lab-200mbit")
        assert "the first start measures" not in flat(out) and "kept" not in flat(out)
    margin = re.search(r"kMargin = 0\.(\d+);", ESTIMATE.read_text(encoding="utf-8"))
    asked = f"a later row must be {100 - int(margin[1])} % cheaper than those before it"
    assert asked in flat(paceline("explain", "--help")[1])


def test_explain_gives_no_time_to_what_cannot_be(paceline):
    _, out, _ = paceline("explain", "allreduce", "--algorithm", "two_shot", "-n", 8,
                         "--machine", "lab-200mbit,ranks_per_node=2")
    assert re.search("^two_shot.* <- chosen .* needs one node", out, re.MULTILINE), out
    assert "one node: symmetric, one_shot" in flat(out)


def test_explain_says_whether_the_system_copies(paceline, monkeypatch):
    monkeypatch.setattr(attach, "trouble", lambda: "")
    _, out, _ = paceline("explain", "broadcast", "-n", 2, "--size", "8MiB")
    assert "2 ranks: single_copy - " in flat(out) and "ranks of a node are attached" in flat(out)
    _, out, _ = paceline("explain", "allreduce", "-n", 2, "--size", "8MiB")
    assert "single_copy" not in flat(out)
    monkeypatch.undo()
    monkeypatch.setenv("PACELINE_SINGLE_COPY", "off")
    _, out, _ = paceline("explain", "broadcast", "-n", 2, "--size", "8MiB")
    assert "2 ranks: staged" in flat(out) and "not attached: PACELINE_SINGLE_COPY=off" in flat(out)


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


# --- the plan of auto -----------------------------------------------------------------------------


def test_explain_shows_the_plan_for_a_net_s_gradients(paceline, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lab = ["--ranks", 4, "--machine", "lab-200mbit"]
    status, out, _ = paceline("explain", "--keys", "resnet50", *lab)
    assert status == 0 and max(map(len, out.splitlines())) <= 80
    text = flat(out)
    assert "4 ranks on lab-200mbit" in text and "forward and backward in 2.56 s" in text
    assert "auto: 161 keys, 97.5 MiB, in " in text and "those pushed last come first" in text
    for way, calls in ("depcha", "161 calls"), ("DDP's buckets", "5 calls"), ("one call", "1 call"):
        assert f"{way} {calls} " in text
    assert " 1 3.9 KiB 0 us 370 us '21.bias' " in text and "..." in text
    _, out, _ = paceline("explain", "--keys", "resnet50", *lab, "--every-call")
    assert "..." not in out and "'8.body.0.0.weight'" in out
    _, out, _ = paceline("explain", "--keys", "resnet50", *lab, "--compute-s", 20)
    assert "forward and backward in 20 s" in flat(out)


def test_explain_takes_sizes_of_keys(paceline):
    _, out, _ = paceline("explain", "--keys", "160x1KiB,25MiB", "--compute-s", 1, "--ranks", 4,
                         "--machine", "lab-200mbit")
    assert "auto: 161 keys, 25.2 MiB, in " in flat(out) and "the last after 994 ms" in flat(out)
    assert re.search("1-.* 0 us .* 'key 160'", out), out


def test_explain_knows_whether_computing_hides_calls(paceline):
    near = ["explain", "--keys", "160x1KiB", "--ranks", 2]
    text = flat(paceline(*near, "--cores", 2)[1])
    assert "160 keys, 160 KiB, in 1 call a step" in text and "compute on the 2 cores" in text
    assert "1 call a step" not in flat(paceline(*near, "--cores", 3)[1])
    assert "compute on the 3 cores" in flat(paceline(*near, "--cores", 3, "--threads", 2)[1])
    assert "compute on" not in flat(paceline(*near, "--cores", 2, "--machine", "edr-100g")[1])


@pytest.mark.parametrize("words, why", [
    (["--keys", "resnet51"], "there are alexnet, densenet201,"),
    (["--keys", "/nowhere.json"], "/nowhere.json"),
    (["--keys", "3x"], "'3x' in --keys is no size; write 64KiB, or 160x1KiB"),
    (["--keys", "0x1KiB"], "'0x1KiB' in --keys is no size"),
    (["--keys", "1mb"], "'1mb' in --keys is no size"),
    (["allreduce", "--keys", "vgg11"], "leave out the collective"),
    (["--keys", "vgg11", "--radix", 2], "leave out the collective"),
])  # fmt: skip
def test_explain_says_which_keys_it_takes(paceline, words, why):
    status, _, err = paceline("explain", *words)
    assert status == 2 and why in flat(err) and "Traceback" not in err
