"""`paceline report training`: figures about training with Horovod, and their verdicts."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from length import in_long
from paceline import cli
from paceline.errors import UsageError
from paceline_bench.report import gpu, horovod, horovod_claims, horovod_gpus, horovod_steps, replays
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
    took, calls, longest = horovod_steps.fused(STEP, lambda nbytes: 0.15 if nbytes < 100 else 1.0)
    # 10 bytes alone; 20 bytes, ready meanwhile; of the long ones two would be too long.
    assert (calls, longest) == (4, 40_000_000) and took == pytest.approx(1.0 + 0.3 + 2.0)
    took, calls, _ = horovod_steps.fused(STEP, lambda _: 0.0)
    assert calls == 4 and took == pytest.approx(1.3), "links that cost nothing leave computing"
    _, calls, longest = horovod_steps.fused(STEP, lambda nbytes: 0.3)
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
    parameters, flops = horovod_claims.table_2().outcomes
    assert parameters.word == flops.word == "reproduced"
    assert "alexnet 2,270,512,192 (+0.00 %)" in flops.found, "to the last one"
    assert "vgg11 132,863,336 (+0.00 %)" in parameters.found
    off = {name: 1.03 * row[0] for name, row in horovod.PUBLISHED.items()}
    apart = horovod_claims.near("parameters", off, {"vgg11": horovod.PUBLISHED["vgg11"][0]})
    assert apart.word == "not reproduced"


def test_the_rate_of_a_gpu_is_the_benchmarks():
    pytest.importorskip("torch")
    from paceline_bench.networks import models

    flops = models.sizes_of("vgg16")[1]
    assert gpu.PASSES * flops * 16 / gpu.FLOP_PER_S["vgg11"] == pytest.approx(0.0835, rel=0.01)


def figure_9(*files):
    """With what these files compare."""
    found = tuple(one for file in files for one in file.compared)
    return horovod.paired.Paired("figure 9", "", "", (), drawn="bars", compared=found)


def test_verdicts_of_measurements_want_ten_launches(tmp_path):
    def outcome(*contents, way=replays.IN_PARTS):
        files = [file for content in contents for file in read(tmp_path, content)]
        return horovod_claims.from_files(figure_9(*files), way)

    place = "lab of 8 nodes, 200mbit each way, Open MPI v5.0.11: resnet50 "
    good, bad, few = replayed(), replayed(parts_s=2.5), replayed(launches=3, parts_s=2.5)
    assert outcome(good).word == "reproduced"
    assert place + "2.00 (2.00 to 2.00)" in outcome(good).found
    assert (outcome(bad).word, outcome(bad).why) == ("not reproduced", "launch by launch: slower")
    assert outcome(few).word == "not reproduced" and "fewer than 10" in outcome(few).why
    assert outcome(few).found.endswith(place + "0.80")
    assert outcome(good, few).word == "reproduced", "few launches decide nothing"
    assert outcome(good, bad).why == "launch by launch: faster, slower"
    assert "no file" in outcome(good, way="ddp:gloo").why


def test_a_peer_that_is_faster_than_us_is_named_so(tmp_path):
    said = {one.found.split(": ")[0]: one for one in horovod_claims.from_ours(
        figure_9(*read(tmp_path, replayed())))}
    blocking = said["paceline, times as fast as the MPI, blocking"]
    assert blocking.word == "beyond" and blocking.found.endswith("1.60 (1.60 to 1.60); faster")
    in_parts = said["paceline, times as fast as the MPI, non-blocking in four parts"]
    assert in_parts.found.endswith("0.80 (0.80 to 0.80); slower") and len(said) == 3
    assert in_parts.word == "not reproduced", "that is nothing beyond"


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
    assert page.index("class=\"claims\"") < page.index("<h2>Figure 8") < page.index("<h2>Figure 9")
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
