"""Training as one CSV: what the page draws comes back, and the page draws it as from the files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paceline.errors import UsageError
from paceline_bench.report import dag, training
from paceline_bench.train import run_campaign

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = ",".join(run_campaign.COLUMNS) + "\n"
HEAD = '# {"series": "a", "ranks": [{"rank": 0}]}\n'


def content(way="bsp1", workers=2, epoch_s=1.5, steps=500):
    """As a file has it; a CSV shows all its numbers without loss."""
    epochs = [{"epoch": n + 1, "seconds": epoch_s, "time_s": (n + 1) * epoch_s, "loss": 2.0 - n / 4,
               "accuracy": 0.25 + n / 8, "images_per_s": 640.0} for n in range(3)]
    ranks = [{"rank": rank, "data": "real data: digits", "is_real": True, "epochs": epochs,
              "losses": [[n / 8, (rank + 1) * (n % 8)] for n in range(steps)],
              "edges": [1.0, 2.0], "weights_equal": True, "weights_sha256": "abc",
              "profile": {"computing_s": 0.03125, "exchange_s": 0.0078125}}
             for rank in range(workers)]
    return {"machine": {"processor": "a processor", "cores_allowed": 2, "system": "a system"},
            "date": "2026-11-30T07:00:00", "command": "paceline train --json /some/x.json",
            "versions": {"python": "3.11"}, "ranks": ranks,
            "plan": {"model": "resnet20", "way": way, "over": "paceline", "collectives": "lp",
                     "seed": 1, "network": {"parameters": 269722}}}


def test_epochs_and_origin_come_back(tmp_path):
    file, whole = tmp_path / "digits.csv", content("funnel")
    run_campaign.add(file, {"b": content("funnel", 1), "a": content("funnel", epoch_s=9.0)})
    run_campaign.add(file, {"a": whole})
    found = run_campaign.read(file)
    assert list(found) == ["a", "b"] and len(found["b"]["ranks"]) == 1
    first, other = found["a"]["ranks"]
    for key in ("data", "epochs", "weights_equal", "profile"):
        assert first[key] == whole["ranks"][0][key], key
    assert {key: found["a"][key] for key in ("machine", "date", "versions")} == {
        key: whole[key] for key in ("machine", "date", "versions")}
    assert found["a"]["command"] == "paceline train --json x.json"
    assert found["a"]["plan"] == {"model": "resnet20", "way": "funnel", "over": "paceline",
                                  "collectives": "lp"}
    assert first["losses"] == [], "the page draws those of BSP-SGD alone"
    assert other == {"rank": 1}


@pytest.mark.parametrize("steps, points, first", [
    (500, 167, (2 / 8, 1.0)), (201, 101, (1 / 8, 0.5)), (200, 200, (0.0, 0.0))])
def test_a_long_curve_is_kept_as_means_which_stay_as_they_are(tmp_path, steps, points, first):
    file = tmp_path / "digits.csv"
    run_campaign.add(file, {"a": content(steps=steps)})
    found = run_campaign.read(file)
    losses = found["a"]["ranks"][0]["losses"]
    assert len(losses) == points and tuple(losses[0]) == first
    assert losses[-1][0] == (steps - 1) / 8
    assert run_campaign.text_of(found) == file.read_text()


def test_the_page_draws_it_as_it_draws_files(tmp_path):
    words = [sys.executable, ROOT / "bench/collect.py", tmp_path / "all.csv"]
    contents = {"bsp1": content(workers=4, steps=110), "funnel": content("funnel", 4)}
    for name, one in contents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(one))
        words.append(tmp_path / f"{name}.json")
    subprocess.run(words, check=True, capture_output=True)
    read = [training.read(tmp_path / "all.csv"),
            [part for name in contents for part in training.read(tmp_path / f"{name}.json")]]
    assert [file.origin.file for file in read[0]] == ["all.csv, bsp1", "all.csv, funnel"]
    drawn = []
    for files in read:
        lines = training.Lines(files)
        drawn.append([(panel.title, line.label, line.points) for panels in (
            lines.epochs(), lines.accuracies(), lines.losses(), lines.profiles())
            for panel in panels for line in panel.lines])
    assert drawn[0] == drawn[1] and len(drawn[0]) == 2 + 2 + 1 + 1
    assert [list(dag.table_2((), files))[1:] for files in read] == 2 * [[
        ("resnet20, 4 workers", "LP Algorithm 1", "", "", "0.0078 s", "0.0312 s", "20.0 %",
         "measured")]]


@pytest.mark.parametrize("text, why", [
    ("", "columns"), ("# {\n", "is no campaign"), ("# {}\n" + COLUMNS, "no 'series'"),
    ('# {"series": "a"}\n' + COLUMNS, "no 'ranks'"), (COLUMNS + "a,1,1,1,1,1,1\n", "line 2"),
    (HEAD + COLUMNS + "a,1,1,1\n", "line 2"), (HEAD + COLUMNS + "a,,,1,high,,\n", "high")])
def test_other_files_are_refused(tmp_path, text, why):
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=why):
        training.read(file)
