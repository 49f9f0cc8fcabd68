"""torch's own tests of process groups pass over Paceline. Minutes: only in the long run."""

import collections
import functools
import os
import re
import socket
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

import launched
import pytest

LONG = pytest.mark.skipif(
    not os.environ.get("PACELINE_LONG"), reason="a minute or two each; PACELINE_LONG=1"
)

# What gloo passes of them, by ranks (torch 2.13; SUITE_AS=gloo measures it again).
GLOO_PASSES = {2: 91, 3: 91, 4: 94}

# Why torch skips the others: what is not a matter of the backend on CPUs.
REASONS = (
    "cuda", "gpu", "nccl", "ucc", "world size|world_size", "Only MPI supports|Only GLOO|only gloo",
    "does not support|not supported|doesn't support", "not compiled", "monitored_barrier",
    "Test requires|Requires|Need at least", "torchvision", "profil", "sandcastle|slow|skipped|skip",
)  # fmt: skip


@functools.cache
def outcome(taken_for, ranks):
    """How each test ended ("passed", or why it was skipped), and what went wrong."""
    for module in ("torch", "expecttest", "psutil"):
        pytest.importorskip(module)
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        for name in ("barrier", "test_dir"):
            (Path(folder) / name).mkdir()
        probe.bind(("127.0.0.1", 0))
        port, report = probe.getsockname()[1], Path(folder) / "report.xml"
        probe.close()
        env = {
            **os.environ, "WORLD_SIZE": str(ranks), "TEMP_DIR": folder, "SUITE_AS": taken_for,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "PACELINE_TIMEOUT_MS": "30000",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore",
             f"--junitxml={report}", str(launched.RANKS / "conformance.py")],
            env=env, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        return read(report.read_text()), done.stdout


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


def unexplained(found):
    """Those that are skipped for a reason that nobody has thought about."""
    return {name: why for name, why in found.items() if why not in ("passed", "failed")
            and not re.search("|".join(REASONS), why, re.IGNORECASE)}  # fmt: skip


@LONG
@pytest.mark.parametrize("ranks", GLOO_PASSES)
def test_suite_of_torch(ranks):
    passed = set()
    for taken_for in ("mpi", "paceline"):
        found, said = outcome(taken_for, ranks)
        assert names(found, "failed") == set(), said[-3000:]
        assert unexplained(found) == {}
        passed |= names(found, "passed")
        reasons = collections.Counter(why for why in found.values() if why != "passed")
        print(f"{ranks} ranks as {taken_for}: {len(names(found, 'passed'))} passed; skipped:")
        print(*(f"  {count}: {why}" for why, count in reasons.most_common()), sep="\n")
    print(f"{ranks} ranks: {len(passed)} passed under either name")
    assert len(passed) >= GLOO_PASSES[ranks]


def test_reports_are_read():
    found = read('<s><testcase name="a"/><testcase name="b"><skipped message="no gpu"/></testcase>'
                 '<testcase name="c"><failure/></testcase><testcase name="d"><skipped '
                 'message="odd"/></testcase><testcase name="e"><error/></testcase></s>')
    assert found == {"a": "passed", "b": "no gpu", "c": "failed", "d": "odd", "e": "failed"}
    assert unexplained(found) == {"d": "odd"} and names(found, "failed") == {"c", "e"}
