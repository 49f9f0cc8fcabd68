"""The benchmark: its inputs, what it measures, and what it records."""

import itertools
import json
import threading
import time

import numpy as np
import pytest
from paceline import _core
from paceline_bench.measure import ceiling, report, values
from paceline_bench.measure.cases import Case
from paceline_bench.measure.meeting import Meeting, make_room
from paceline_bench.measure.plan import Plan, variants_for
from paceline_bench.measure.variants import Variant

COLLECTIVES = _core.collectives()

# --- inputs and results -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", values.EXACT)
@pytest.mark.parametrize("op", values.COMBINE)
def test_results_are_exact_in_any_order(dtype, op):
    """Combined in its own type, step by step, the result is the expected one to the last bit."""
    if not _core.is_defined(op, dtype) or dtype == "bfloat16":
        return  # numpy has no bfloat16; the library's own results are checked against it
    for ranks in (1, 2, 3, 5):
        inputs = [values.inputs(rank, 200, dtype, op, ranks) for rank in range(ranks)]
        want = values.combined(200, dtype, op, ranks)
        assert want.dtype == inputs[0].dtype
        for order in itertools.islice(itertools.permutations(inputs), 6):
            total = order[0].copy()
            for other in order[1:]:
                total = values.COMBINE[op](total, other).astype(total.dtype)
            if op == "average" and np.issubdtype(total.dtype, np.integer):
                total = np.trunc(total / ranks).astype(total.dtype)
            elif op == "average":
                wide = np.float64 if dtype == "float64" else np.float32
                total = (total.astype(wide) / wide(ranks)).astype(total.dtype)
            assert np.array_equal(total, want), (ranks, dtype, op)


def test_every_type_and_operation_is_known():
    assert list(values.EXACT) == list(_core.types())
    assert set(values.COMBINE) == set(_core.ops())
    for name, size in _core.types().items():
        assert values.EXACT[name][1]().itemsize == size


def test_swapped_blocks_are_seen():
    """Inputs that are alike on all ranks, or repeat, would hide a block in the wrong place."""
    total = values.combined(64, "float32", "sum", 4).reshape(4, 16)
    for a, b in itertools.combinations(range(4), 2):
        assert not np.array_equal(total[a], total[b])
    parts = [values.inputs(rank, 64, "float32", "sum", 4) for rank in range(4)]
    for a, b in itertools.combinations(range(4), 2):
        assert not np.array_equal(parts[a], parts[b])
        assert not np.array_equal(parts[a] + parts[a], parts[a] + parts[b])


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_cases_fit_together(collective, ranks):
    """What the ranks bring and what they are due, put together by numpy alone."""
    root = ranks - 1
    cases = [Case(collective, 100, ranks, rank, root=root) for rank in range(ranks)]
    due = [case.expected for case in cases]
    if collective == "barrier":
        assert due == [None] * ranks and cases[0].bytes == 0
        return
    assert cases[0].bytes >= 100 and cases[0].bytes % 4 == 0
    brought = [case.pattern for case in cases]
    want = {
        "allreduce": lambda rank: np.sum(brought, axis=0),
        "broadcast": lambda rank: brought[root],
        "reduce": lambda rank: np.sum(brought, axis=0) if rank == root else None,
        "reduce_scatter": lambda rank: np.split(np.sum(brought, axis=0), ranks)[rank],
        "allgather": lambda rank: np.concatenate(brought),
        "alltoall": lambda rank: np.concatenate([np.split(b, ranks)[rank] for b in brought]),
        "gather": lambda rank: np.concatenate(brought) if rank == root else None,
        "scatter": lambda rank: np.split(brought[root], ranks)[rank],
    }[collective]
    for rank in range(ranks):
        assert (due[rank] is None) == (want(rank) is None)
        if due[rank] is not None:
            assert np.array_equal(due[rank], want(rank))


def test_one_wrong_element_is_found():
    case = Case("allreduce", 400, 2, 1)
    assert case.fault()  # the inputs are no result
    np.copyto(case.output, case.expected)
    assert case.fault() == ""
    case.output[17] += 1
    assert "1 of 100 elements are wrong, the first at 17" in case.fault()
    case.output[17] = np.nan
    assert "at 17" in case.fault()


def test_an_output_of_its_own_on_request():
    assert Case("allreduce", 400, 2, 1).output is not None
    for collective, own in (("allreduce", True), ("reduce", True), ("broadcast", False)):
        case = Case(collective, 400, 2, 0, separate=True)
        assert (case.input is not case.output) == own
    assert Case("reduce", 400, 2, 1, separate=True).output is None


