"""Native calls, which launches may be compared, how peers are set, and the table over settings."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from paceline import _core
from paceline.errors import UsageError
from paceline_bench import _native
from paceline_bench.measure import modes, peers, worker

NEAR, FAR = (100, 110), (500, 520)
ROOT = Path(__file__).resolve().parents[2]


# --- native calls -------------------------------------------------------------------------------


def aligned(nbytes):
    """Zeroed memory for a start line."""
    whole = np.zeros(nbytes + 128, dtype=np.uint8)
    begin = -whole.ctypes.data % 128
    return whole[begin : begin + nbytes]


def test_inputs_are_written_anew_and_results_are_there():
    line = _native.StartLine(aligned(_native.StartLine.bytes_for(1)), 0, 1, False)
    x, out, pattern = np.zeros(3), np.zeros(3), np.arange(3.0)
    world = _core.join(None, 0, 1, "alone")
    call = _native.timed(_core.native_call(world, "allreduce", x, out, "sum", 0, None),
                         _core.native_combine(x, [pattern], "max"))
    call()
    assert list(out) == [0, 0, 0]
    times = _native.alternate(line, [call, call], 1, 4, [1, 3])
    assert [len(some) for some in times] == [4, 4] and min(map(min, times)) > 0
    assert list(out) == [0, 1, 2]
    world.leave()


def test_native_calls_refuse_what_does_not_fit():
    size = _native.StartLine.bytes_for(2)
    for rank, ranks, nbytes in ((2, 2, size), (-1, 2, size), (0, 2, size - 1)):
        with pytest.raises(UsageError, match="StartLine: rank"):
            _native.StartLine(aligned(nbytes), rank, ranks, False)
    world, x = _core.join(None, 0, 1, "alone"), np.zeros(3)
    with pytest.raises(UsageError, match="2 elements of float64, target 3"):
        _core.native_combine(x, [x[:2]], "max")
    with pytest.raises(UsageError, match="no sources"):
        _core.native_combine(x, [], "max")
    with pytest.raises(UsageError, match="read-only"):
        _core.native_combine(np.frombuffer(b"12345678"), [x], "max")
    with pytest.raises((TypeError, AttributeError)):
        _native.timed(print)
    line = _native.StartLine(aligned(_native.StartLine.bytes_for(1)), 0, 1, False)
    call = _native.timed(
        _core.native_call(world, "barrier", None, None, "sum", 0, None))
    for batches in ([], [1, 1], [0]):
        with pytest.raises(UsageError, match="one for each"):
            _native.alternate(line, [call], 0, 1, batches)
    world.leave()


def test_batches_only_where_a_single_call_says_too_little():
    assert worker.most_in_batch("allreduce", 1024, False) > 1
    assert worker.most_in_batch("allreduce", 1025, False) == 1
    assert worker.most_in_batch("broadcast", 8, False) == 1  # the root would run ahead
    for collective in ("allreduce", "broadcast"):
        assert worker.most_in_batch(collective, 8, True) > worker.most_in_batch("barrier", 0, False)
        assert worker.most_in_batch(collective, 64 << 20, True) == 1


# --- modes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("trips, kept", [
    ([NEAR, NEAR, NEAR], [0, 1, 2]),
    ([FAR, NEAR, FAR], [0, 2]),
    ([NEAR, FAR], [0]),  # as many of each: the faster ones
    ([(100, 500), FAR, NEAR, FAR], [1, 3]),  # one that moved belongs to neither
    ([(100, 500), (500, 100)], []),
    ([(100, 180), (140, 250)], [0, 1]),  # noise is no mode
    ([(0, 0), (0, 0)], [0, 1]),  # not measured: more ranks than cores
    ([(100, 100), (201, 250), (600, 600), (250, 260)], [1, 3]),
])  # fmt: skip
def test_launches_of_one_mode_are_kept(trips, kept):
    found = modes.modes_of(trips)
    assert found.kept == kept
    assert found.dropped == len(trips) - len(kept)
    assert bool(found.sentence) == (found.dropped > 0)


def test_the_typical_trip_is_that_of_the_kept_launches():
    assert modes.modes_of([FAR, NEAR, FAR]).typical == 510
    assert modes.modes_of([(0, 0)]).typical is None
    assert modes.modes_of([(100, 500)]).typical is None


# --- settings -----------------------------------------------------------------------------------


def test_kinds_are_told_by_what_they_say():
    assert peers.kind_of("Open MPI v5.0.11, package: ...") == peers.OPENMPI
    assert peers.kind_of("MPICH Version: 5.0.2") == peers.MPICH
    assert peers.kind_of("Intel(R) MPI Library 2021.18.1 for Linux* OS") == peers.INTEL


def test_settings_begin_with_the_defaults_and_fit_the_collective():
    for kind in (peers.OPENMPI, peers.MPICH, peers.INTEL):
        assert next(iter(peers.settings(kind, "allreduce"))) == peers.DEFAULT
        assert peers.setting(kind, "broadcast", peers.DEFAULT) == {}
        for name, variables in peers.settings(kind, "broadcast").items():
            assert not any("ALLREDUCE" in variable.upper() for variable in variables), name
    with pytest.raises(UsageError, match="adjust12"):
        peers.setting(peers.INTEL, "allreduce", "adjust99")


def test_what_an_mpi_needs_yields_to_what_the_user_has_set(monkeypatch, tmp_path):
    (tmp_path / "libshm-fi.so").touch()
    library, many = str(tmp_path / "libmpi.so.12"), len(os.sched_getaffinity(0)) + 1
    for name in ("I_MPI_PIN", "I_MPI_THREAD_YIELD", "FI_PROVIDER_PATH"):
        monkeypatch.delenv(name, raising=False)
    alone = peers.needed(peers.INTEL, library, 1)
    assert alone == {"I_MPI_PIN": "off", "FI_PROVIDER_PATH": str(tmp_path)}
    assert "I_MPI_THREAD_YIELD" in peers.needed(peers.INTEL, library, many)
    monkeypatch.setenv("I_MPI_PIN", "on")
    assert "I_MPI_PIN" not in peers.needed(peers.INTEL, library, 1)
    assert peers.needed(peers.MPICH, library, many) == {}


def test_variables_are_names_and_values():
    assert peers.pairs(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    for word in ("A", "=1", ""):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            peers.pairs([word])


# --- the table of a node ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables():
    spec = importlib.util.spec_from_file_location("node_table", ROOT / "bench/node/table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def content(ratios, word="faster"):
    """A file of `paceline bench`: by size our time over the peer's, which takes 10 us."""
    records = []
    for nbytes, ratio in ratios.items():
        peer = {"time_ratio_median": ratio, "verdict": {"word": word}}
        records += [
            {"bytes": nbytes, "variant": "paceline", "time_us_median": 10 * ratio, "peer": peer},
            {"bytes": nbytes, "variant": "mpi", "time_us_median": 10, "peer": None},
        ]
    return {"records": records, "round_trips_ns": [(100, 100)] * 3, "round_trip_ns": 100,
            "launches_dropped": 1}


