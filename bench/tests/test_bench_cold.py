"""`paceline bench --cold`: the first calls of new processes, nothing warmed up."""

import json
from types import SimpleNamespace

import pytest
from length import in_long
from paceline import cli
from paceline_bench.measure import cold
from paceline_bench.measure.variants import Variant


@in_long
def test_every_call_is_kept(tmp_path, capsys):
    """Two launches, each with its own first call, of two variants at two sizes."""
    file = tmp_path / "cold.json"
    assert cli.main(["bench", "--sizes", "64,4KiB", "--cold", "--launches", "2", "--algorithm",
                     "auto,ring", "--json", str(file)]) == 0
    records = json.loads(file.read_text())["records"]
    assert [(row["bytes"], row["variant"]) for row in records] == [
        (64, "paceline"), (64, "ring"), (4096, "paceline"), (4096, "ring")]
    for row in records:
        assert row["cold"] and [len(calls) for calls in row["runs_us"]] == 2 * [cold.CALLS]
        assert row["first_us"] == [calls[0] for calls in row["runs_us"]]
        every = [us for calls in row["runs_us"] for us in calls]
        assert row["interval"] == {"of": "calls", "low_us": min(every), "high_us": max(every)}
        assert min(every) > 0
    assert "first / median" in capsys.readouterr().out


def test_the_first_call_is_held_against_all():
    row = cold.Row(Variant("paceline"), 8, ((7.5, *[1.0] * 8, 1.5), (8.0, *[1.0] * 9)))
    assert (row.firsts, row.medians) == ([7.5, 8.0], [1.0, 1.0])
    assert row.first_to_median == 7.75 and row.slowest_to_median == 1.25
    plan = SimpleNamespace(cluster=None, collective="allreduce", ranks=2, dtype="float32", op="sum")
    found = cold.record(row, plan)
    assert found["time_us_median"] == 1e6 and found["bound_us"] is None


@pytest.mark.parametrize("words", [
    ["--through", "python"], ["--batch", "2"], ["--against", "gloo"], ["--shared"],
    ["--no-reduce"]])
def test_what_means_nothing_here_is_refused(words, capsys):
    assert cli.main(["bench", "--cold", *words]) == 2
    assert words[0] in capsys.readouterr().err
