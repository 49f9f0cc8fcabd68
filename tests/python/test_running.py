"""The rules of running.py: an unknown reason to skip fails a run, what hangs is ended."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import launched
import pytest
import running
from dev import skips

HERE = Path(__file__).parent


@pytest.fixture
def run(tmp_path):
    """Runs tests of this source with our hooks alone; (status, output)."""

    def run(source, *words, **env):
        (tmp_path / "conftest.py").write_text("from running import *\n")
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_it.py").write_text("import pytest\n" + textwrap.dedent(source))
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("PACELINE_", "PYTEST_", "TESTS_"))}  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, tmp_path],
            env={**clean, "PYTHONPATH": f"{HERE}:{HERE.parents[1] / 'tools'}", **env},
            capture_output=True, text=True, timeout=60, cwd=tmp_path,
        )  # fmt: skip
        return done.returncode, done.stdout

    return run


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize("reason, status", [
    ("only root can make a full /dev/shm", 0), ("it does not work today", 1),
])  # fmt: skip
def test_a_reason_that_nobody_knows_fails_the_run(run, reason, status, workers):
    ended, said = run(f'def test(): pytest.skip("{reason}")', *workers)
    assert ended == status and f"skipped 1: {reason}" in said, said
    assert ("a new one needs a row in" in said) == bool(status), said


def test_what_a_test_leaves_in_the_environment_is_not_there_for_the_next(run):
    status, said = run("""
        import os
        def test_one(): os.environ["LEFT"] = os.environ.pop("TAKEN")
        def test_two(): assert "LEFT" not in os.environ and os.environ["TAKEN"] == "1"
        """, TAKEN="1")
    assert status == 0, said


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_test_finds_signals_as_usual_however_it_was_started(run, workers):
    """As a shell starts what it runs in the background: with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        status, said = run("""
            import signal, subprocess, sys
            def test():
                show = "import signal; print(signal.getsignal(signal.SIGINT), " \\
                    "signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
                child = subprocess.run([sys.executable, "-c", show], capture_output=True)
                assert b"default_int_handler" in child.stdout and b"set()" in child.stdout
                with pytest.raises(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
        """, *workers)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        signal.signal(signal.SIGINT, before)
    assert status == 0, said


def test_what_hangs_is_ended_and_the_next_test_runs(run):
    status, said = run("""
        import time
        @pytest.mark.limit_s(0.5)
        def test_hangs(): time.sleep(1000)
        def test_next(): pass
    """)
    assert status == 1 and "no end after 0.5 s" in said and "1 failed, 1 passed" in said, said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_cpp_test_that_cannot_run_is_no_success():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # one that any user may look into
        os.chmod(folder, 0o755)
        unit = shutil.copy(HERE.parents[1] / "build/release/tests/unit", folder)
        command = [unit, "--source-file=*/shm_security_test.cpp"]
        done = subprocess.run(command, user=65534, group=65534, extra_groups=[], text=True,
                              capture_output=True, timeout=60)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED ")]
    assert skips.is_known(line.removeprefix("SKIPPED ").partition(" [in: ")[0])
    assert done.returncode == 77, done.stdout


LONG = "@pytest.mark.long\n@pytest.mark.parametrize('n', range(64))\ndef test(n): pass"


def test_the_long_run_has_the_long_tests(run):
    assert "64 passed" in run(LONG, PACELINE_LONG="1")[1]
    assert "skipped 64: PACELINE_LONG=1 tries this, too" in run(LONG)[1]


def test_limits(monkeypatch):
    class Item:
        def __init__(self, **markers):
            self.markers = {name: pytest.mark.limit_s(*args).mark for name, args in markers.items()}

        def get_closest_marker(self, name):
            return self.markers.get(name)

    monkeypatch.setattr(running.length, "LONG", False)
    assert running.limit_of(Item(ranks=())) > launched.LIMIT_S  # however slow this machine is
    monkeypatch.setattr(running.length, "SLOWNESS", 1)
    assert running.limit_of(Item()) == running.LIMIT_S
    assert running.limit_of(Item(long=())) == running.LONG_LIMIT_S
    assert running.limit_of(Item(ranks=(), long=())) == running.LONG_LIMIT_S
    assert running.limit_of(Item(ranks=())) == running.RANKS_LIMIT_S
    assert running.limit_of(Item(long=(), limit_s=(7,))) == 7
    monkeypatch.setattr(running.length, "SLOWNESS", 1.5)
    assert running.limit_of(Item(limit_s=(8,))) == 12
    monkeypatch.setattr(running.length, "LONG", True)  # where the usual tests try more, too
    assert running.limit_of(Item()) == 1.5 * running.LONG_LIMIT_S


def test_what_tests_import_if_it_is_there_is_known():
    asked = {name for folder in (HERE, HERE.parents[1] / "bench/tests")
             for file in folder.glob("test_*.py")
             for name in re.findall(r'importorskip\("([\w.]+)"\)', file.read_text("utf-8"))}
    own = {name for name in asked if name.startswith("paceline.")}
    assert {"torch", "PIL.Image"} < asked
    for name in asked - own:
        assert skips.is_known(f"could not import '{name}': No module named '{name}'"), name


def test_every_pattern_means_something():
    for pattern in skips.KNOWN:
        assert not skips.is_known(""), pattern
    assert not skips.is_known("only rootless") and not skips.is_known("broken")


@pytest.mark.ranks
def test_a_check_that_hangs_is_named_and_the_others_go_on():
    failed = launched.failures("hanging_checks", 2, ("TESTS_SLOWNESS", "0.05"))
    assert list(failed) == ["hangs"], failed
    for rank in range(2):
        assert f"rank {rank} of 2: " in failed["hangs"]
    assert failed["hangs"].count("TimeoutError: the check has not ended within 1.5 s") == 2, failed
