"""Replayed steps as one CSV: every launch comes back, and reports read it as they read files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paceline.errors import UsageError
from paceline_bench.report import dag_replays, replays, training
from paceline_bench.train import replay, replay_campaign

ROOT = Path(__file__).resolve().parents[2]
WAYS = ("depcha:numbered", "funnel:numbered", "ddp:mpi", "ddp:paceline")


def content(launches=3, first_s=1.25, ratio=1.0):
    """As a file has it: one way was refused in the first launch, one is not simulated."""
    made = {"machine": {"processor": "a processor", "cores_allowed": 2, "system": "a system"},
            "date": "2026-11-26T19:00:00", "command": "paceline train replay --json /some/x.json",
            "mpi": {"version": "MPICH 5"}, "versions": {"python": "3.11"},
            "plan": {"ranks": 4, "ratio": ratio, "images": 32, "models": {"resnet50": {}}},
            "bounds": {"resnet50": {way: 1.0 + n / 8 for n, way in enumerate(WAYS)}},
            "simulated": {"resnet50": {WAYS[0]: 1.125}},
            "launches": [{"times": {"resnet50": {
                way: first_s + n / 8 + k / 32 for n, way in enumerate(WAYS) if n or k}}}
                for k in range(launches)]}
    return {**made, "summary": replay.summary(made)}


def test_every_launch_comes_back(tmp_path):
    file, one, two = tmp_path / "replay.csv", content(), content(2, 2.5)
    replay_campaign.add(file, {"b": two, "a": content(1)})
    replay_campaign.add(file, {"a": one})
    found = replay_campaign.read(file)
    assert list(found) == ["a", "b"]
    for name, whole in (("a", one), ("b", two)):
        for key in ("machine", "date", "mpi", "versions", "bounds", "simulated", "launches",
                    "summary"):
            assert found[name][key] == whole[key], key
        assert found[name]["command"] == "paceline train replay --json x.json"
        assert found[name]["plan"] == {"ranks": 4, "ratio": 1.0, "images": 32}


def test_reports_read_it_as_they_read_files(tmp_path):
    whole = content(11)
    (tmp_path / "x.json").write_text(json.dumps(whole))
    command = [sys.executable, ROOT / "bench/collect.py", tmp_path / "x.csv", tmp_path / "x.json"]
    subprocess.run(command, check=True, capture_output=True)
    rows = [dag_replays.figure(training.read(tmp_path / name), [], "").table
            for name in ("x.json", "x.csv")]
    assert rows[0] == rows[1] and len(rows[0]) == 2 and rows[0][1][-1] == "faster"
    by_launch = [replays.read(tmp_path / name)[0] for name in ("x.json", "x.csv")]
    assert by_launch[0].rows == by_launch[1].rows and len(by_launch[0].rows) == 2
    assert by_launch[1].origin.file == "x.csv, x"


@pytest.mark.parametrize("text, why", [
    ("", "columns"), ("# {\n", "is no campaign"), ("series,model\n", "columns"),
    ("# {}\n" + ",".join(replay_campaign.COLUMNS) + "\n", "a head has no 'series'"),
    (",".join(replay_campaign.COLUMNS) + "\na,resnet50,auto:ready,1,2.0,1.0,\n", "line 2"),
    ('# {"series": "a"}\n' + ",".join(replay_campaign.COLUMNS) + "\na,b,c,one,2.0,1.0,\n", "one")])
def test_other_files_are_refused(tmp_path, text, why):
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=why):
        training.read(file)
