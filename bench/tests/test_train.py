"""`paceline train`: networks at their published shapes, data, ways, and what is refused."""

import functools
import json
import os
import subprocess
import sys

import launched
import mpis
import numpy as np
import pytest
from click.testing import CliRunner
from length import each, in_long
from paceline.errors import UsageError
from paceline.launch import launch
from paceline.on_ranks import Failed
from paceline_bench.cli.train import MODELS, WAYS, command
from rich.console import Console

torch = pytest.importorskip("torch")
from paceline_bench.networks import branched, models  # noqa: E402
from paceline_bench.train import data, picture, starting, ways, worker  # noqa: E402

pytestmark = pytest.mark.ranks

PUBLISHED = {
    "alexnet": (62_378_344, 16), "vgg11": (132_863_336, 22), "vgg16": (138_357_544, 32),
    "resnet50": (25_557_032, 161), "resnet110": (1_727_962, 329), "resnet20": (269_722, 59),
    "googlenet": (13_378_280, 128), "inception-bn": (11_295_240, 278),
    "densenet201": (20_013_928, 604), "gpt": (3_323_648, 54), "digits-resnet": (1_860_138, 97)}
SPEC = {"model": "resnet20", "way": "ddp", "over": "paceline", "collectives": None,
        "data": "digits", "epochs": 1, "steps": 4, "batch": 8, "side": 8, "rate": 0.02,
        "most_rate": 1.0, "validation": 1, "threads": 1, "seed": 1}


@pytest.mark.parametrize("name", models.MODELS)
def test_shapes_are_the_published_ones(name):
    with torch.device("meta"):
        sizes = [weights.numel() for weights in models.made(name).parameters()]
    assert (sum(sizes), len(sizes)) == PUBLISHED[name]


@pytest.mark.parametrize("name, products", [
    ("alexnet", 1.135e9), ("vgg11", 7.609e9), ("vgg16", 15.47e9), ("resnet50", 4.089e9),
    ("resnet110", 0.2534e9), ("resnet20", 0.0406e9), ("googlenet", 1.58e9),
    ("inception-bn", 2.03e9), ("densenet201", 4.29e9),
])  # fmt: skip
def test_flops_are_the_published_ones(name, products):
    parameters, flops = models.sizes_of(name)
    assert flops / 2 == pytest.approx(products, rel=5e-3) and parameters == PUBLISHED[name][0]


