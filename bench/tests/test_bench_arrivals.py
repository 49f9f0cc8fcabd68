"""Calls whose ranks come at different times: what is believed, and who is left out."""

import io
import json
import time
from types import SimpleNamespace

import click
import pytest
from paceline.errors import RefusalError
from paceline_bench.cli import bench_arrivals
from paceline_bench.measure import arrivals, campaign, launching, links
from paceline_bench.measure.plan import Plan, variants_for
from paceline_bench.measure.variants import Variant
from rich.console import Console

NBYTES, RATE = 1 << 20, 200e6
MESSAGE_S = 8 * NBYTES / RATE
ABOUT = {"rate": "200mbit", "waiting": "as each library waits"}
CLUSTER = links.Cluster(nodes=3, ppn=1, rate=RATE, interface="eth0", folder="", about=ABOUT)
AUTO, RING = Variant("paceline"), Variant("paceline", "ring")
TAIL = Variant("paceline", "tail_direct")


def plan(*variants, cluster=CLUSTER, **more):
    return Plan("allreduce", [NBYTES], 3, "float32", "sum", 0, 0, False, list(variants),
                cluster=cluster, arrival="late:1:2", **more)


def launch(variant, late=2.0, after=1.3, sent=1.34, predict="auto"):
    """The files of three ranks on three nodes. Rank 1 comes `late` message times after the others,
    and the last one leaves `after` that; `sent`: messages that cross each interface, each way."""
    files = []
    for rank, node in enumerate("abc"):
        enter = 5.0 + (late * MESSAGE_S if rank == 1 else 0)
        leave = 5.0 + (late + after) * MESSAGE_S
        case = {"bytes": NBYTES, "notes": {}, "message_s": {variant.label: MESSAGE_S},
                "predict": predict, "enter": {variant.label: [enter] * 7},
                "leave": {variant.label: [leave] * 7}, "calls": {variant.label: 7},
                "moved": {variant.label: [int(7 * sent * NBYTES)] * 2}, "machine": "",
                "explained": {variant.label: "ring: asked for"}, "passed": {}, "idle": 0.5}
        files.append({"node": node, "cases": [json.loads(json.dumps(case))]})
    return files


def found(variant, **figures):
    return arrivals.rows_of([launch(variant, **figures)], plan(variant))


def test_time_from_the_last_arrival_on_in_message_times():
    [row], notes = found(RING)
    assert notes == [] and row.median_s == pytest.approx(1.3 * MESSAGE_S)
    record = arrivals.record(row, plan(RING))
    assert record["time_per_message"] == pytest.approx(1.3)
    assert record["in_call_per_message"] == pytest.approx((1.3 + 2 * 3.3) / 3)
    assert record["imbalance_us_median"] == pytest.approx(2e6 * MESSAGE_S)
    assert record["predict"] == "auto" and record["choice"] == "ring: asked for"


@pytest.mark.parametrize("mutant, why", [
    ({"sent": 0.5}, "must send"),
    ({"after": 0.95}, "nothing can be faster"),  # what comes last has yet to cross a link
    ({"late": 0.0, "after": 1.2}, "nothing can be faster"),  # of 4/3 that all have to
])  # fmt: skip
def test_figures_that_the_links_do_not_allow_are_refused(mutant, why):
    rows, [note] = found(RING, **mutant)
    assert rows == [] and note.startswith("refused: ring at 1 MiB: ") and why in note


def test_a_call_may_take_less_than_its_bound_from_the_last_arrival_on():
    rows, notes = found(TAIL, after=1.1, predict="static:1")
    assert len(rows) == 1 and notes == []


def test_the_table_fits_a_terminal():
    longest = Variant("paceline", "multilane_tail_direct")
    rows, _ = found(longest)
    out = Console(width=80, record=True, file=io.StringIO())
    out.print(arrivals.table(rows, plan(longest)))
    text = out.export_text()
    assert "…" not in text and "x n/rate" in text and "1.30" in text
    assert "1 MiB: 41.9 ms" in bench_arrivals.how(rows, plan(longest))


def test_a_campaign_keeps_arrivals_apart_from_other_figures(tmp_path):
    [row], _ = found(RING)
    record = arrivals.record(row, plan(RING))
    file = tmp_path / "lab.csv"
    usual = {"records": [{"collective": "allreduce", "time_us_median": 1.0}]}
    campaign.add(file, {"a": {"default": usual}})
    assert "in_call" not in file.read_text(encoding="utf-8")
    campaign.add(file, {"b": {"default": {"records": [record]}}})
    read = campaign.read(file)
    [late] = read["b"]["default"]["records"]
    for name in ("arrival", "predict", *campaign.NUMBERS[-3:]):
        wanted = record[name]
        assert late[name] == (wanted if isinstance(wanted, str) else pytest.approx(wanted, 1e-5))
    assert read["a"]["default"]["records"][0]["message_us"] is None


