"""./dev test on tests that go wrong in every way: each is named at once, the others run, and the
verdict is the right one."""

import os
import re
import textwrap
from pathlib import Path

import pytest
from dev import process, python_tests
from length import in_long

HERE = Path(__file__).parent

pytestmark = pytest.mark.limit_s(120)

# All signals blocked, the interpreter's lock held, a child that ignores what can be ignored.
HANGS = """
import ctypes, os, signal, subprocess
@pytest.mark.limit_s(0.5)
def test_hangs():
    child = subprocess.Popen(["sh", "-c", "trap '' TERM INT; while :; do sleep 1; done"])
    open("child", "w").write(str(child.pid))
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(1000)
"""
NEXT = "def test_next(): pass\n"


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Runs tests of this source as ./dev test does: (the lines it keeps, whether it is red, all
    that it printed)."""
    for name in list(os.environ):
        if name.startswith(("PACELINE_", "PYTEST_", "TESTS_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(process, "ROOT", tmp_path)
    monkeypatch.setattr(python_tests, "OUT", tmp_path / "out")
    monkeypatch.setattr(python_tests, "workers", lambda: 1)  # of one file's tests
    (tmp_path / "conftest.py").write_text("from running import *\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")

    def run(source, limit_s=60):
        (tmp_path / "test_it.py").write_text("import pytest\n" + textwrap.dedent(source))
        env = {"PYTHONPATH": f"{HERE}:{HERE.parents[1] / 'tools'}", "TESTS_GRACE_S": "1"}
        try:
            lines, red = python_tests.test(limit_s, env, where=["test_it.py"]), False
        except process.Failed as failure:
            lines, red = f"{failure}\n{failure.summary}", True
        return lines, red, capfd.readouterr().out

    return run


def at_once(out, name):
    """What is said of a test's failure before the summary of the run it failed in."""
    before, _, _ = out.partition("= FAILURES =")
    return re.findall(rf"^FAILED: test_it\.py::{name}: (.*)$", before, re.MULTILINE)


def test_one_that_fails_and_one_that_ends_its_worker(run):
    source = """
    import os
    def test_wrong():
        print("rank 1: lost")
        assert 1 == 2
    def test_ends(): os._exit(3)
    """
    lines, red, out = run(textwrap.dedent(source) + NEXT)
    (said,) = at_once(out, "test_wrong")
    assert said.startswith("(gw") and "assert 1 == 2" in said and "rank 1: lost" in said
    assert "crashed while running" in at_once(out, "test_ends")[0]
    assert red and "2 failed twice" in lines and "2 failed, 1 passed" in lines
    for name in ("test_wrong", "test_ends"):
        assert f"FAILED test_it.py::{name}: " in lines


@in_long
def test_one_that_hangs_with_all_signals_blocked(run, tmp_path):
    lines, red, out = run(HANGS + NEXT)
    assert "NO END: test_it.py::test_hangs (gw" in out
    assert "in test_hangs" in out  # its stack, of Python
    assert re.search(r"^\d+ S \d+ s .*: sh -c trap", out, re.MULTILINE)  # and its child
    assert at_once(out, "test_hangs")[0].endswith("no end after 1.5 s (call)")
    assert red and "FAILED test_it.py::test_hangs: " in lines and "1 failed, 1 passed" in lines
    assert not Path("/proc", (tmp_path / "child").read_text()).exists()


@in_long
def test_one_that_hangs_when_it_is_taken_down(run):
    source = """
    import time
    @pytest.fixture
    def it():
        yield
        time.sleep(1000)
    @pytest.mark.limit_s(0.5)
    def test_hangs(it): pass
    """
    lines, red, out = run(textwrap.dedent(source) + NEXT)
    assert "no end after 0.5 s" in at_once(out, "test_hangs")[0] and red
    assert "2 passed, 1 error" in lines


def test_one_that_passes_at_the_second_try(run):
    source = """
    import os
    def test_sometimes():
        first = not os.path.exists("been here")
        open("been here", "w").close()
        assert not first
    """
    lines, red, out = run(textwrap.dedent(source) + NEXT)
    assert not red and "FLAKY test_it.py::test_sometimes: (gw" in lines
    assert "once more, alone: 1 that failed" in out and len(at_once(out, "test_sometimes")) == 1


def test_one_that_is_skipped_for_a_reason_that_nobody_knows(run):
    lines, red, out = run("def test_left_out(): pytest.skip('it is Monday')\n" + NEXT)
    assert "nobody knows: it is Monday" in at_once(out, "test_left_out")[0]
    assert red and "FAILED test_it.py::test_left_out: " in lines and "once more" not in out


def test_a_file_that_cannot_be_read(run):
    lines, red, out = run("import no_such_module\n" + NEXT)
    assert "cannot be read: " in out and red and "FAILED test_it.py: " in lines


def test_a_phase_that_is_ended_says_what_it_was_at(run):
    for limit_s in (4, 12, 40):   # a busy machine may not have begun after 4 s
        lines, red, out = run("import time\ndef test_slow(): time.sleep(50)\n" + NEXT,
                              limit_s=limit_s)
        assert red and "no end after" in lines
        named = re.search(r"UNDER WAY: test_it\.py::test_slow \(gw\d, call, for \d+ s\)", out)
        if named:
            break
    assert named, out
