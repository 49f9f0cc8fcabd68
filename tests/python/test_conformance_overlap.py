"""torch's own tests of DDP with overlap() in its place: each passes, is skipped by torch, or is
refused with a sentence; or it asks for something else, which OTHERWISE names."""

import re
import xml.etree.ElementTree
from pathlib import Path

import pytest
import test_conformance
from length import in_long

pytestmark = pytest.mark.ranks

# What fails without a refusal, and why: docs/conformance.md says the same.
OTHERWISE = {
    "test_DistributedDataParallel_requires_grad":
        "DDP refuses a model that trains nothing; overlap leaves it alone",
    "test_ddp_broadcast_buffers_deprecation_warning": "a warning about DDP's own options",
    "test_ddp_compile_static_graph": "compiles for a CUDA device",
    "test_ddp_device": "looks at which device inputs have been moved to",
    "test_ddp_multiple_nested_unused_params_error":
        "DDP's error for parameters without gradients; overlap counts them as zero",
    "test_ddp_profiling_torch_profiler": "counts DDP's own calls in a profile",
    "test_ddp_unused_params_rebuild_buckets_exception":
        "DDP's error for parameters without gradients; overlap counts them as zero",
    "test_invalid_static_graph": "DDP's error for a graph that changes; overlap lets it change",
    "test_static_graph_api_cpu": "DDP's error for a late promise; overlap needs no promise",
}  # fmt: skip
ENDED = {"passed": 26, "refused": 40, "otherwise": 9, "skipped": 18}   # at 2 ranks, torch 2.13


def outcome():
    """By test how it ended, and all that was said."""
    report, said = test_conformance.run_suite(
        "conformance_overlap.py", "TestOverlap", 2, PACELINE_TIMEOUT_MS="15000")
    return {case.get("name"): ended(case)
            for case in xml.etree.ElementTree.fromstring(report).iter("testcase")}, said


def ended(case):
    """How one test ended; of one that failed without a refusal the last of what it said."""
    bad = [*case.iter("failure"), *case.iter("error")]
    if not bad:
        return "passed" if case.find("skipped") is None else "skipped"
    if re.search(r"(RefusalError|UsageError): overlap\b.*\.", bad[0].text):
        return "refused"
    return "otherwise" if case.get("name") in OTHERWISE else f"failed: {bad[0].text[-500:]}"


@in_long
@pytest.mark.limit_s(700)
def test_ddp_of_torch():
    found, said = outcome()
    counts = {how: list(found.values()).count(how) for how in ENDED}
    print(counts, *(f"{name}: {how}" for name, how in sorted(found.items())), sep="\n")
    assert counts == ENDED and sum(counts.values()) == len(found), (found, said[-3000:])
    assert {name for name, how in found.items() if how == "otherwise"} == set(OTHERWISE)


def test_the_page_says_so():
    page = (Path(__file__).parents[2] / "docs/conformance.md").read_text()
    for name, why in OTHERWISE.items():
        assert f"| `{name}` | {why} |" in page
    for how, count in ENDED.items():
        assert f"{count} {how}" in page


def test_reports_are_read():
    case = xml.etree.ElementTree.fromstring
    assert ended(case("<c><failure>RefusalError: overlap has no x.</failure></c>")) == "refused"
    assert ended(case("<c><failure>overlap: no sentence</failure></c>")).startswith("failed")
    assert ended(case("<c><skipped/></c>")) == "skipped" and ended(case("<c/>")) == "passed"
