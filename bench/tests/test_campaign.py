"""Campaigns: results as one CSV with verdicts, read by the reports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from paceline.errors import UsageError
from paceline_bench.measure import campaign
from paceline_bench.report import device_measured, measured
from paceline_bench.train import replay_campaign, run_campaign

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
RECORD = {"collective": "allreduce", "bytes": 64, "ranks": 2, "variant": "ring x 4",
          "library": "paceline", "algorithm": "ring", "segments": 4, "segment_bytes": None,
          "combines": False, "chosen": True, "dtype": "float32", "op": "sum", "launches": 10,
          "time_us_median": 1.25, "bound_us": None, "messages": 3.5, "rounds": None,
          "interval": {"low_us": 1.0, "high_us": 1.5}, "cold": None,
          "peer": {"time_ratio_median": 0.5, "time_ratios": [0.5, 0.5],
                   "verdict": {"word": "faster", "low": 0.4, "high": 0.6}}}
HEAD = {"machine": {"processor": "a processor", "cores_allowed": 2, "system": "a system"},
        "date": "2026-11-22T05:00:00", "command": "paceline bench", "mpi": {"kind": "MPICH"}}


def content(*records):
    return {**HEAD, "records": list(records)}


def test_what_is_written_is_read(tmp_path):
    """Every cell comes back, repetitions do not; a series of the same name is replaced."""
    file = tmp_path / "node.csv"
    other = {**RECORD, "variant": "mpi", "library": "mpi", "combines": True, "interval": None,
             "peer": None, "bound_us": 0.5}
    campaign.add(file, {"a": {"default": content(RECORD), "best": content(other)}})
    campaign.add(file, {"b": {"default": content(RECORD)}})
    campaign.add(file, {"b": {"default": content(other)}})
    found = campaign.read(file)
    assert list(found) == ["a", "b"] and list(found["a"]) == ["default", "best"]
    ours = found["a"]["default"]["records"][0]
    for name in ("bytes", "ranks", "variant", "segments", "segment_bytes", "combines", "chosen",
                 "time_us_median", "bound_us", "messages", "rounds", "interval"):
        assert ours[name] == RECORD[name], name
    assert ours["peer"] == {"time_ratio_median": 0.5,
                            "verdict": {"word": "faster", "low": 0.4, "high": 0.6}}
    assert {key: found["b"]["default"][key] for key in HEAD} == HEAD
    assert found["b"]["default"]["records"][0]["peer"] is None
    assert "time_ratios" not in file.read_text()


def test_reports_read_campaigns_as_they_read_files(tmp_path):
    shown = {**RECORD, "bound_us": 1.0}
    (tmp_path / "x.json").write_text(json.dumps({**content(shown), "mpi": {}}))
    campaign.add(tmp_path / "x.csv", {"x": {"default": {**content(shown), "mpi": {}}}})
    panels = [measured.panels(measured.read(tmp_path / name), "allreduce", lambda file, row: True)
              for name in ("x.json", "x.csv")]
    assert panels[0][0].lines[0].points == panels[1][0].lines[0].points
    assert panels[0][0].bounds == panels[1][0].bounds == {64: 1e-6}
    assert panels[1][0].lines[0].origin.file == "x.csv, x"


def test_files_of_the_benchmark_become_series(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(content(RECORD)))
    file = tmp_path / "all.csv"
    command = [sys.executable, ROOT / "bench/collect.py", file, tmp_path / "one.json"]
    assert "one" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert campaign.read(file)["one"]["default"]["records"][0]["time_us_median"] == 1.25


def test_commands_keep_no_folder_of_the_machine():
    run = "./dev lab bench allreduce --arrival trace:%stwo.json --json %sx.json"
    folder = "/" + "tmp/some where/".replace(" ", "-")
    assert campaign.without_folders(run % (folder, folder)) == run % ("", "")
    assert campaign.without_folders(run % ("build/", "a/b/")) == run % ("build/", "a/b/")


@pytest.mark.parametrize("text, why", [
    ("", "no column"), ("a,b\n1,2\n", "no column"), ("# {\n", "is no campaign"),
    (",".join(campaign.COLUMNS) + "\nx,default\n", "line 2"),
    ('# {"series": "x", "setting": "y"}\n' + ",".join(campaign.COLUMNS) + "\nx,y,z,two\n", "two")])
def test_other_files_are_refused(tmp_path, text, why):
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(UsageError, match=why):
        measured.read(file)


def test_the_results_of_this_tree_are_campaigns():
    """CSV, and a profile; all but those of GPUs, of training and of one command are read by the
    same reports."""
    files = sorted(path.name for path in RESULTS.iterdir())
    assert files == ["ddp", "digits.csv", "gpu.csv", "horovod.csv", "lab.csv", "late.csv",
                     "node.csv", "overlap.csv", "pipelining.csv", "replay.csv", "ring.csv",
                     "store.csv", "torch.csv", "training.csv"]
    for name in ("overlap.csv", "store.csv"):
        assert (RESULTS / name).read_text().startswith("# paceline bench ")
        assert all(len(row) == 2 for row in measured.rows_of(name)) and measured.rows_of(name)
    for part in device_measured.read(RESULTS / "gpu.csv"):
        assert len(part.records) > 100 and all(row["time_us_median"] > 0 for row in part.records)
    assert sum(file.stat().st_size for file in (RESULTS / "ddp").iterdir()) < 3 << 20
    for name in set(files) - {"ddp", "digits.csv", "gpu.csv", "horovod.csv", "overlap.csv",
                              "replay.csv", "store.csv", "training.csv"}:
        rows = [row for part in measured.read(RESULTS / name) for row in part.records]
        assert rows and all(row["time_us_median"] > 0 for row in rows), name
        text = (RESULTS / name).read_text()
        assert campaign.text_of(campaign.read(RESULTS / name)) == text, name  # a series more is one
    for file in ("horovod.csv", "replay.csv"):
        replays = replay_campaign.read(RESULTS / file)
        assert replay_campaign.text_of(replays) == (RESULTS / file).read_text(), file
        for name, content in replays.items():
            assert len(content["launches"]) >= 3, name
    runs = run_campaign.read(RESULTS / "digits.csv")
    assert run_campaign.text_of(runs) == (RESULTS / "digits.csv").read_text()
    for name, content in runs.items():
        assert content["ranks"][0]["weights_equal"] and content["ranks"][0]["epochs"], name
    verdicts = {row["peer"]["verdict"]["word"] for part in measured.read(RESULTS / "node.csv")
                for row in part.records if row["peer"] and row["peer"]["verdict"]}
    assert "faster" in verdicts
