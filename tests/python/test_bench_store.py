"""`paceline bench store`, on tiny numbers."""

import json

import pytest

from paceline import cli
from paceline.bench import store

pytestmark = pytest.mark.ranks


def test_all_ways_are_timed_and_compared(tmp_path, capsys):
    file = tmp_path / "store.json"
    words = ["bench", "store", "--keys", "5", "--bytes", "40", "--repeats", "2",
             "--json", str(file)]
    assert cli.main(words) == 0
    found = json.loads(file.read_text())
    assert [row["way"] for row in found["records"]] == list(store.WAYS)
    for row in found["records"]:
        assert (row["keys"], row["bytes"], row["ranks"]) == (5, 40, 2)
        assert min(row["ms"], row["to_packed"], row["to_direct"]) > 0
    assert "versions" in found and "auto, key by key" in capsys.readouterr().out


def test_rows_are_medians_of_the_slowest_rank():
    results = [{way: [0.001, 0.004, 0.002] for way in store.WAYS},
               {way: [0.003, 0.001, 0.001] for way in store.WAYS}]
    results[0][store.AUTO] = [0.009, 0.009, 0.009]
    rows = {row["way"]: row for row in store.rows_of(results)}
    assert rows[store.PACKED]["ms"] == pytest.approx(3) and rows[store.PACKED]["to_packed"] == 1
    assert rows[store.AUTO]["to_packed"] == pytest.approx(3)


def test_what_cannot_be_timed_is_refused(capsys):
    assert cli.main(["bench", "store", "--keys", "0"]) == 2
    assert "--keys" in capsys.readouterr().err
