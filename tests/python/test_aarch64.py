"""./dev test --long on 64-bit Arm: what may fail there, and what is said of it."""

import stat
import time

import pytest
from dev import aarch64
from dev.process import Failed


# In place of emulator and binary: three cases that end in three ways, and one that does not end.
PRETENDING = """#!/bin/sh
case "$*" in
*--list-test-cases*)
  printf '[doctest] listing\\n====\\nright, with a comma\\nwrong\\nleft out\\nfor ever\\n====\\n'
  printf '[doctest] unskipped test cases\\n' ;;
*"=right? with a comma") echo "test cases: 1 | 1 passed" ;;
*=wrong) echo "it was 3"; exit 1 ;;
*"=left out") exit 77 ;;
*"=for ever") sleep 50 & sleep 50 ;;
*) echo "test cases:  0 | 0 passed" ;;
esac
"""


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """aarch64.test() with that program; what it would build."""
    program = tmp_path / "pretending"
    program.write_text(PRETENDING)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    targets = []
    monkeypatch.setattr(aarch64, "EMULATOR", [str(program)])
    monkeypatch.setattr(aarch64, "KINDS", ("unit",))
    monkeypatch.setattr(aarch64, "CASE_S", 2)
    monkeypatch.setattr(aarch64, "LACKS", ())
    monkeypatch.setattr(aarch64, "lacking", lambda: [])
    monkeypatch.setattr(aarch64.build, "build", lambda preset, **keywords: targets.append(preset))
    return targets


def may_fail(monkeypatch, *names):
    monkeypatch.setattr(aarch64, "LACKS", tuple(("unit", name, "it lacks") for name in names))


def test_a_case_that_is_not_in_the_table_fails(asked):
    with pytest.raises(Failed, match=r"unit: wrong \(exit status 1\)") as found:
        aarch64.test(60)
    assert "2 failed that should not" in str(found.value) and asked == ["aarch64"]
    assert "unit: for ever (no end after 2 s)" in str(found.value)
    assert "1 of 4 passed, 1 skipped, 0 failed that may" in found.value.summary


def test_a_case_of_the_table_may_fail_and_is_said_where_it_passes(asked, monkeypatch):
    may_fail(monkeypatch, "wrong", "for ever", "right, with a comma", "gone")
    assert aarch64.test(60).splitlines() == [
        "unit: 1 of 4 passed, 1 skipped, 2 failed that may",
        "passes, though the table says it may fail: unit: right, with a comma",
        "no such case, though the table has it: unit: gone",
    ]


def test_a_name_that_no_case_has_is_no_success(asked):
    assert aarch64.run_case("unit", "nobody", time.monotonic() + 9) == "no such case"


def test_the_time_of_the_phase_is_an_end(asked, monkeypatch):
    may_fail(monkeypatch, "wrong", "for ever")
    with pytest.raises(Failed, match="not begun: the phase's time is over"):
        aarch64.test(0)


def test_without_the_packages_it_says_so(monkeypatch):
    tried = []
    monkeypatch.setattr(aarch64, "TOOLS", {"no-such-compiler": "no-such-package"})
    monkeypatch.setattr(aarch64.prepare, "install_system", tried.append)
    assert aarch64.test(60) == (
        "skipped: no-such-compiler cannot be had: apt-get install no-such-package")
    assert tried == ["no-such-package"]