# --- who knows who is late ------------------------------------------------------------------------


@pytest.mark.parametrize("variants, predict, told", [
    ([TAIL], "off", True), ([AUTO, TAIL], "off", True), ([TAIL], "auto", True),
    ([AUTO, TAIL], "auto", False), ([TAIL], "static:1", False), ([AUTO, RING], "off", False),
])  # fmt: skip
def test_who_has_nobody_for_late_is_told_so(variants, predict, told):
    notes = arrivals.untaught(plan(*variants), [launch(variants[0], predict=predict)])
    assert bool(notes) == told
    assert all("tail_direct: predicted no late rank" in note for note in notes)


def test_without_prediction_is_measured_in_processes_of_its_own():
    variants = variants_for("allreduce", (["auto"], ["0"], 0, 0, 0), "mpi", predict="off")
    assert [v.label for v in variants] == ["paceline", "paceline, predict off", "mpi"]
    assert [v.learns for v in variants] == [True, False, False]
    first, second = plan(*variants, environment={"A": "1"}).parts()
    assert [v.label for v in first.variants] == ["paceline", "mpi"]
    assert first.environment == {"A": "1"}
    assert [v.label for v in second.variants] == ["paceline, predict off"]
    assert second.environment == {"A": "1", "PACELINE_PREDICT": "off"}
    files = launching.joined([launch(AUTO), launch(variants[1], after=1.5)])
    rows, notes = arrivals.rows_of([files], plan(AUTO, variants[1]))
    assert notes == [] and [row.predict for row in rows] == ["auto", "off"]
    assert [row.median_s / MESSAGE_S for row in rows] == pytest.approx([1.3, 1.5])


# --- calls ----------------------------------------------------------------------------------------


class Feigned:
    """A case whose result is wrong from its call number `wrong` on."""

    def __init__(self, wrong=1 << 30):
        self.calls, self.wrong = 0, wrong

    def rewrite(self):
        self.calls += 1

    def fault(self):
        return "rank 0: 1 element is wrong" if self.calls >= self.wrong else ""


def timed(predict, monkeypatch, *, wrong=1 << 30, refused=1 << 30):
    """(what a rank alone finds, why not all, the case) of auto."""
    monkeypatch.setattr(arrivals, "predicts", lambda: predict)
    case = Feigned(wrong)

    def call():
        if case.calls >= refused:
            raise RefusalError("ring: late ranks\nUse auto.")

    meeting = SimpleNamespace(start=time.monotonic_ns, agreed=lambda mine: [])
    worker = SimpleNamespace(spec={"arrival": "late:0:1"}, cluster=None, rank=0, ranks=1,
                             communicator=None, variants=[AUTO], meeting=meeting)
    label = AUTO.label
    monkeypatch.setattr(arrivals, "explained", lambda *_: "; taken for late: " + (
        "0" if case.calls >= 3 else "none"))
    return *arrivals.timed(worker, {label: call}, {label: case}, NBYTES, 5), case


def test_calls_that_learn_come_before_those_that_are_timed(monkeypatch):
    for predict in (True, False):
        cases, notes, case = timed(predict, monkeypatch)
        assert notes == {} and len(cases["enter"]["paceline"]) == 5
        assert case.calls == 5 + 1 + (arrivals.LEARNING if predict else 0)
        assert cases["late_from"] == ({"paceline": 4} if predict else {})
        assert all(a <= b for a, b in zip(cases["enter"]["paceline"], cases["leave"]["paceline"]))


@pytest.mark.parametrize("mutant, why", [
    ({"wrong": arrivals.LEARNING}, "wrong result: rank 0"),
    ({"refused": arrivals.LEARNING}, "RefusalError: ring: late ranks"),
    ({"refused": arrivals.LEARNING + 4}, "RefusalError: ring: late ranks"),
])  # fmt: skip
def test_what_goes_wrong_once_ranks_are_known_to_be_late_is_left_out(monkeypatch, mutant, why):
    cases, notes, _ = timed(True, monkeypatch, **mutant)
    assert cases["enter"] == {} and cases["message_s"] == {}
    assert notes["paceline"].startswith(why) and "\n" not in notes["paceline"]


def test_a_launch_may_take_as_long_as_its_ranks_are_late():
    early = CLUSTER.limit_s(Plan(**{**vars(plan(RING)), "arrival": ""}))
    assert CLUSTER.limit_s(plan(RING)) - early == pytest.approx(2 * MESSAGE_S * links.CALLS)


def test_a_barrier_has_no_message_time_between_nodes():
    barrier = Plan(**{**vars(plan(RING)), "collective": "barrier", "sizes": [0]})
    with pytest.raises(click.UsageError, match="use trace:FILE"):
        bench_arrivals.check_in_lab(barrier)
    bench_arrivals.check_in_lab(plan(RING))
