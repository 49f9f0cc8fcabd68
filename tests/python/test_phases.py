"""./dev test: the same for every commit, what is drawn besides, one verdict over two tries."""

import datetime
import re
import time
import types

import pytest
from dev import (
    base, ctests, newest_torch, parts, phases, process, python_tests, report, slowness, verdict,
)  # fmt: skip
from dev.process import Failed


@pytest.fixture(autouse=True)
def idle(monkeypatch):
    """As on two idle cores."""
    monkeypatch.delenv(slowness.VARIABLE, raising=False)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What ./dev test would run, as (phase's function, arguments); nothing is run."""
    calls = []

    def note(name, answer=""):
        return lambda *args, **kwargs: calls.append((name, args, kwargs)) or answer

    monkeypatch.setattr(parts, "FILE", tmp_path / "long")
    monkeypatch.setattr(phases.prepare, "ensure", note("setup"))
    monkeypatch.setattr(phases.mpis, "ensure", note("mpi"))
    for name in ("release", "build", "core"):
        monkeypatch.setattr(phases.build, name, note(name))
    monkeypatch.setattr(phases.ctests, "test", note("ctest"))
    monkeypatch.setattr(phases.python_tests, "test", note("pytest"))
    monkeypatch.setattr(phases, "tidy", note("tidy"))
    monkeypatch.setattr(phases.slowness, "measure", note("start"))
    monkeypatch.setattr(phases, "why_not", lambda _: "")
    monkeypatch.setattr(phases.base, "changed_since", lambda _: None)
    for name in ("aarch64", "torch"):
        monkeypatch.setitem(phases.PARTS, name, note(name))
    monkeypatch.setattr(phases, "run", note("run", "50 programs from seed 1 on end rightly"))
    monkeypatch.setattr(phases.ctypes, "CDLL", note("CDLL", type("", (), {
        "personality": staticmethod(lambda flags: None)})))  # fmt: skip
    return calls


def names_of(asked):
    return [name for name, *_ in asked]


def test_every_commit_and_day_is_asked_the_same(monkeypatch, asked):
    def ask(number, day):
        monkeypatch.setattr(phases, "commit", lambda: f"{number:08x}" + 32 * "0")
        monkeypatch.setattr(phases, "today", lambda: day)
        asked.clear()
        assert phases.test() == 0
        return [(name, [str(one) for one in args if not isinstance(one, float)])
                for name, args, _ in asked]  # fmt: skip

    first = ask(0, 20261103)
    assert ask(1, 20261104) == first
    assert [args[0] for name, args, _ in asked if name == "build"] == ["asan", "tsan"]
    assert names_of(asked).count("pytest") == 1 and "aarch64" not in names_of(asked)
    assert [args for name, args, _ in asked if name == "mpi"] == [(False,)]


def test_a_start_that_fails_hides_no_other_phase(monkeypatch, asked):
    monkeypatch.setattr(phases.slowness, "measure", lambda: 1 / 0)
    assert phases.test() == 1
    assert {"ctest", "tidy", "pytest"} < set(names_of(asked))


def test_what_is_drawn_says_how_it_is_drawn_again(monkeypatch, asked, capsys):
    drawn = []
    for seed in (1, 2, 2):
        asked.clear()
        assert phases.draw(seed) == 0
        assert f"again: ./dev test --draw --seed {seed}\n" in capsys.readouterr().out
        ((_, env, word), files), = [(args, given["where"]) for name, args, given in asked
                                    if name == "pytest"]  # fmt: skip
        assert word == "long" and env == {"PACELINE_LONG": "1"}
        assert files and all((phases.ROOT / file).exists() for file in files)
        drawn.append(files)
        played = [args[0][2:] for name, args, _ in asked if name == "run"]
        assert played[:3] == [["--on", "loop", "--seed", 1, "--programs", 1000],
                              ["--on", "shm", "--seed", 1, "--programs", 1000],
                              ["--on", "loop", "--seed", seed * 10000, "--seconds", 60]]
    assert drawn[0] != drawn[1] == drawn[2]
    monkeypatch.setattr(phases, "today", lambda: 20261103)
    phases.draw(None)
    assert "again: ./dev test --draw --seed 20261103\n" in capsys.readouterr().out


@pytest.mark.parametrize("changed, left_out", [
    ([], "proofs, asan, tsan"),
    (["README.md", "python/paceline/torch/bsp.py", "tests/python/x.py"], "proofs, asan, tsan"),
    (["python/binding/store.cpp", "bench/node/run.cpp"], "proofs, asan, tsan"),
    (["docs/x.md", "src/coll/allreduce/ring.cpp"], "tsan"),
    (["include/paceline/paceline.h", "src/based/x.cpp"], "proofs, tsan"),
    (["tests/fuzz/play.cpp"], "proofs, tsan"),
    (["tests/main.cpp"], "tsan"),
    (["src/engine/shm/shm_channel.hpp"], "proofs"),
    (["src/store/auto.cpp"], "proofs"),
    (["src/arrival/claims.hpp"], "nothing"),
    (["tests/process/ranks.hpp"], "proofs"),
    (["tests/world/worlds.hpp"], "nothing"),
    (["tests/world/notes_test.cpp", "src/base/options.cpp"], "proofs"),
    (["CMakePresets.json"], "nothing"),
    (["src/kernels/flags.cmake"], "nothing"),
    (None, "nothing"),
], ids=str)  # fmt: skip
def test_what_checks_code_runs_where_that_code_has_changed(
        monkeypatch, asked, capsys, changed, left_out):
    def run():
        presets = [args[0] for name, args, _ in asked if name == "build"]
        (release, *_) = [given for name, _, given in asked if name == "ctest"]
        return {*presets, *(["proofs"] if release["without"] is None else [])}

    monkeypatch.setattr(phases.base, "changed_since", lambda _: changed)
    assert phases.test() == 0
    assert f"left out: {left_out}\n" in capsys.readouterr().out
    assert run() == {*base.CHECKED} - {*left_out.split(", ")}


def test_a_sanitizer_that_cannot_run_here_says_so(monkeypatch, asked, capsys):
    monkeypatch.setattr(phases, "why_not", lambda name: "no room" if name == "thread" else "")
    assert phases.test() == 0
    assert [args[0] for name, args, _ in asked if name == "build"] == ["asan"]
    assert "tsan:\nskipped: no program of this sanitizer runs here: no room" in \
        capsys.readouterr().out


def test_why_a_sanitizer_does_not_run():
    assert "nonsense" in phases.why_not("nonsense")


def test_every_part_has_an_hour_and_is_written_down(monkeypatch, asked):
    monkeypatch.setattr(phases.base, "changed_since", lambda _: [])
    monkeypatch.setitem(phases.PARTS, "torch", fails)
    assert phases.long(parts.NAMES) == 1
    assert [args[0] for name, args, _ in asked if name == "build"] == ["asan", "tsan"]
    assert [args for name, args, _ in asked if name == "mpi"] == [(True,)]
    assert [args for name, args, _ in asked if name == "aarch64"] == [(3600,)]
    assert [args for name, args, _ in asked if name == "pytest"] == [
        (3600, {"PACELINE_LONG": "1"})]
    ((_, first), *_) = [(args, given) for name, args, given in asked if name == "ctest"]
    assert first == {"limit_s": 3600, "env": {"PACELINE_LONG": "1"},  # the proofs, too
                     "test_limit_s": ctests.LONG_TEST_LIMIT_S}
    rows = [line.split() for line in parts.FILE.read_text().splitlines()]
    assert {name: result for name, _, _, result in rows} == {
        name: "red" if name == "torch" else "green" for name in parts.NAMES}
    assert {commit for _, commit, *_ in rows} == {phases.commit()}


def test_a_part_of_a_tree_that_is_no_commit_is_not_written_down(monkeypatch, asked, capsys):
    for changed in (["src/x.cpp"], None):
        monkeypatch.setattr(phases.base, "changed_since", lambda _, changed=changed: changed)
        assert phases.long(["aarch64"]) == 0 and not parts.FILE.exists()
        assert "nothing is written down" in capsys.readouterr().out


def test_parts_that_are_old_are_named_and_the_oldest_is_due(monkeypatch, tmp_path):
    commits = {"new": "3", "old": "31", "older": "99"}
    monkeypatch.setattr(parts, "FILE", tmp_path / "long")
    monkeypatch.setattr(parts.base, "git", lambda _, __, range: commits.get(range.split("..")[0]))
    assert parts.described().startswith("due of --long: ctest (never green), pytest (never green)")
    told = {name: "new 2026-11-03 green" for name in parts.NAMES}
    told |= {"asan": "old 2026-11-02 green", "tsan": "older 2026-11-01 green"}

    def write(**changed):
        rows = [f"{name} {row}\n" for name, row in (told | changed).items()]
        parts.FILE.write_text("".join(rows))

    write()
    assert parts.oldest() == "tsan"
    assert "due of --long: asan (31 commits), tsan (99 commits); " in parts.described()
    for result in ("new 2026-11-03 red", "unknown 2026-11-03 green"):
        write(fuzz=result)
        assert parts.oldest() == "fuzz" and "fuzz (never green), asan (31" in parts.described()
    write(asan=told["ctest"], tsan=told["ctest"])
    assert parts.described() == ""


def test_the_quick_check_needs_no_torch_and_no_mpi(asked):
    assert phases.check() == 0
    assert names_of(asked) == ["setup", "core", "start", "ctest", "pytest"]
    assert asked[0][2] == {"torch": False}
    assert all((phases.ROOT / file).exists() for file in asked[-1][2]["where"])


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


# --- the report -----------------------------------------------------------------------------------


@pytest.fixture
def some(monkeypatch):
    """A report with a clock of its own: set some.now."""
    found = report.Report("it", "0" * 40, limit_s=100, target_s=60)
    found.now = 0
    monkeypatch.setattr(report.Report, "seconds", lambda self: self.now)
    return found


def fails(_):
    raise Failed("no end", "=== 1 failed in 2.0s ===\nskipped 3: a|b\nFLAKY a.py::b: because")


def test_what_a_phase_may_take_is_what_is_left(some):
    some.now = 70
    assert some.phase("one", lambda left_s: f"{left_s:.0f}", 20)
    assert some.phase("two", lambda left_s: f"{left_s:.0f}", 60)
    assert [row[-1] for row in some.rows] == ["20", "30"]
    assert not some.phase("three", fails) and some.finish() == 1
    assert "FAILED: three (flaky: a.py::b); 1 minutes" in some.row()
    assert some.row().endswith("three: 1 failed in 2.0s, skipped 3: a/b |")
    some.now = 100
    assert not some.phase("four", lambda _: "") and "not begun" in str(some.rows[-1][3])


def test_whatever_a_phase_raises_the_next_one_runs(some, capsys):
    assert not some.phase("one", lambda _: 1 / 0)
    assert some.phase("two", lambda _: "")
    assert some.finish() == 1 and "FAILED (ZeroDivisionError: division" in capsys.readouterr().out


def test_a_target_is_told_and_makes_nothing_red(some, capsys):
    for now, said in ((59, "met"), (90, "missed by 0.5 minutes")):
        some.now = now
        assert some.finish() == 0
        assert re.search(rf"^target +1\.0 +{said}$", capsys.readouterr().out, re.MULTILINE)


def test_limits_are_longer_where_a_fixed_start_is(monkeypatch, some):
    now = iter([0, 3 * slowness.USUAL_S, 0, slowness.USUAL_S / 3])
    monkeypatch.setattr(slowness, "run", lambda *_, **__: None)
    monkeypatch.setattr(slowness, "time", types.SimpleNamespace(monotonic=lambda: next(now)))
    monkeypatch.setenv(slowness.VARIABLE, "1")  # and as it was afterwards
    for factor in (3, 1):
        slowness.measure()
        assert slowness.factor() == factor
        allowed = []
        phases.phase(some, "fuzz shm", allowed.append)
        assert allowed == [min(some.limit_s, 4 * phases.USUAL_S["fuzz shm"] * factor)]


def test_the_limit_of_the_run_is_at_most_twice_as_long(monkeypatch, some):
    monkeypatch.setattr(slowness, "measure", str)
    for factor, limit_s in ((1, 100), (1.5, 150), (9, 200)):
        monkeypatch.setenv(slowness.VARIABLE, str(factor))
        some.limit_s = 100
        phases.start(some)
        assert some.limit_s == limit_s


# --- two tries ------------------------------------------------------------------------------------


def judged(first, second):
    """(lines, whether it is red, what was run again)"""
    asked = []

    def again(names):
        asked.extend(names)
        return second

    try:
        return verdict.judge(first, again), False, asked
    except Failed as failure:
        return f"{failure}\n{failure.summary}", True, asked


FAILURE = Failed("exit status 1: it")
ONE, TWO = {"one": ("because", True)}, {"one": ("because", True), "two": ("so", True)}


def test_what_passes_at_the_second_try_is_green_and_named():
    lines, red, asked = judged(verdict.Try(TWO, FAILURE, "2 failed"), verdict.Try({}))
    assert not red and asked == ["one", "two"]
    assert lines == "2 failed\nFLAKY one: because\nFLAKY two: so"


def test_what_fails_twice_is_red():
    lines, red, _ = judged(verdict.Try(TWO, FAILURE, ""), verdict.Try(ONE, FAILURE))
    assert red and lines == "1 failed twice\nFAILED one: because\nFLAKY two: so"


def test_what_no_second_try_can_mend_is_red_at_once():
    for first in (
        verdict.Try({}, FAILURE),  # nobody knows what failed
        verdict.Try(ONE, Failed("no end after 9 s: it")),
        verdict.Try({"one": ("skipped for a reason that nobody knows", False)}, FAILURE),
        verdict.Try({str(n): ("", True) for n in range(verdict.MOST_AGAIN + 1)}, FAILURE),
    ):
        _, red, asked = judged(first, None)
        assert red and not asked, first.failed


def test_a_second_try_that_goes_wrong_otherwise_is_red():
    lines, red, _ = judged(verdict.Try(ONE, FAILURE), verdict.Try({"left": ("", True)}, FAILURE))
    assert red and "FLAKY one" in lines


# --- ctest ----------------------------------------------------------------------------------------


def test_what_passes_when_ctest_repeats_it_is_flaky(tmp_path, monkeypatch):
    """By ctest itself: a test that passes at its second try, and one that never does."""
    monkeypatch.setattr(ctests, "ROOT", tmp_path)
    monkeypatch.setattr(process, "ROOT", tmp_path)
    log = tmp_path / "build/release/Testing/Temporary/LastTest.log"
    (tmp_path / "CMakePresets.json").write_text("""{"version": 6,
      "configurePresets": [{"name": "release", "generator": "Ninja",
                            "binaryDir": "${sourceDir}/build/release"}],
      "testPresets": [{"name": "release", "configurePreset": "release"}]}""")
    log.parent.mkdir(parents=True)

    def tests(*shell):
        (tmp_path / "build/release/CTestTestfile.cmake").write_text("".join(
            f"add_test(unit.{number} sh -c [[{words}]])\n" for number, words in enumerate(shell)))

    tests("true", f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; false; }}")
    flaky, summary = ctests.test("release", limit_s=60).splitlines()
    assert re.fullmatch(r"FLAKY unit\.1: Failed +[\d.]+ sec", flaky) and "100%" in summary
    tests("true", "false")
    with pytest.raises(Failed):
        ctests.test("release", limit_s=60)


