"""Arrival patterns, measured by `paceline bench --arrival` and simulated by `paceline simulate`."""

import json

import launched
import numpy as np
import pytest
from launched import flat

from paceline import _core, patterns
from paceline.errors import UsageError

pytestmark = pytest.mark.ranks


def trace_file(folder, rows):
    path = folder / "trace.json"
    path.write_text(json.dumps({"arrivals_s": rows}), encoding="utf-8")
    return path


# --- patterns -------------------------------------------------------------------------------------


def bounds_of(delays_s, ranks=8, calls=200, alpha_s=1e-3):
    """(least, most) of a pattern's delays over many calls, in message times."""
    found = np.array([delays_s(ranks, call, alpha_s) for call in range(calls)]) / alpha_s
    return found.min(), found.max(), found


def test_uniform_is_bound_by_the_factor_and_fills_what_is_below():
    pattern = patterns.parse("uniform:10")
    least, most, found = bounds_of(pattern.delays_s)
    assert 0 <= least < 0.1 and 9.9 < most <= 10
    assert found.mean() == pytest.approx(5, abs=0.3)
    assert (found[0] != found[1]).all() and len(set(found[0])) == 8
    again = pattern.delays_s(8, 0, 1e-3)
    assert again == pattern.delays_s(8, 0, 1e-3), "equal wherever it is computed"
    # Mutants: a bound that is not reached, one that is passed, and ranks that come together.
    for mutant in (lambda *a: [0.5 * d for d in pattern.delays_s(*a)],
                   lambda *a: [1.5 * d for d in pattern.delays_s(*a)]):
        assert not 9.9 < bounds_of(mutant)[1] <= 10


def test_late_ranks_come_so_many_message_times_after_all_others():
    pattern = patterns.parse("late:5,3:1.5")
    assert pattern.delays_s(6, 9, 2e-3) == [0, 0, 0, pytest.approx(3e-3), 0, pytest.approx(3e-3)]


def test_a_trace_is_replayed_and_begins_anew(tmp_path):
    pattern = patterns.parse(f"trace:{trace_file(tmp_path, [[0, 0.5], [0.25, 0]])}")
    assert [pattern.delays_s(2, call, 1) for call in range(3)] == [[0, 0.5], [0.25, 0], [0, 0.5]]


@pytest.mark.parametrize("words", [
    "", "uniform", "uniform:", "uniform:-1", "uniform:nan", "uniform:1e9", "late:3", "late::1",
    "late:-1:1", "late:x:1", "late:1:inf", "trace:", "random:3",
])  # fmt: skip
def test_wrong_patterns_are_told_what_one_looks_like(words):
    with pytest.raises(UsageError, match="uniform:MIF"):
        patterns.parse(words)


@pytest.mark.parametrize("rows, words", [
    ([], "no call"), ([[0, 1], [0]], "different lengths"), ([[0, -1]], "no time"),
    ([["x"]], "no time"), ([0], "no table"), ("x", "arrivals_s is"),
])  # fmt: skip
def test_damaged_traces_are_named(tmp_path, rows, words):
    with pytest.raises(UsageError, match=words):
        patterns.parse(f"trace:{trace_file(tmp_path, rows)}")


def test_patterns_that_do_not_fit_the_ranks(tmp_path):
    with pytest.raises(UsageError, match="names rank 4"):
        patterns.parse("late:4:1").check(4)
    with pytest.raises(UsageError, match="is of 2 ranks"):
        patterns.parse(f"trace:{trace_file(tmp_path, [[0, 1]])}").check(4)


# --- measured and simulated -----------------------------------------------------------------------


def benched(paceline, tmp_path, monkeypatch, *words):
    for name, value in launched.limits().items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "records.json"
    status, out, err = paceline("bench", *words, "--json", file)
    assert status == 0, out + err
    return json.loads(file.read_text(encoding="utf-8"))["records"], out


def test_bench_with_a_late_rank(paceline, tmp_path, monkeypatch):
    records, out = benched(paceline, tmp_path, monkeypatch, "allreduce", "--sizes", "64KiB,128KiB",
                           "--algorithm", "auto,ring", "--arrival", "late:1:50", "--repeats", 10)
    assert [record["variant"] for record in records] == ["paceline", "ring"] * 2
    for record in records:
        # Half of it: on a loaded machine the ranks that should come first may be late as well.
        assert record["imbalance_us_median"] >= 25 * record["message_us"] > 0
        assert record["in_call_us_mean"] >= 0.45 * record["imbalance_us_median"]
        assert record["calls"] == 10 and record["arrival"] == "late:1:50"
        assert record["time_us_min"] <= record["time_us_median"] <= record["time_us_max"]
    assert "the last arrival to the last exit" in flat(out)


def test_bench_replays_a_recorded_trace(paceline, tmp_path, monkeypatch):
    trace = trace_file(tmp_path, [[0, 0.02], [0.02, 0]])
    [record], _ = benched(paceline, tmp_path, monkeypatch, "barrier", "--arrival",
                          f"trace:{trace}", "--repeats", 6)
    assert record["imbalance_us_median"] >= 15_000


def simulated(paceline, tmp_path, *words):
    file = tmp_path / "simulated.json"
    status, out, err = paceline("simulate", *words, "--json", file)
    assert status == 0, out + err
    return json.loads(file.read_text(encoding="utf-8"))["records"], out


def test_simulate_is_what_draw_shows(paceline, tmp_path):
    [together], out = simulated(paceline, tmp_path, "allreduce", "-n", 4, "--algorithm", "ring",
                                "--sizes", "1MiB")
    world = _core.World("allreduce", "ring", 4, fused=True)
    choice = _core.choose("allreduce", 4, 1 << 20, "ring", machine="ethernet-10g")
    assert together["imbalance_us_median"] == 0 and "ethernet-10g" in out
    if choice["segments"] == 1:
        trace = world.simulate(1 << 18, 4, "ethernet-10g", [])
        assert together["time_us_median"] == pytest.approx(1e6 * trace.span_s)


def test_simulate_with_late_ranks(paceline, tmp_path):
    records, _ = simulated(paceline, tmp_path, "allreduce", "-n", 8, "--algorithm", "ring",
                           "--sizes", "4MiB", "--arrival", "late:3:1.5")
    assert records[0]["imbalance_us_median"] == pytest.approx(1.5 * records[0]["message_us"])
    # A message of 4 MiB at 10 Gbit/s: 3.36 ms, and a latency.
    assert records[0]["message_us"] == pytest.approx(3360, rel=0.02)
    [random], _ = simulated(paceline, tmp_path, "allreduce", "-n", 8, "--algorithm", "ring",
                            "--sizes", "4MiB", "--arrival", "uniform:10")
    assert 0 < random["imbalance_us_median"] <= 10 * random["message_us"]


@pytest.mark.parametrize("words, why", [
    (["--algorithm", "rong"], "use auto, all"), (["--machine", "fast"], "edr-100g"),
    (["--arrival", "late:9:1"], "0 to 7"),
])  # fmt: skip
def test_simulate_says_what_is_wrong(paceline, words, why):
    status, _, err = paceline("simulate", "allreduce", *words)
    assert status == 2 and why in flat(err) and "Traceback" not in err
