"""The benchmark's other forms of a call: an MPI's calls at once, a plain ring, transfers alone."""

import json

import click
import mpis
import pytest
from paceline_bench.measure import report
from paceline_bench.measure.plan import variants_for
from test_bench import made_up, plan_against_gloo

pytestmark = pytest.mark.ranks


def test_variants_of_other_forms():
    knobs, asked = (["ring"], ["4", "1MiB"], 0, 0, 0), (["1", "4", "2MiB"], True)
    assert [v.label for v in variants_for("allreduce", knobs, "mpi", False, asked, True)] == [
        "ring x 4", "ring x 4, no reduce", "ring by 1 MiB", "ring by 1 MiB, no reduce",
        "mpi", "mpi non-blocking", "mpi x 4", "mpi by 2 MiB", "mpi ring of Sendrecv"]
    by_size = variants_for("allreduce", knobs, None)[1]
    assert [by_size.options(n)["segments"] for n in (1, 1 << 20, (1 << 20) + 1)] == [1, 1, 2]
    for words, forms in ((["4097"], ((), False)), (["-1"], ((), False)), (["1"], (["0"], False))):
        with pytest.raises(click.UsageError, match="numbers from"):
            variants_for("allreduce", (["ring"], words, 0, 0, 0), "mpi", False, forms)


def test_arithmetic_that_no_transfer_hides():
    """From pairs of one launch; a variant without arithmetic is compared with no peer."""
    plan = plan_against_gloo()
    whole = plan.variants[0]
    plan.variants.insert(1, whole.without_arithmetic())
    medians = {"ring x 4": [4e-5, 8e-5, 2e-5], "ring x 4, no reduce": [3e-5, 6e-5, 1e-5],
               "torch gloo": [1e-5] * 3}
    rows, _ = report.merge(made_up(medians, plan), plan)
    ours, twin, peer = (report.record(row, plan) for row in rows)
    assert ours["exposed_arithmetic"] == pytest.approx(0.25)
    assert ours["checked"] and ours["peer"] and not twin["checked"] and not twin["combines"]
    assert twin["peer"] is None and twin["exposed_arithmetic"] is None
    assert ours["interval"]["of"] == "calls" and ours["interval"]["confidence"] == 0.95
    assert ours["interval"]["low_us"] == pytest.approx(20)
    assert ours["interval"]["high_us"] == pytest.approx(80)
    assert peer["exposed_arithmetic"] is None


def test_bench_of_other_forms(paceline, tmp_path):
    """An MPI's non-blocking collectives, a ring of its Sendrecv, and ours without arithmetic."""
    host, file = next(m for m in mpis.found() if m.family == "mpich"), tmp_path / "records.json"
    status, out, errors = paceline(
        "bench", "allreduce", "--sizes", "64KiB", "--repeats", "2",
        "--against", "mpi", "--mpi", host.library, "--json", file, "--algorithm", "ring",
        "--segments", "2", "--peer-segments", "1,4", "--peer-ring", "--no-reduce")
    assert status == 0, out + errors
    assert "wrong by design" in out and "not overlapped" in out
    found = {row["variant"]: row for row in json.loads(file.read_text())["records"]}
    assert {name: (row["form"], row["segments"]) for name, row in found.items()} == {
        "ring x 2": ("blocking", 2), "ring x 2, no reduce": ("blocking", 2),
        "mpi": ("blocking", None), "mpi non-blocking": ("concurrent", 1),
        "mpi x 4": ("concurrent", 4), "mpi ring of Sendrecv": ("sendrecv_ring", None)}
    assert [name for name, row in found.items() if not row["checked"]] == ["ring x 2, no reduce"]
    assert found["ring x 2"]["exposed_arithmetic"] is not None