def test_a_cpp_skip_that_nobody_knows_fails():
    known, unknown = "only root can be two users [in: a: b]", "it is Monday [in: a: b]"
    assert ctests.skipped(f"x\nSKIPPED {known}\ny\nSKIPPED {known}\n") == [f"skipped: {known}"]
    with pytest.raises(Failed, match="it is Monday"):
        ctests.skipped(f"SKIPPED {known}\nSKIPPED {unknown}\n")


def test_the_day_is_the_same_wherever_the_clock_lives(monkeypatch):
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead
    time.tzset()
    utc = [datetime.datetime.now(datetime.timezone.utc), phases.today(),
           datetime.datetime.now(datetime.timezone.utc)]  # fmt: skip
    assert str(utc[1]) in (utc[0].strftime("%Y%m%d"), utc[2].strftime("%Y%m%d"))
    monkeypatch.undo()
    time.tzset()


def test_workers_are_as_many_as_cores_and_memory_allow(monkeypatch):
    monkeypatch.setattr(python_tests, "cores", lambda: 2)
    for gib, shared_gib, workers in [(24, 12, 3), (5, 12, 2), (0.5, 12, 1), (24, 1 / 16, 2),
                                     (24, 0.001, 1)]:
        monkeypatch.setattr(python_tests, "free_gib", lambda gib=gib: gib)
        monkeypatch.setattr(python_tests, "free_shared_gib", lambda gib=shared_gib: gib)
        assert python_tests.workers() == workers
