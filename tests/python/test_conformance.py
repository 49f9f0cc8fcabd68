"""torch's own tests of process groups pass over Paceline: a few of them, all in the long run."""

import collections
import functools
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

import launched
import pytest
from length import in_long

from paceline.launch import held_port

pytestmark = pytest.mark.ranks

# What gloo passes of them, by ranks (torch 2.13; SUITE_AS and SUITE_OVER=gloo measure it).
GLOO_PASSES = {2: 91, 3: 91, 4: 94}

# How many pass, fail (cannot_pass() says which), and are skipped: by the name that we are taken
# for and ranks, with torch 2.13. docs/conformance.md has them by reason; both change together.
ENDED = {
    ("mpi", 2): (75, 16, 193), ("mpi", 3): (91, 0, 193), ("mpi", 4): (91, 0, 193),
    ("gloo", 2): (89, 1, 194), ("gloo", 3): (89, 1, 194), ("gloo", 4): (92, 1, 191),
    ("paceline", 2): (66, 0, 218), ("paceline", 3): (66, 0, 218), ("paceline", 4): (67, 0, 217),
}  # fmt: skip
PASSED_SOMEHOW = {2: 99, 3: 115, 4: 118}  # under one of the names

# One of each kind, taken for gloo at 2 ranks: seconds.
CHOSEN = {f"test_{name}" for name in (
    "all_reduce_full_group_sum", "gather", "barrier", "send_recv_with_tag", "scatter_object_list",
    "DistributedDataParallelCPU",
)}  # fmt: skip

# Only for gloo's name: what other backends do not have.
OF_GLOO = {"test_monitored_barrier_gloo", "test_sparse_all_reduce_sum"}

# Why torch skips the others: what is not a matter of the backend on CPUs.
REASONS = (
    "cuda|gpu|accelerator", "nccl|ucc", "GLOO|Only MPI supports", "world size|world_size",
    "github.com/pytorch/pytorch/(issues|pull)/", "Test requires|Requires|Need at least",
    "does not support|not supported|doesn't support",
    "not compiled|sandcastle|torchvision|flakiness",
)  # fmt: skip


@functools.cache
def outcome(taken_for, ranks, over="paceline", chosen=frozenset()):
    """How each test ended ("passed", or why it was skipped), and what went wrong."""
    report, said = run_suite("conformance.py", "TestOverPaceline", ranks, chosen=chosen,
                             SUITE_AS=taken_for, SUITE_OVER=over)
    return read(report), said


def run_suite(file, cases, ranks, chosen=(), **env):
    """The report of all tests, or of those that are chosen, and what they have said."""
    for module in ("torch", "expecttest", "psutil"):
        pytest.importorskip(module)
    with tempfile.TemporaryDirectory() as folder, held_port() as port:
        for name in ("barrier", "test_dir"):
            (Path(folder) / name).mkdir()
        report = Path(folder) / "report.xml"
        env = {
            **os.environ, **env, "WORLD_SIZE": str(ranks), "TEMP_DIR": folder,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "PACELINE_TIMEOUT_MS": "30000",
        }  # fmt: skip
        suite = str(launched.RANKS / file)
        which = [f"{suite}::{cases}::{name}" for name in sorted(chosen)]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore",
             f"--junitxml={report}", *(which or [suite])],
            env=env, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        return report.read_text(), done.stdout


def read(report):
    """Test -> "passed", or "failed", or why it was skipped."""
    found = {}
    for case in xml.etree.ElementTree.fromstring(report).iter("testcase"):
        skipped, bad = case.find("skipped"), [*case.iter("failure"), *case.iter("error")]
        found[case.get("name")] = ("failed" if bad else "passed" if skipped is None
                                   else skipped.get("message"))  # fmt: skip
    return found


def names(found, how):
    return {name for name, ended in found.items() if ended == how}


def cannot_pass(taken_for, ranks):
    """For MPI's name the groups of ranks 1 and 2 in a world that has no rank 2."""
    groups = {f"test_{call}_group" for call in (
        "all_gather", "all_to_all", "barrier", "broadcast",
        "gather", "scatter", "all_to_all_single_equal_split", "all_to_all_single_unequal_split",
    )} | {f"test_{call}_group_{op}" for call in ("reduce", "all_reduce")
          for op in ("max", "min", "product", "sum")}  # fmt: skip
    if taken_for == "gloo":  # DDP's C++ logs our name: by gloo's it would look for gloo's class
        return {"test_ddp_logging_data_cpu"}
    return groups if taken_for == "mpi" and ranks == 2 else set()


def unexplained(found):
    """Those that are skipped for a reason that nobody has thought about."""
    return {name: why for name, why in found.items() if why not in ("passed", "failed")
            and not re.search("|".join(REASONS), why, re.IGNORECASE)}  # fmt: skip


def ended(found):
    """How many have passed, failed and been skipped."""
    passed, failed = len(names(found, "passed")), len(names(found, "failed"))
    return passed, failed, len(found) - passed - failed


@in_long
@pytest.mark.limit_s(1400)
@pytest.mark.parametrize("ranks", GLOO_PASSES)
def test_suite_of_torch(ranks):
    passed = set()
    for taken_for in ("mpi", "gloo", "paceline"):
        found, said = outcome(taken_for, ranks)
        reasons = collections.Counter(why for why in found.values() if why != "passed")
        print(f"{ranks} ranks as {taken_for}: {len(names(found, 'passed'))} passed; skipped:")
        print(*(f"  {count}: {why}" for why, count in reasons.most_common()), sep="\n")
        assert names(found, "failed") == cannot_pass(taken_for, ranks), said[-3000:]
        assert unexplained(found) == {}
        assert ended(found) == ENDED[taken_for, ranks], said[-3000:]
        passed |= names(found, "passed")
    print(f"{ranks} ranks: {len(passed)} passed under one of the names")
    assert len(passed) == PASSED_SOMEHOW[ranks] > GLOO_PASSES[ranks]


def test_chosen_ones_of_the_suite():
    found, said = outcome("gloo", 2, chosen=frozenset(CHOSEN | OF_GLOO))
    assert names(found, "passed") == CHOSEN | OF_GLOO, (found, said[-3000:])


def test_the_numbers_are_those_of_the_page():
    """docs/conformance.md, row by row, adds up to ENDED."""
    page = (Path(__file__).parents[2] / "docs/conformance.md").read_text()
    sums = {shape: [0, 0, 0] for shape in ENDED}
    for line in page.splitlines():
        what, *cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) == 3 and all(re.fullmatch(r"\d+, \d+, \d+", cell) for cell in cells):
            kind = {"passed": 0, "failed": 1}.get(what, 2)
            for name, cell in zip(("mpi", "gloo", "paceline"), cells):
                for ranks, count in zip(GLOO_PASSES, map(int, cell.split(", "))):
                    sums[name, ranks][kind] += count
    assert {shape: tuple(numbers) for shape, numbers in sums.items()} == ENDED
    together = re.search(r"^\| passed under one of the names \| ([\d, ]+) \|", page, re.MULTILINE)
    assert together[1] == ", ".join(map(str, PASSED_SOMEHOW.values()))


def test_reports_are_read():
    found = read('<s><testcase name="a"/><testcase name="b"><skipped message="no gpu"/></testcase>'
                 '<testcase name="c"><failure/></testcase><testcase name="d"><skipped '
                 'message="odd"/></testcase><testcase name="e"><error/></testcase></s>')
    assert found == {"a": "passed", "b": "no gpu", "c": "failed", "d": "odd", "e": "failed"}
    assert unexplained(found) == {"d": "odd"} and names(found, "failed") == {"c", "e"}