def test_what_an_earlier_call_left_cannot_pass():
    case = Case("allgather", 400, 2, 1)
    np.copyto(case.output, case.expected)
    assert case.fault() == ""
    case.spoil()
    assert case.fault()


# --- the ceiling --------------------------------------------------------------------------------


def test_ceiling_of_two_ranks_is_the_one_we_name():
    n, add, copy = 64 << 20, 45e9, 37e9
    want = 3 * n / add + 2 * n / copy
    assert ceiling.seconds("allreduce", 2, n, (add, copy)) == pytest.approx(want)


def test_ceiling_says_nothing_where_it_means_nothing():
    assert ceiling.seconds("allreduce", 2, 1024, (1e9, 1e9)) is None
    assert ceiling.seconds("barrier", 2, 1 << 20, (1e9, 1e9)) is None
    assert ceiling.seconds("allreduce", 1, 1 << 20, (1e9, 1e9)) is None
    for collective in COLLECTIVES:
        if collective != "barrier":
            assert ceiling.seconds(collective, 3, 1 << 20, (1e9, 1e9)) > 0


# --- the meeting --------------------------------------------------------------------------------


def together(ranks, action, tmp_path):
    """Runs action(meeting) on so many threads; returns what each returned."""
    path, found = tmp_path / "meeting", [None] * ranks
    make_room(path, ranks)

    def run(rank):
        found[rank] = action(Meeting(path, rank, ranks))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found


def test_everybody_starts_at_the_same_moment(tmp_path):
    def action(meeting):
        moments = []
        for i in range(20):
            time.sleep(0.001 * ((meeting.rank + i) % 3))
            agreed = meeting.start()
            moments.append((agreed, time.monotonic_ns()))
        return moments

    by_round = list(zip(*together(3, action, tmp_path)))
    assert len(by_round) == 20
    for ranks in by_round:
        assert len({agreed for agreed, _ in ranks}) == 1
        assert all(now >= agreed for agreed, now in ranks)
    assert sorted(ranks[0][0] for ranks in by_round) == [ranks[0][0] for ranks in by_round]


def test_one_vote_against_is_enough(tmp_path):
    def action(meeting):
        rounds = []
        for i in range(10):
            mine = {"a": True, "b": meeting.rank != i % 3, "c": i < 5}
            rounds.append(meeting.agreed(mine))
        return rounds

    found = together(3, action, tmp_path)
    assert found[0] == found[1] == found[2]
    assert found[0] == [["b"]] * 5 + [["b", "c"]] * 5


def test_votes_on_many_things_at_once(tmp_path):
    def action(meeting):
        return meeting.agreed({number: number % 50 != 7 * meeting.rank for number in range(200)})

    found = together(2, action, tmp_path)
    assert found[0] == found[1]
    assert sorted(found[0]) == [0, 7, 50, 57, 100, 107, 150, 157]


# --- plans and reports --------------------------------------------------------------------------


def labels(*arguments):
    return [variant.label for variant in variants_for(*arguments)]


def test_variants():
    assert labels("allreduce", (["auto"], ["0"], 0, 0, 0), None) == ["paceline"]
    assert labels("allreduce", (["auto", "ring"], ["1", "4"], 0, 0, 0), "gloo") == [
        "paceline x 1", "paceline x 4", "ring x 1", "ring x 4", "torch paceline", "torch gloo"]
    assert labels("allreduce", (["circulant"], ["2"], 0, 3, 0), None) == ["circulant x 2, radix 3"]
    assert labels("allreduce", (["dual_root"], ["0"], 0, 0, 5), None) == ["dual_root, 5 blocks"]
    every = labels("allreduce", (["all"], ["0"], 0, 0, 0), None)
    assert every[0] == "paceline" and set(every[1:]) == those("allreduce", "messages")


def those(collective, access):
    return {row["name"] for row in _core.algorithms()
            if (row["collective"], row["access"]) == (collective, access)}


def made_up(medians, plan, rates=(1e9, 1e9)):
    """Files of the ranks: launch i takes medians[label][i] seconds, always."""
    launches = len(next(iter(medians.values())))
    return [
        [{"round_trip_ns": [100, 100], "cases": [
            {"bytes": 8192, "notes": {}, "rates": [list(rates)] * 2, "batches": {},
             "times": {label: [times[i] * (1 if rank else 0.5)] * 3
                       for label, times in medians.items()}}]}
         for rank in range(plan.ranks)]
        for i in range(launches)
    ]


