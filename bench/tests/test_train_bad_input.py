"""`paceline train` with what it cannot take: one sentence, a clean end, nothing left over."""

import json

import numpy as np
import pytest
from length import in_long
from paceline import cli
from paceline.cli.common import console
from paceline.errors import RankLost, TimeoutError, UsageError

torch = pytest.importorskip("torch")
from paceline_bench.networks import models  # noqa: E402
from paceline_bench.train import data, memory, starting, worker  # noqa: E402

pytestmark = pytest.mark.ranks
SMALL = ["--model", "resnet20", "--side", "8"]


@pytest.fixture
def refused(capsys, monkeypatch):
    """The last line of stderr of a command line that starts no rank and ends with status 2."""

    def run(*words):
        monkeypatch.setattr(starting, "run", None)
        assert cli.main(["train", *map(str, words)]) == 2
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return said.strip().splitlines()[-1]

    return run


@pytest.mark.parametrize("words, why", [
    (["--model", "resnet5"], "Invalid value for '--model': 'resnet5' is not one of"),
    (["--way", "gossip"], "Invalid value for '--way': 'gossip' is not one of"),
    (["--over", "pigeons"], "Invalid value for '--over': 'pigeons' is not one of"),
    (["--data", "mnist"], "mnist is neither digits nor synthetic, nor a folder"),
    (["--data", "/no/such/folder"], "/no/such/folder is neither digits nor synthetic"),
    (["--json", "/no/such/folder/o.json"], "/no/such/folder is no folder"),
    (["--picture", "/no/such/folder/o.svg"], "/no/such/folder is no folder"),
    (["replay", "--models", "resnet5", "--compute-s", "1"], "there is no record of resnet5"),
    (["replay", "--ways", "gossip", "--compute-s", "1"], "there is no way 'gossip'"),
    (["record", "--models", "resnet5"], "there is no model 'resnet5'"),
    (["replay", "--compute-s", "1", "--machine", "gbit=1"], "setting 'gbit' is not known"),
])  # fmt: skip
def test_what_there_is_not(words, why, refused):
    assert why in refused(*words)


@pytest.mark.parametrize("damage, why", [
    (lambda file: file.write_bytes(b"short"), "5 bytes; CIFAR-10's binary files are of 3073 bytes"),
    (lambda file: file.write_bytes(b""), "0 bytes; CIFAR-10's binary files"),
    (lambda file: file.write_bytes(bytes([77]) + bytes(3072)), "label 77; CIFAR-10 has 0 to 9"),
    (lambda file: (file.unlink(), file.mkdir()), "is neither digits nor synthetic"),
])  # fmt: skip
def test_a_damaged_file_of_cifar(damage, why, tmp_path, refused):
    for name in data.TRAINING + data.VALIDATION:
        np.zeros((20, data.RECORD), np.uint8).tofile(tmp_path / name)
    damage(tmp_path / data.TRAINING[2])
    assert why in refused(*SMALL, "--data", tmp_path)


