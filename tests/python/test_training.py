"""Steps of training, replayed and real (bench/lab): what is sent and when, and what is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import mpis
import pytest
import torch
import torch.distributed as dist
from click.testing import CliRunner
from length import in_long, param
from torch import nn

ROOT = Path(__file__).resolve().parents[2]
BENCH, RANKS = ROOT / "bench/lab", Path(__file__).with_name("ranks")
sys.path.insert(0, str(BENCH))

import judging  # noqa: E402
import models  # noqa: E402
import recording  # noqa: E402
import steps  # noqa: E402
import training  # noqa: E402

from paceline.bench import links  # noqa: E402

PUBLISHED = {"alexnet": (62_378_344, 16), "vgg11": (132_863_336, 22), "resnet50": (25_557_032, 161),
             "resnet110": (1_727_962, 329)}
RECORD = {"forward_s": 1.0, "backward_s": 3.0,
          "gradients": [["c", 300_000, 1.0], ["b", 7, 2.0], ["a", 50_001, 3.0]]}
RATE = 200e6


# --- what is sent, and when -----------------------------------------------------------------------


@pytest.mark.parametrize("name", models.MODELS)
def test_shapes_are_the_published_ones(name):
    with torch.device("meta"):
        sizes = {key: weights.numel() for key, weights in models.made(name).named_parameters()}
    assert (sum(sizes.values()), len(sizes)) == PUBLISHED[name]
    record = steps.read(name)
    assert {key: count for key, count, _ in record["gradients"]} == sizes
    ready = [at for _, _, at in record["gradients"]]
    assert ready == sorted(ready) and 0 < ready[0] and ready[-1] <= record["backward_s"]


@pytest.mark.parametrize("name", models.MODELS)
def test_buckets_are_those_of_ddp(name):
    gradients = steps.read(name)["gradients"]
    tensors = [torch.empty(count) for _, count, _ in gradients]
    limits = [steps.FIRST_BYTES, steps.BUCKET_BYTES]
    theirs, _ = dist._compute_bucket_assignment_by_size(tensors, limits, [False] * len(tensors))
    names = [[gradients[place][0] for place in bucket] for bucket in theirs]
    assert [[row[0] for row in bucket] for bucket in steps.cut(gradients)] == names


def test_gradients_are_recorded_in_the_order_of_the_backward_pass():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * 36, 64), nn.Linear(64, 10))
    found = recording.recorded(net, torch.randn(4, 1, 8, 8), torch.randint(10, (4,)), 3)
    layers = [name.split(".")[0] for name, _, _ in found["gradients"]]
    assert layers == ["3", "3", "2", "2", "0", "0"]
    assert all(0 < at <= found["backward_s"] for _, _, at in found["gradients"])
    assert sum(count for _, count, _ in found["gradients"]) == sum(
        weights.numel() for weights in net.parameters())


def test_a_step_is_scaled_as_a_whole():
    step = steps.step_of(RECORD, 8.0)
    assert [(bucket.elements, bucket.ready_s) for bucket in step.buckets] == [
        (300_000, 4.0), (50_008, 8.0)]
    assert step.compute_s == 8.0 and step.bytes == 4 * 350_008
    assert step.least_s(lambda nbytes: 0.0) == 8.0
    assert step.least_s(lambda nbytes: nbytes / 5e4) == pytest.approx(4 + 4 * 350_008 / 5e4)
    assert step.least_s(lambda nbytes: nbytes / 1e7) == pytest.approx(8 + 4 * 50_008 / 1e7)


def test_what_is_sent_too_early_or_never_is_noticed():
    step = steps.step_of(RECORD, 8.0)
    assert steps.early(step, [4.0, 8.0]) == ""
    assert steps.early(step, [4.0, 7.9]).startswith("bucket 1 was sent 7.9")
    assert steps.early(step, [4.0]) == "1 buckets were sent, and not 2"


# --- ranks ----------------------------------------------------------------------------------------


def replayed(module, **environment):
    """judging.replayed() of a step of two ranks here."""
    job = training.Job(2, None, with_mpi=False)
    made = {"small": steps.step_of(RECORD, 0.04)}
    spec = {"steps": {"small": training.asdict(made["small"])}, "rounds": 2,
            "libraries": training.LIBRARIES}
    path = os.pathsep.join(map(str, (BENCH, RANKS)))
    ranks = job.launch(module, spec, environment={"PYTHONPATH": path, **environment})
    return judging.replayed(ranks, made, training.bound_of(job), None)


def test_a_step_is_summed_by_all():
    found = replayed("replay_rank")
    assert found["notes"] == []
    assert set(found["times"]["small"]) == {"paceline", "gloo"}
    assert all(len(times) == 2 and min(times) >= 0.04 for times in found["times"]["small"].values())


@pytest.mark.parametrize("mutant, why", [
    ("lost", "does not hold the sum"), param("kept", "does not hold the sum"),
    param("early", "is ready after"),
])  # fmt: skip
def test_mutants_are_refused(mutant, why):
    found = replayed("replay_mutants", MUTANT=mutant)
    assert found["notes"][0].startswith("refused: paceline, small: bucket")
    assert all(why in note for note in found["notes"])
    assert "paceline" not in found["times"]["small"]


def test_a_file_in_a_folder_that_is_not_there_is_refused(tmp_path):
    assert training.begun(tmp_path / "out.json", {}, {"ranks": 3}, append=False)["launches"] == []
    with pytest.raises(click.UsageError, match="is no folder here"):
        training.begun(tmp_path / "nowhere/out.json", {}, {"ranks": 3}, append=False)


@in_long
def test_training_ends_with_the_same_weights():
    spec = {"model": "resnet110", "images": 1, "rounds": 1, "warm_up": 1, "seed": 1}
    ranks = training.Job(2, None, with_mpi=False).launch("ddp_rank", spec)
    found = judging.trained(ranks)
    assert found["notes"] == [] and set(found["times"]["ddp"]) == {"paceline", "gloo"}
    losses = found["losses_of_rank_0"]
    assert losses["paceline"] == pytest.approx(losses["gloo"], rel=1e-3)
    ranks[1]["backends"]["paceline"]["sha256"] = "another"
    assert judging.trained(ranks)["notes"] == [
        "refused: paceline: after the last step the weights of 2 ranks are of 2 kinds"]


@in_long
@pytest.mark.parametrize("mpi", mpis.found()[:2], ids=str)
def test_an_mpi_takes_its_turn(mpi, tmp_path):
    (tmp_path / "small.json").write_text(json.dumps(RECORD))
    words = [sys.executable, BENCH / "training.py", "replay", "--models", tmp_path / "small.json",
             "--compute-s", "0.04", "-n", "2", "--json", tmp_path / "out.json"]
    for more in ([], ["--append"]):
        done = subprocess.run([*words, *more], env={**os.environ, **mpi.environment()},
                              capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((tmp_path / "out.json").read_text())
    assert len(content["launches"]) == 2
    rows = content["summary"]["small"]
    assert list(rows) == ["paceline", "gloo", "mpi", "mpi non-blocking"]
    assert all(row["step_s"] >= 0.04 and row["launches"] == 2 for row in rows.values())
    with pytest.raises(click.UsageError, match="another plan"):
        training.begun(tmp_path / "out.json", {}, {"ranks": 3}, append=True)


@in_long
def test_an_mpi_trains(tmp_path):
    words = [sys.executable, BENCH / "training.py", "ddp", "--images", "1", "--warm-up", "0",
             "-n", "2", "--json", tmp_path / "out.json"]
    done = subprocess.run(words, env={**os.environ, **mpis.found()[0].environment()},
                          capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr  # which says that weights are equal
    rows = json.loads((tmp_path / "out.json").read_text())["summary"]["resnet110"]
    assert list(rows) == ["paceline", "gloo", "mpi"]
    assert all(row["cpu_s"] > 0 for row in rows.values())


def test_unknown_libraries_are_refused():
    words = ["replay", "--compute-s", "1", "--libraries", "gloo,nccl"]
    done = CliRunner().invoke(training.main, words)
    assert done.exit_code == 2 and "nccl: no such library" in done.output


# --- figures --------------------------------------------------------------------------------------

CLUSTER = links.Cluster(nodes=2, ppn=1, rate=RATE, interface="eth0", folder="", about={})
MEBI = {"forward_s": 1.0, "backward_s": 1.0, "gradients": [["a", 1 << 18, 1.0]]}


def bound_s(nbytes):
    """Of two nodes."""
    return nbytes * 8 / RATE


def judged(took, sent, nodes=("x", "y")):
    """The notes about a step of 1 MiB by two ranks."""
    step = steps.step_of(MEBI, 0.1)
    ranks = [{"node": node, "models": {"m": {"idle": 0, "found": {
        "paceline": [[took, [sent, 1 << 20], ""]]}}}} for node in nodes]
    return judging.replayed(ranks, {"m": step}, bound_s, CLUSTER)["notes"]


def test_figures_that_break_the_links_are_refused():
    least = 0.1 + bound_s(1 << 20)
    assert judged(least, 1 << 20) == []
    assert "nothing can be faster" in judged(0.9 * least, 1 << 20)[0]
    assert "x sent 1,048,575 bytes" in judged(least, (1 << 20) - 1)[0]
    assert "on 1 nodes and not on 2" in judged(least, 1 << 20, ("x", "x"))[0]


def test_speed_ups_rest_on_pairs_and_on_ten_launches():
    launches = [{"paceline": [1.0], "gloo": [2.0 + k / 100]} for k in range(10)]
    rows = judging.compared(launches, 64)
    assert rows["paceline"]["images_per_s"] == 64
    assert rows["gloo"]["paceline"]["verdict"] == "faster"
    assert rows["gloo"]["paceline"]["speed_up"] == pytest.approx(2.045, rel=1e-3)
    assert rows["gloo"]["paceline"]["low"] < 2.045 < rows["gloo"]["paceline"]["high"]
    assert judging.compared(launches[:9], 64)["gloo"]["paceline"]["verdict"] == ""