def plan_against_gloo():
    variants = [Variant("paceline", "ring", 4), Variant("torch:gloo")]
    return Plan("allreduce", [8192], 2, "float32", "sum", 0, 0, True, variants, "torch gloo")


def test_records_hold_what_was_measured():
    plan = plan_against_gloo()
    medians = {"ring x 4": [2e-5] * 10, "torch gloo": [4e-5, 8e-5] * 5}
    rows, notes = report.merge(made_up(medians, plan), plan)
    assert notes == []
    ours, peer = (report.record(row, plan) for row in rows)
    assert json.loads(json.dumps(ours)) == ours
    key = ("collective", "bytes", "ranks", "algorithm", "segments", "arrival")
    assert tuple(ours[name] for name in key) == ("allreduce", 8192, 2, "ring", 4, "together")
    assert ours["time_us_median"] == pytest.approx(20)
    assert ours["bytes_per_s"] == pytest.approx(8192 / 2e-5)
    # Two ranks touch 1 GB/s each: 3n and 2n at 2 GB/s.
    assert ours["fraction_of_bound"] == pytest.approx((5 * 8192 / 2e9) / 2e-5)
    assert ours["peer"]["name"] == "torch gloo"
    assert ours["peer"]["time_ratio_median"] == pytest.approx(0.375)
    assert ours["peer"]["verdict"]["word"] == "faster"
    assert peer["peer"] is None and peer["algorithm"] is None
    assert peer["time_us_median"] == pytest.approx(60)


def test_a_variant_that_one_rank_lacks_is_left_out():
    plan = plan_against_gloo()
    files = made_up({"ring x 4": [1e-5], "torch gloo": [1e-5]}, plan)
    del files[0][1]["cases"][0]["times"]["torch gloo"]
    files[0][1]["cases"][0]["notes"]["torch gloo"] = "no such type"
    rows, notes = report.merge(files, plan)
    assert [row.variant.label for row in rows] == ["ring x 4"]
    assert rows[0].ratios is None
    assert notes == ["torch gloo at 8 KiB: no such type"]


def test_times_that_scatter_are_not_passed_over():
    plan = plan_against_gloo()
    files = made_up({"ring x 4": [1e-5], "torch gloo": [1e-4]}, plan)
    for rank in files[0]:
        rank["cases"][0]["times"]["torch gloo"][0] = 1e-6
    _, notes = report.merge(files, plan)
    assert len(notes) == 1 and "torch gloo at 8 KiB: the median is 100 times" in notes[0]


def test_launches_of_another_mode_do_not_count():
    plan = plan_against_gloo()
    files = made_up({"ring x 4": [1e-5] * 10 + [9e-5] * 2, "torch gloo": [2e-5] * 12}, plan)
    for number, trips in ((10, [500, 510]), (11, [100, 505])):
        files[number][0]["round_trip_ns"] = trips
    rows, notes = report.merge(files, plan)
    assert len(rows[0].launches) == 10 and rows[0].summary.most == pytest.approx(1e-5)
    assert rows[0].verdict.word == "faster"
    assert len(notes) == 1 and notes[0].startswith("2 of 12 launches were dropped")


def test_no_verdict_where_the_cores_moved_in_every_launch():
    plan = plan_against_gloo()
    files = made_up({"ring x 4": [1e-5] * 10, "torch gloo": [2e-5] * 10}, plan)
    for launch in files:
        launch[0]["round_trip_ns"] = [100, 500]
    rows, notes = report.merge(files, plan)
    assert rows[0].ratios == [pytest.approx(0.5)] * 10 and rows[0].verdict is None
    assert "no launch can be compared" in notes[0]
    assert "verdict" not in report.record(rows[0], plan)["peer"]
    report.verdict_table(rows, plan)


def test_a_fraction_is_that_of_the_same_launch():
    plan = plan_against_gloo()
    slow, fast = (made_up({"ring x 4": [time], "torch gloo": [1]}, plan, rates=(rate, rate))[0]
                  for time, rate in ((4e-5, 1e9), (1e-5, 4e9)))
    rows, _ = report.merge([slow, slow, fast, fast], plan)
    assert rows[0].fraction == pytest.approx(5 * 8192 / 2e9 / 4e-5)


def test_ceilings_take_the_rates_before_and_after():
    plan = plan_against_gloo()
    files = made_up({"ring x 4": [1e-5], "torch gloo": [1e-4]}, plan)
    for rank in files[0]:
        rank["cases"][0]["rates"] = [[1e9, 2e9], [3e9, 2e9]]
    rows, _ = report.merge(files, plan)
    assert rows[0].ceilings == [pytest.approx((3 + 2) * 8192 / 4e9)]
