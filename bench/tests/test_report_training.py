"""`paceline report training`: figures about training with Horovod, and their verdicts."""

import csv
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from length import in_long
from paceline import cli
from paceline.errors import UsageError
from paceline_bench.report import (
    claims,
    gpu,
    horovod,
    horovod_cells,
    horovod_gpus,
    horovod_steps,
    paired,
    replays,
    verdicts,
)
from paceline_bench.train import perfect

ROOT = Path(__file__).resolve().parents[2]
STEP = perfect.Step(bytes=(10, 20, 40_000_000, 40_000_000), needed_s=(0, 0, 0, 0),
                    ready_s=(0.0, 0.1, 0.2, 0.2), forward_s=1.0, backward_s=0.3)


def replayed(launches=10, parts_s=1.0):
    """As `paceline train replay --json` writes it."""
    took = {"ddp:mpi": 2.0, "ddp:mpi-nonblocking": 1.6, "ddp:mpi-parts": parts_s,
            "ddp:paceline": 1.25, "auto:ready": 1.0}
    return {"machine": {"processor": "a processor", "cores_allowed": 2, "system": "a system"},
            "date": "2026-11-24T15:00:00", "command": "paceline train replay", "mpi": {
                "version": "Open MPI v5.0.11, package", "cluster": {
                    "nodes": 8, "ranks_per_node": 1, "rate": "200mbit"}},
            "plan": {"ranks": 8, "ratio": 1.0}, "bounds": {"resnet50": dict.fromkeys(took, 0.9)},
            "launches": [{"times": {"resnet50": took}}] * launches, "summary": {
                "resnet50": {way: {"step_s": s, "launches": launches} for way, s in took.items()}}}


def read(tmp_path, content):
    (tmp_path / "replay.json").write_text(json.dumps(content))
    return replays.read(tmp_path / "replay.json")


def test_gradients_that_become_ready_meanwhile_are_fused():
    took, calls, longest = perfect.fused(STEP, lambda nbytes: 0.15 if nbytes < 100 else 1.0)
    # 10 bytes alone; 20 bytes, ready meanwhile; of the long ones two would be too long.
    assert (calls, longest) == (4, 40_000_000) and took == pytest.approx(1.0 + 0.3 + 2.0)
    took, calls, _ = perfect.fused(STEP, lambda _: 0.0)
    assert calls == 4 and took == pytest.approx(1.3), "links that cost nothing leave computing"
    _, calls, longest = perfect.fused(STEP, lambda nbytes: 0.3)
    assert calls == 3 and longest == 40_000_020, "what fits goes in one"


def test_a_step_is_never_shorter_than_computing():
    for name in ("resnet110", "gpt"):
        step = horovod_steps.step_of(name, 32)
        times = horovod_steps.speeds(name, 8, 32)
        assert all(took >= 0.999 * step.compute_s for took in times.values())
        assert times[horovod_steps.PARTS] < times[horovod_steps.AUTO]
        assert horovod_steps.step_of(name, 64).compute_s == pytest.approx(2 * step.compute_s)


def test_on_gpus_copies_and_sums_are_what_an_mpi_loses():
    nbytes = 64_000_000
    took = {way: horovod_gpus.call_s(way, nbytes) for way in horovod_gpus.MODELS}
    copies_s = 2 * nbytes / horovod_gpus.COPY_BYTES_PER_S
    ring = horovod_steps.call_s(horovod_steps.RING, horovod_gpus.NODES, nbytes)
    assert took[horovod_gpus.BLOCKING] == pytest.approx(copies_s + ring)
    assert took[horovod_gpus.STRAIGHT] < took[horovod_gpus.IN_PARTS] - copies_s / 4.001
    assert took[horovod_gpus.IN_PARTS] < took[horovod_gpus.BLOCKING] - copies_s / 2
    assert gpu.step_of("resnet50", 32).compute_s == pytest.approx(gpu.compute_s("resnet50", 32))
    for name in horovod_gpus.PUBLISHED:  # which gradients share a call depends on what calls take
        straight, parts, blocking = (horovod_gpus.speeds(name, 64)[way] for way in (
            horovod_gpus.STRAIGHT, horovod_gpus.IN_PARTS, horovod_gpus.BLOCKING))
        assert 0.999 * gpu.compute_s(name, 64) <= straight
        assert 0.97 * straight <= parts <= blocking / 0.97
    times = horovod_gpus.speeds("alexnet", 64)
    assert sorted(times, key=times.get) == [
        horovod_gpus.STRAIGHT, horovod_gpus.IN_PARTS, horovod_gpus.BLOCKING]


