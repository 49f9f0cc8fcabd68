"""`paceline bench store`, on tiny numbers."""

import json

import pytest
from paceline import cli
from paceline_bench.measure import store

pytestmark = pytest.mark.ranks


def test_all_ways_are_timed_and_compared(tmp_path, capsys):
    file = tmp_path / "store.json"
    words = ["bench", "store", "--keys", "5,20,5", "--bytes", "40", "--repeats", "2",
             "--json", str(file)]
    assert cli.main(words) == 0
    found = json.loads(file.read_text())
    assert [(row["keys"], row["way"]) for row in found["records"]] == [
        (count, way) for count in (5, 20) for way in store.WAYS]
    for row in found["records"]:
        assert (row["bytes"], row["ranks"]) == (40, 2)
        assert min(row["ms"], row["to_packed"], row["to_direct"]) > 0
        assert row["to_least"] >= 1 and row["sleeps_a_key"] >= 0
    told = capsys.readouterr().out
    assert "versions" in found and "auto, key by key" in told
    assert "5 keys of" in told and "20 keys of" in told and "x least" in told


def found_by(times, sleeps=(4, 8, 6)):
    return {way: {"times": list(times), "sleeps": list(sleeps)} for way in store.WAYS}


def test_rows_are_medians_of_the_slowest_rank():
    results = [{"2": found_by([0.001, 0.004, 0.002]), "8": found_by([0.009, 0.036, 0.009])},
               {"2": found_by([0.003, 0.001, 0.001], [0, 0, 0]),
                "8": found_by([0.008, 0.001, 0.018])}]
    results[0]["2"][store.AUTO]["times"] = [0.009, 0.009, 0.009]
    rows = {(row["keys"], row["way"]): row for row in store.rows_of(results, [2, 8])}
    packed = rows[2, store.PACKED]
    assert packed["ms"] == pytest.approx(3) and packed["to_packed"] == packed["to_least"] == 1
    assert packed["us_a_key"] == pytest.approx(1500)
    assert packed["sleeps_a_key"] == pytest.approx(3 / 2), "the mean of both ranks"
    assert rows[2, store.AUTO]["to_packed"] == pytest.approx(3)
    assert rows[2, store.AUTO]["to_least"] == pytest.approx(2), "with 8 keys it is 2.25 ms a key"
    assert rows[8, store.PACKED]["to_least"] == pytest.approx(1.5)


@pytest.mark.parametrize("keys", ["0", "100001", "8,0", "8,,9", "x", ""])
def test_numbers_of_keys_are_checked(keys, capsys):
    assert cli.main(["bench", "store", "--keys", keys]) == 2
    assert "--keys" in capsys.readouterr().err


def test_what_cannot_be_timed_is_refused(capsys):
    assert cli.main(["bench", "store", "--keys", "0"]) == 2
    assert "--keys" in capsys.readouterr().err