def test_flops_of_smaller_pictures_and_fewer_classes_are_fewer():
    assert models.sizes_of("resnet20", 16, 10) == (269_722, (81_102_080 - 1280) // 4 + 1280)
    assert models.sizes_of("alexnet", 224, 10)[0] == PUBLISHED["alexnet"][0] - 990 * 4097


@each("name", ["resnet20", "gpt"], ["googlenet", "inception-bn", "densenet201"])
def test_every_parameter_gets_a_gradient(name):
    net = models.made(name)
    if name == "gpt":
        inputs, labels = models.batch_of(name, 2)
    else:  # smaller pictures will do
        inputs, labels = torch.randn(2, 3, 64, 64), torch.randint(10, (2,))
    branched.loss_of(net(inputs), labels).backward()
    assert all(p.grad is not None for p in net.parameters())
    net.eval()
    classes = models.MODELS[name].classes
    assert net(inputs).shape[-1] == classes, "validation sees one classifier alone"


def test_the_command_lists_what_there_is():
    assert tuple(models.MODELS) == MODELS and ways.NAMES == WAYS


def run(**changes):
    """What training of two ranks has found."""
    return starting.run({**SPEC, **changes}, 2, Console(quiet=True))["ranks"]


@in_long
def test_ddp_learns_digits():
    ranks = run(epochs=3, steps=0, batch=32, rate=0.05, validation=0)
    rows = ranks[0]["epochs"]
    assert [row["epoch"] for row in rows] == [1, 2, 3] and ranks[0]["is_real"]
    assert rows[2]["accuracy"] > 0.5, "ten classes: by chance it is 0.1"
    assert ranks[0]["weights_equal"] and ranks[0]["rate"] == pytest.approx(0.1)
    profile = ranks[0]["profile"]
    assert all(profile[part] > 0 for part in ("computing_s", "exchange_s", "iteration_s"))
    assert "rank 1" in picture.svg(ranks, "a < b") and "a &lt; b" in picture.svg(ranks, "a < b")


APART = """
import json, sys
from rich.console import Console
from paceline_bench.train import starting
found = starting.run(json.loads(sys.argv[1]), 2, Console(quiet=True))
json.dump(found["ranks"], sys.stdout)
"""


def run_apart(environment, **changes):
    """The same in a process of its own: this one may have loaded another MPI, and keeps it."""
    done = subprocess.run([sys.executable, "-c", APART, json.dumps({**SPEC, **changes})],
                          env={**os.environ, **environment}, capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@functools.cache
def of_ddp():
    """The losses of DDP over Paceline."""
    return [loss for _, loss in run()[0]["losses"]]


def same_losses(way, over="paceline", environment=None, **more):
    """Every way computes what DDP does, within rounding."""
    expected = of_ddp()
    changes = {"way": way, "over": over, **more}
    ranks = run_apart(environment, **changes) if environment else run(**changes)
    found = [loss for _, loss in ranks[0]["losses"]]
    assert found == pytest.approx(expected, rel=5e-3) and ranks[0]["weights_equal"]


@in_long
@pytest.mark.parametrize("way", ["overlap-updates", "overlap"])
def test_overlap_trains_as_ddp(way):
    same_losses(way)


@in_long
@each("way", ["auto", "bsp1", "bsp3-overlap"],
      [way for way in ways.NAMES if way[:3] not in ("ddp", "ove", "aut")
       and way not in ("bsp1", "bsp3-overlap")])
def test_every_way_trains_as_ddp(way):
    same_losses(way, collectives="lp" if way.startswith("bsp") else None)


@in_long
def test_algorithms_are_taken_by_name():
    assert ways.method_of("lp", "bsp1") == "linear_pipeline"
    assert ways.method_of("circulant", "bsp3-overlap") == {
        "allreduce": "circulant", "broadcast": "circulant"}
    assert ways.method_of("rabenseifner", "bsp3") == {"allreduce": "rabenseifner"}
    same_losses("bsp3-overlap", collectives="ring")


@in_long
@each("over", ["gloo"], ["mpi"])
@each("way", ways.BOTH[:1], ways.BOTH[1:])
def test_other_libraries_train_as_ddp(way, over):
    same_losses(way, over, mpis.found()[0].environment() if over == "mpi" else None)


@in_long
def test_ranks_that_others_have_started_are_joined(monkeypatch):
    line = [sys.executable, "-c", "import sys; from paceline.cli import main; sys.exit(main())",
            "train", "--model", "resnet20", "--side", "8", "--data", "digits", "--steps", "2",
            "--validation", "1"]
    run = launched.Run()
    status = launch(line, 2, env=launched.limits(), timeout_s=120, on_line=run.add)
    assert status == 0, run.text()
    assert "2 ranks have the same weights" in run.text(0) and not run.text(1, "stdout")
    monkeypatch.setenv("PACELINE_RANK", "1")
    done = CliRunner().invoke(command, ["-n", "2"])
    assert done.exit_code == 2 and "has started the ranks already" in done.output


@in_long
def test_a_loss_that_is_no_number_ends_it():
    with pytest.raises(Failed, match="lower --rate"):
        run(rate=1e30, most_rate=1e30)


@pytest.fixture
def shown(monkeypatch):
    """What is said of a network before it is trained: words of each line, in 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(starting, "run", lambda *_: None)

    def show(*words):
        done = CliRunner().invoke(command, list(words), standalone_mode=False)
        return [line.split() for line in done.output.splitlines()]

    return show


def test_sizes_stand_beside_those_of_both_tables_2(shown):
    rows = shown("--model", "resnet50")
    assert rows[0] == ["parameters", "flops,", "forward", "float32"]
    assert rows[1][-4:] == ["25,557,032", "8,178,368,512", "102.2", "MB"]
    assert rows[1][0] == "resnet50,"
    assert rows[2] == ["Castelló", "and", "others,", "table", "2", "25,636,712", "8,178,368,512"]
    assert len(rows) == 3, "the other document has no ResNet"
    rows = shown("--model", "alexnet")
    assert rows[2][-2:] == ["62,378,344", "2,270,512,192"] and rows[1][-2:] == ["249.5", "MB"]
    assert rows[3] == ["Wang", "and", "others,", "table", "2", "256", "MB"]
    rows = shown("--model", "googlenet")
    assert rows[2] == ["Wang", "and", "others,", "table", "2", "51", "MB"]
    assert rows[3][:6] == ["53.5", "MB", "are", "51.0", "MiB;", "that"]


@in_long
def test_tables_2_of_other_pictures_are_said_to_be(shown):
    said = " ".join(sum(shown("--model", "resnet110", "--side", "8", "--data", "digits"), []))
    assert "Published numbers are for 32x32 pictures and 10 classes." in said
    assert "Published" not in " ".join(sum(shown("--model", "resnet20", "--side", "8"), []))


def test_weights_that_differ_are_told(monkeypatch):
    found = {"ranks": [{"weights_equal": False, "profile": {
        "computing_s": 1, "exchange_s": 1, "exchange_share": 0.5, "iteration_s": 2,
        "hidden_share": 0}}]}
    monkeypatch.setattr(starting, "run", lambda *_: found)
    done = CliRunner().invoke(command, ["--data", "synthetic", "--model", "resnet20", "-n", "2"],
                              standalone_mode=False)
    assert done.return_value == 1 and "weights differ" in done.output


# --- data -----------------------------------------------------------------------------------------


def cifar_in(folder, pictures=4, label=3):
    for name in data.TRAINING + data.VALIDATION:
        rows = np.full((pictures, data.RECORD), 7, np.uint8)
        rows[:, 0] = label
        rows.tofile(folder / name)


def test_cifar_is_read(tmp_path):
    cifar_in(tmp_path)
    found = data.load(str(tmp_path), 32, 1)
    assert len(found) == 20 and found.is_real and "CIFAR-10, 20 pictures" in found.about
    inputs, labels = found.batch(torch.tensor([0, 5]), 32)
    assert inputs.shape == (2, 3, 32, 32) and labels.tolist() == [3, 3]
    cifar_in(tmp_path, label=10)
    with pytest.raises(UsageError, match="label 10; CIFAR-10 has 0 to 9"):
        data.load(str(tmp_path), 32, 1)
    cifar_in(tmp_path)
    (tmp_path / data.VALIDATION[0]).write_bytes(b"short")
    with pytest.raises(UsageError, match="5 bytes"):
        data.load(str(tmp_path), 32, 1)


def test_folders_of_pictures_are_read(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for part in ("train", "val"):
        for name in ("cat", "dog"):
            (tmp_path / part / name).mkdir(parents=True)
            image.new("RGB", (20, 30), (255, 0, 0)).save(tmp_path / part / name / "a.png")
    found = data.load(str(tmp_path), 16, 1)
    inputs, labels = found.batch(torch.tensor([0, 1]), 16)
    assert inputs.shape == (2, 3, 16, 16) and labels.tolist() == [0, 1] and found.classes == 2
    (tmp_path / "train/cat/a.png").write_text("no picture")
    with pytest.raises(UsageError, match="is no picture that can be read"):
        found.batch(torch.tensor([0]), 16)


def test_a_text_is_read(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(bytes(range(256)) * 20)
    inputs, labels = data.load(str(file), 0, 1).batch(torch.tensor([1]), 0)
    assert torch.equal(inputs[0, 1:], labels[0, :-1])
    file.write_bytes(b"short")
    with pytest.raises(UsageError, match="5 bytes; gpt wants"):
        data.load(str(file), 0, 1)


def test_ranks_see_different_pictures_and_all_of_them():
    shards = [data.Shard(103, rank, 3, 5, 1) for rank in range(3)]
    seen = [i for shard in shards for part in shard.batches(0) for i in part.tolist()]
    assert len(seen) == len(set(seen)) == 6 * 15
    again = [i for shard in shards for part in shard.batches(1) for i in part.tolist()]
    assert again != seen


def test_the_rate_grows_with_the_workers():
    assert worker.rate_of({"rate": 0.1, "most_rate": 1.0}, 4) == pytest.approx(0.4)
    assert worker.rate_of({"rate": 0.1, "most_rate": 1.0}, 256) == 1.0


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("words, why", [
    (["--way", "depcha", "--over", "gloo"], "depcha over gloo"),
    (["--collectives", "lp"], "--collectives is for bsp1"),
    (["--way", "bsp3", "--collectives", "star"], "nor an algorithm for allreduce"),
    (["--way", "bsp2", "--collectives", "rabenseifner"], "nor an algorithm for reduce"),
    (["--data", "/nowhere"], "is neither digits nor synthetic"),
    (["--model", "gpt", "--data", "digits"], "digits are pictures"),
    (["--rate", "-1"], "learning rate is -1.0"),
    (["--batch", "100000"], "smaller --batch"),
    (["--model", "vgg11", "--side", "8"], "vgg11 does not take 4 pictures of 8x8"),
    (["--model", "resnet20", "--side", "4", "--batch", "1"], "larger --side or --batch"),
])  # fmt: skip
def test_bad_input_is_refused_before_ranks_start(words, why, monkeypatch):
    monkeypatch.setattr(starting, "run", None)
    done = CliRunner().invoke(command, words)
    assert isinstance(done.exception, UsageError) and why in str(done.exception)


def test_files_in_folders_that_are_not_there_are_refused(tmp_path):
    done = CliRunner().invoke(command, ["--json", str(tmp_path / "no/out.json")])
    assert done.exit_code == 2 and "is no folder" in done.output


@in_long
def test_a_whole_run_leaves_its_files(tmp_path):
    words = ["-n", "2", "--model", "resnet20", "--side", "8", "--data", "digits", "--steps", "2",
             "--validation", "1", "--json", str(tmp_path / "o.json"), "--picture",
             str(tmp_path / "o.svg")]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.return_value == 0, done.output
    assert "real data: 1797 handwritten digits" in done.output and "images/s" in done.output
    content = json.loads((tmp_path / "o.json").read_text())
    assert len(content["ranks"]) == 2 and content["plan"]["way"] == "overlap"
    assert content["plan"]["network"] == {
        "parameters": 269_722, "flops": 5_070_080, "bytes": 1_078_888, "published": None}
    assert "resnet20, 8x8, 10 classes" in done.output and "5,070,080" in done.output
    assert (tmp_path / "o.svg").read_text().startswith("<svg")