def test_every_gradient_is_counted_by_its_size():
    line = horovod.sizes("alexnet")
    assert sum(point.value for point in line.points) == 16 and line.kind == "counted"
    rows = horovod_steps.record_of("alexnet")["keys"]
    longest = 4 * max(row[1] for row in rows)
    assert line.points[-1].bytes // 2 < longest <= line.points[-1].bytes
    assert Counter({p.bytes: p.value for p in line.points})[1024] == sum(
        4 * row[1] <= 1024 for row in rows)


@in_long
def test_networks_have_the_published_parameters_and_flops():
    pytest.importorskip("torch")
    parameters, flops = ({cell.where: round(cell.value, 4) for cell in cells}
                         for cells in horovod_cells.counted())
    assert parameters == {"alexnet": 1, "resnet50": 0.9969, "vgg11": 1, "resnet110": 0.9886}
    assert flops == {"alexnet": 1, "resnet50": 1, "vgg11": 1, "resnet110": 0.9979}


def test_the_rate_of_a_gpu_is_the_benchmarks():
    pytest.importorskip("torch")
    from paceline_bench.networks import models

    flops = models.sizes_of("vgg16")[1]
    assert flops == gpu.FLOPS["vgg16"]
    assert models.sizes_of("densenet201")[1] == gpu.FLOPS["densenet201"]
    assert gpu.PASSES * flops * 16 / gpu.FLOP_PER_S["vgg11"] == pytest.approx(0.0835, rel=0.01)


def outcomes(tmp_path, name, *contents):
    """Verdicts of a claim of figure 9, by what these files compare."""
    compared = tuple(one for content in contents for file in read(tmp_path, content)
                     for one in file.compared)
    figure = paired.Paired("figure 9", "", "", (), drawn="bars", compared=compared)
    key = f"figure 9: {name}"
    pair = {"parts": (replays.IN_PARTS, replays.OVER_MPI),
            "ours": (replays.OURS, replays.IN_PARTS)}[name]
    cells = horovod_cells.measured(figure, *pair)
    return verdicts.rows({key: claims.TRAINING[key]}, {key: cells})[0].outcomes


def test_launches_decide(tmp_path):
    place = ("DDP's buckets, lab of 8 nodes, 200mbit each way, Open MPI v5.0.11: resnet50, "
             "computing 1 x communicating: ")
    good, bad, few = replayed(), replayed(parts_s=2.5), replayed(launches=3, parts_s=2.5)
    (one,) = outcomes(tmp_path, "parts", good)
    assert one.word == "reproduced" and one.found == place + "2.00 (2.00 to 2.00)"
    for content in (bad, few):
        (one,) = outcomes(tmp_path, "parts", good, content)
        assert one.word == "not reproduced" and ": 0.80" in one.why, "every cell counts"
    assert outcomes(tmp_path, "parts")[0].word == "not measured"


def test_a_system_that_is_faster_than_us_is_named(tmp_path):
    """0.80 of the document's four parts, 1.60 times the blocking call, which is not asked."""
    assert outcomes(tmp_path, "ours", replayed(parts_s=2.0))[0].word == "beyond"
    (one,) = outcomes(tmp_path, "ours", replayed())
    assert one.word == "not reproduced" and one.why.endswith("0.80 (0.80 to 0.80)")
    assert outcomes(tmp_path, "ours", replayed(9, parts_s=2.0))[0].word == "not measured"


@pytest.mark.parametrize("content", [{}, [], {"summary": {"a": {"ddp:mpi": {"step_s": 1}}}}])
def test_other_files_are_refused(content, tmp_path):
    with pytest.raises(UsageError, match="replay.json is no file of `paceline train replay"):
        read(tmp_path, content)


@in_long
def test_a_page_with_verdicts_on_top(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("COLUMNS", "80")
    html = tmp_path / "training.html"
    campaign = ROOT / "bench/results/training.csv"
    assert cli.main(["report", "training", "--html", str(html), "--measured", str(campaign)]) == 0
    page = html.read_text()
    assert page.index("<h2>Figure 8") < page.index("class=\"claims\"") < page.index("<h2>Figure 9")
    assert re.search(r"DDP(&#39;|')s buckets, \d+ ranks", page)
    with html.with_suffix(".csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {(row["figure"], row["kind"]) for row in rows} == {
        ("figure 8", "counted"), ("figure 9", "simulated"), ("figure 9", "measured"),
        ("figure 10", "simulated")}
    said = capsys.readouterr().out
    assert max(map(len, said.replace(str(tmp_path), "").splitlines())) <= 80
    assert all(name in said for name in ("table 2", "figure 8", "figure 9", "figure 10"))


def test_commands_of_the_lab_are_printed(capsys):
    assert cli.main(["report", "training", "--lab"]) == 0
    assert "./dev lab up 8 --rate 250mbit" in capsys.readouterr().out
