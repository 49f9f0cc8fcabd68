"""`paceline bench` on ranks: what it measures, shows and writes."""

import json
import math
import sys

import pytest
from launched import forking
from length import each, in_long
from test_bench import COLLECTIVES, those

pytestmark = pytest.mark.ranks
FEW = ("allreduce", "broadcast")
MORE = [name for name in COLLECTIVES if name not in FEW]


@pytest.fixture
def bench(paceline, tmp_path, monkeypatch):
    """Runs `paceline bench` on forked ranks; returns (status, output, records)."""
    file = tmp_path / "records.json"

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["paceline", "bench", *arguments])  # told in the records
        with forking():
            status, out, errors = paceline("bench", *arguments, "--json", file)
        return status, out + errors, json.loads(file.read_text()) if file.exists() else {}

    return run


def test_bench_writes_what_it_shows(bench):
    status, out, content = bench(
        "allreduce", "--sizes", "4,16KiB", "--algorithm", "auto,ring", "--segments", "0,3",
        "--repeats", "3", "--launches", "2")
    assert status == 0, out
    records = content["records"]
    assert len(records) == 8
    assert {record["bytes"] for record in records} == {4, 16384}
    assert {record["variant"] for record in records} == {
        "paceline", "paceline x 3", "ring", "ring x 3"}
    for record in records:  # those of a launch whose cores have moved count if there are no others
        assert 0 < record["time_us_min"] <= record["time_us_median"] <= record["time_us_max"]
        assert record["launches"] == 2 - content["launches_dropped"] % 2
        assert record["repetitions"] == 3 * record["launches"]
        assert (record["fraction_of_bound"] is None) == (record["bytes"] < 4096)
        assert record["variant"] in out
    assert len(content["round_trips_ns"]) == 2 and all(map(len, content["round_trips_ns"]))
    assert content["machine"]["cores"] and content["date"] and content["versions"]["paceline"]
    assert content["command"].startswith("paceline bench allreduce --sizes 4,16KiB")


@each("collective", FEW, MORE)
def test_bench_of_every_collective_is_exact(bench, collective, monkeypatch):
    dtype = "bfloat16" if collective == "allreduce" else "float32"
    if dtype == "bfloat16":  # ranks load torch for it
        pytest.importorskip("torch")
        monkeypatch.setenv("WITH_TORCH", "1")
    status, out, content = bench(
        collective, "-n", "3", "--sizes", "1000", "--dtype", dtype, "--root", "2",
        "--repeats", "2", "--algorithm", "all")
    assert status == 0, out
    assert content["notes"] == [] or all("fastest call" in note for note in content["notes"])
    assert len(content["records"]) == 1 + len(those(collective, "messages"))


@each("collective", FEW, MORE)
def test_native_calls_are_exact(bench, collective):
    shared, separate = any(those(collective, "symmetric")), collective in ("allreduce", "reduce")
    status, out, content = bench(
        collective, "--sizes", "1000", "--root", "1", "--repeats", "2", "--batch", "3",
        "--through", "native", *["--shared"] * shared, *["--separate"] * separate)
    assert status == 0, out
    records = content["records"]
    assert {row["separate_output"] for row in records} == {separate}
    assert [row["shared_buffers"] for row in records] == ([False, True] if shared else [False])
    assert all(row["batch"] == 3 and row["timed"] == "natively" for row in records)
    assert all(0 < row["time_us_min"] < 1e7 and row["repetitions"] == 2 for row in records)
    assert "wrong" not in out and len(content["round_trips_ns"]) == 1


@in_long
def test_bench_against_gloo(bench):
    pytest.importorskip("torch")
    status, out, content = bench("allreduce", "--sizes", "1KiB", "--repeats", "3", "--against",
                                 "gloo")
    assert status == 0, out
    by_label = {record["variant"]: record for record in content["records"]}
    assert set(by_label) == {"paceline", "torch paceline", "torch gloo"}
    ratio = by_label["torch paceline"]["peer"]["time_ratio_median"]
    assert math.isfinite(ratio) and ratio > 0
    assert "vs gloo" in out


def test_bench_tells_what_the_ranks_said(bench, tmp_path):
    status, out, _ = bench("allreduce", "--sizes", "4", "--shm-dir", str(tmp_path / "no"))
    assert status == 1
    assert "the ranks failed" in out and str(tmp_path / "no") in out
