"""./dev test: what a commit draws, what is skipped, and that it ends."""

import datetime
import re
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from dev import build, newest_torch, phases, report  # noqa: E402
from dev.process import Failed  # noqa: E402


@pytest.fixture
def asked(monkeypatch):
    """What ./dev test would run, as (phase's function, arguments); nothing is run."""
    calls = []

    def note(name, answer=""):
        return lambda *args, **kwargs: calls.append((name, args, kwargs)) or answer

    monkeypatch.setattr(phases.prepare, "ensure", note("setup"))
    monkeypatch.setattr(phases.mpis, "ensure", note("mpi"))
    for name in ("release", "build", "ctest"):
        monkeypatch.setattr(phases.build, name, note(name))
    for name in ("tidy", "pytest"):
        monkeypatch.setattr(phases, name, note(name))
    monkeypatch.setattr(phases.aarch64, "test", note("aarch64"))
    monkeypatch.setattr(phases.newest_torch, "test", note("newest torch"))
    monkeypatch.setattr(phases, "run", note("run", "50 programs from seed 1 on end rightly"))
    monkeypatch.setattr(phases.ctypes, "CDLL", note("CDLL", type("", (), {
        "personality": staticmethod(lambda flags: None)})))  # fmt: skip
    return calls


def test_sixteen_slices_and_two_sanitizers_are_drawn_independently(monkeypatch, asked):
    drawn = set()
    for number in range(64):
        monkeypatch.setattr(phases, "commit", lambda number=number: f"{number:08x}" + 32 * "0")
        asked.clear()
        assert phases.test(long=False) == 0
        (preset,) = [args[0] for name, args, _ in asked if name == "build"]
        (slice_,) = [args[1] for name, args, _ in asked if name == "pytest" and len(args) > 2]
        assert slice_["PACELINE_SLICE_S"] == "120"
        drawn.add((preset, slice_["PACELINE_SLICE"]))
        assert "aarch64" not in [name for name, *_ in asked]
    assert drawn == {(s, f"{k}/16") for s in ("asan", "tsan") for k in range(16)}


def test_a_sanitizer_runs_however_late_it_is(monkeypatch, asked, capsys):
    """It used to be left out where set-up had taken its time."""
    monkeypatch.setattr(report.Report, "seconds", lambda self: 2000)
    assert phases.test(long=False) == 0
    (made,) = [kwargs for name, _, kwargs in asked if name == "build"]
    assert made["targets"] == ["short", "short_shm"]  # shared memory, too
    assert re.search(r"^fuzz shm:\nseed \d{8}0000, 1 times", capsys.readouterr().out, re.MULTILINE)


def test_the_long_run_has_everything_and_an_end(monkeypatch, asked, capsys):
    assert phases.test(long=True) == 0
    assert [args[0] for name, args, _ in asked if name == "build"] == ["asan", "tsan"]
    assert [args for name, args, _ in asked if name == "aarch64"] == [(900,)]
    assert [args for name, args, _ in asked if name == "newest torch"] == [(900,)]
    (env,) = [args[1] for name, args, _ in asked if name == "pytest"]
    assert env == {"PACELINE_LONG": "1"}
    out = capsys.readouterr().out
    assert re.search(r"^\| all of it \| `\./dev test --long` \| [\d-]+, commit \w+: all right; ",
                     out, re.MULTILINE), out
    monkeypatch.setattr(report.Report, "seconds", lambda self: phases.LONG_S)
    asked.clear()
    assert phases.test(long=True) == 1 and asked == []


@pytest.fixture
def commands(monkeypatch):
    """What the phase of the newest torch would run; nothing is fetched."""
    made = []
    monkeypatch.setattr(newest_torch, "run", lambda command, **_: made.append(
        " ".join(map(str, command))) or "kept")  # fmt: skip
    return made


def free(monkeypatch, gib):
    usage = type("", (), {"free": gib * 2**30})
    monkeypatch.setattr(newest_torch.shutil, "disk_usage", lambda _: usage)


def test_the_newest_torch_is_left_out_where_there_is_no_room(monkeypatch, commands):
    free(monkeypatch, newest_torch.NEEDED_GIB - 1)
    assert newest_torch.test(900).startswith("skipped: 15 GiB are free") and commands == []


def test_the_newest_torch_is_left_out_where_it_cannot_be_had(monkeypatch, commands):
    def fail(*_):
        raise Failed("no network")

    free(monkeypatch, 99)
    monkeypatch.setattr(newest_torch, "fetch", fail)
    assert newest_torch.test(900) == "skipped: it cannot be fetched: no network"
    assert commands == []


def test_the_newest_torch_is_fetched_linked_and_tried(monkeypatch, commands):
    free(monkeypatch, 99)
    assert newest_torch.test(900) == "kept\nkept"
    install, link, _, tests = commands[-4:]
    assert "--upgrade torch " in install and link.endswith("link.py")
    for file in newest_torch.FILES:
        assert file in tests and (newest_torch.ROOT / file).exists()


def test_what_a_phase_may_take_is_what_is_left(monkeypatch, capsys):
    some = report.Report("it", "0" * 40, limit_s=100)
    begun = time.monotonic()
    monkeypatch.setattr(some, "begun", begun - 70)
    assert some.phase("one", lambda left_s: f"{left_s:.0f}", 20)
    assert some.phase("two", lambda left_s: f"{left_s:.0f}", 60)
    assert [row[-1] for row in some.rows] == ["20", "30"]

    def fails(left_s):
        raise Failed("no end", "=== 1 failed in 2.0s ===\nskipped 3: a|b")

    assert not some.phase("three", fails) and some.finish() == 1
    assert "FAILED: three; 1 minutes" in some.row()
    assert some.row().endswith("three: 1 failed in 2.0s, skipped 3: a/b |")


def test_a_cpp_skip_that_nobody_knows_fails():
    known, unknown = "only root can be two users [in: a: b]", "it is Monday [in: a: b]"
    assert build.skipped(f"x\nSKIPPED {known}\ny\nSKIPPED {known}\n") == [f"skipped: {known}"]
    with pytest.raises(Failed, match="it is Monday"):
        build.skipped(f"SKIPPED {known}\nSKIPPED {unknown}\n")


def test_the_seed_of_a_day():
    assert phases.seed_of(datetime.date(2026, 11, 3)) == 202611030000