def test_data_that_cannot_be_read(tmp_path, refused, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied", str(tmp_path / "train"))

    (tmp_path / "train").mkdir()
    (tmp_path / "val").mkdir()
    monkeypatch.setattr(data.os, "scandir", denied)
    assert "train cannot be read: Permission denied" in refused(*SMALL, "--data", tmp_path)


def pictures_in(folder):
    """Folders of two classes with pictures in them."""
    image = pytest.importorskip("PIL.Image")
    for part in ("train", "val"):
        for name in ("cat", "dog"):
            (folder / part / name).mkdir(parents=True)
            for number in range(8):
                image.new("RGB", (8, 8), (number, 0, 0)).save(
                    folder / part / name / f"{number}.png")


@in_long
def test_a_picture_that_cannot_be_read_ends_all_ranks_in_a_sentence(tmp_path, capsys):
    pictures_in(tmp_path)
    bad = tmp_path / "train/dog/5.png"
    whole = bad.read_bytes()
    bad.write_bytes(whole[: len(whole) // 2])
    words = [*SMALL, "--data", str(tmp_path), "--batch", "2", "--json", str(tmp_path / "kept.json")]
    assert cli.main(["train", "-n", "2", *words]) == 1
    said = capsys.readouterr().err
    assert f"{bad} is no picture that can be read" in said and said.count("\n") == 1
    if "after 0 of 1 epochs" in said:  # else it came in the first step
        content = json.loads((tmp_path / "kept.json").read_text())
        assert content["ranks"][0]["losses"] and "5.png" in content["ended_early"]


@pytest.mark.parametrize("error, others", [
    (UsageError("train: 5.png is no picture."), False),
    (MemoryError("allocate 7 bytes"), False),
    (RankLost("allreduce #3: rank 1 is lost."), True),
    (TimeoutError("allreduce #3: rank 1 did not come."), True),
])  # fmt: skip
def test_a_rank_tells_whether_it_failed_for_want_of_another(error, others, tmp_path, monkeypatch,
                                                            capsys):
    def fail(*_):
        raise error

    spec = tmp_path / "spec.json"
    spec.write_text("{}")
    monkeypatch.setattr(worker, "train", fail)
    monkeypatch.setattr(worker.sys, "argv", ["worker", str(spec)])
    with pytest.raises(SystemExit) as end:
        worker.main()
    assert end.value.code == 1
    assert json.loads(capsys.readouterr().out[len(worker.SAID):])["others"] is others


def test_who_has_lost_a_rank_speaks_after_the_one_that_says_why():
    watcher = starting.Watcher(console())
    lost, why = "allreduce #3: rank 1 is lost.", "train: 5.png is no picture."
    watcher.hear({"failed": lost, "others": True})
    assert starting.why(1, watcher.failed, []) == lost  # rank 1 may have said nothing
    watcher.hear({"failed": why, "others": False})
    assert starting.why(1, watcher.failed, []) == why


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_no_damage_to_a_picture_ends_in_a_trace(kind, tmp_path):
    image = pytest.importorskip("PIL.Image")
    file = tmp_path / f"one.{kind}"
    image.effect_noise((8, 8), 60).convert("RGB").save(file)
    whole, refused = file.read_bytes(), 0
    for at, byte in enumerate(whole):
        for damaged in (whole[:at], whole[:at] + bytes([byte ^ 0x80]) + whole[at + 1 :]):
            file.write_bytes(damaged)
            try:
                assert data.decoded(str(file), 8).shape == (3, 8, 8)
            except UsageError as error:
                refused += 1
                assert f"{file} is no picture that can be read" in str(error)
    assert refused > len(whole) / 2


def test_too_little_memory_is_known_before_ranks_start(refused, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: int(1e9))
    assert "2 ranks of vgg11 with 4 pictures a step take" in refused("--model", "vgg11")
    said = refused("--model", "vgg11")
    assert "and 1.0 GB of memory are available; take fewer --ranks" in said


def test_what_training_takes_at_least():
    each = models.check_side("alexnet", 224, 8, 1000)
    assert 3 * 4 * 62_378_344 < each < 4 * 4 * 62_378_344
    assert models.check_side("gpt", 0, 8, 256) > 3 * 4 * 3_323_648
    few, many = (models.check_side("resnet50", 224, images, 1000) for images in (32, 64))
    assert (many - few) / 32 == pytest.approx(4 * 11.1e6, rel=0.05), "11 million numbers each"


def test_available_memory_is_what_the_system_and_the_container_leave(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "INFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    assert memory.available() is None
    memory.check("vgg11", 2, 4, 1 << 60)  # who knows
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 4096 kB\n")
    assert memory.available() == 4 << 20
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory.available() == 4 << 20
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.stat").write_text("anon 7\ninactive_file 500\n")
    assert memory.available() == 2500


@pytest.mark.parametrize("error, size", [
    (MemoryError(), "too little memory; take"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8388608 bytes."
                  " Error code 12"), "too little memory for 8 MiB more; take"),
])  # fmt: skip
def test_memory_that_runs_out_in_a_rank_is_a_sentence(error, size):
    said = worker.sentence(error, "1")
    assert said.startswith("train: rank 1: there is ") and size in said


def test_errors_that_nobody_foresaw_keep_their_trace():
    assert worker.sentence(RuntimeError("mat1 and mat2 shapes cannot be multiplied"), "0") is None