def test_the_hardest_setting_is_picked_size_by_size(tables):
    settings = {"default": content({8: 0.5, 64: 0.9}), "x": content({8: 0.7, 64: 0.2}, "slower")}
    assert tables.hardest(settings, 8)[0] == "x"
    assert tables.hardest(settings, 64)[0] == "default"
    found = tables.summary(settings)
    assert found["default"]["paceline"]["speed_up"] == pytest.approx((1 / 0.45) ** 0.5)
    hardest = found["hardest"]["paceline"]
    assert hardest["speed_up"] == pytest.approx((1 / 0.63) ** 0.5)
    assert hardest["verdicts"] == {"slower": 1, "faster": 1} and hardest["sizes"] == 2
    assert tables.table("t", settings).row_count == 2
    assert any("1 of 3 were dropped" in line for line in tables.sentences(settings))


def test_what_was_not_measured_is_no_number(tables):
    only = content({8: 0.5})
    only["records"] = only["records"][1:]  # the peer alone
    assert tables.hardest({"default": only}, 8) is None
    assert tables.summary({"default": only}) == {}
    assert tables.table("t", {"default": only}).row_count == 1


# --- against an earlier commit ------------------------------------------------------------------


@pytest.fixture
def parents():
    spec = importlib.util.spec_from_file_location("node_parent", ROOT / "bench/node/parent.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("factor, word", [(0.8, "faster"), (1.0, "not slower"), (1.2, "slower")])
def test_a_tree_is_judged_against_its_parent_launch_by_launch(parents, factor, word):
    turns = []

    def measuring(side, factor):
        def measure():
            turns.append(side)
            busy = 1 + (len(turns) - 1) // 2 % 3  # the machine's pace, another for each pair
            return {8: factor * busy, 1024: 10 * busy}

        return measure

    pairs = parents.paired(measuring("now", factor), measuring("then", 1.0), 10)
    found = parents.judged(pairs)
    assert [turns.count(side) for side in ("now", "then")] == [10, 10]
    assert turns[:4] == ["now", "then", "then", "now"]
    assert found[8][2].ratio == pytest.approx(factor)
    assert (found[8][2].word, found[1024][2].word) == (word, "not slower")


def test_few_launches_give_no_verdict_on_a_parent(parents):
    with pytest.raises(click.UsageError, match="at least 10 launches; --launches is 3"):
        parents.compare("HEAD", ["allreduce"], 3, [], None)


def test_options_of_mpis_are_refused_with_a_parent():
    command = [sys.executable, ROOT / "bench/node/run.py", "--parent", "HEAD", "--mpis", "impi",
               "--separate"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--mpis, --separate: --parent measures no MPI" in " ".join(done.stderr.split())
