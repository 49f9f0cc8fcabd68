"""./dev test: the phases of a full check, each timed, each bounded, all of them run.

Every commit, day and machine runs the same phases. Further tests decide about no commit: `--long`,
in parts (parts.py), and `--draw`, some of the long Python tests and random programs of the day.
`./dev check` is the quick one.
"""

import ctypes
import datetime
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dev import (
    aarch64, base, build, ctests, mpis, newest_torch, parts, prepare, python_tests, slowness,
)  # fmt: skip
from dev.process import ROOT, VENV, Failed, run
from dev.report import Report

ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
TARGET_S, CHECK_TARGET_S = 720, 300  # on two idle cores: told, never enforced
LIMIT_S = 2400  # of it all, whatever hangs; so many times as much at most if the machine is slow:
SLOWEST = 2
PART_S = 3600  # of a part of --long
HANGS = 4  # times what a phase takes on two idle cores:
USUAL_S = {"ctest": 210, "pytest": 420, "fuzz loop": 15, "fuzz shm": 15, "asan": 430,
           "tsan": 480}  # fmt: skip
DRAWN = 16  # one in so many files of tests, and always:
ALWAYS_DRAWN = Path("tests/python/test_mpi4py_suite.py")
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
# Tests of their short form: proofs have their own phase, and a single thread has nothing to tell
# the thread sanitizer.
SHORT = {"asan": r"short\.(device|execute|graph_calls|knobs|mpi|ring)|short_shm",
         "tsan": r"short\.(device|execute|graph_calls|ring)|short_shm"}
FUZZ = ("loop", "shm")  # on each, so many programs from the first seed on:
PROGRAMS, MORE_PROGRAMS = 250, 1000
FUZZ_ON = ("loop", "shm", "mpi", "preload")  # from other seeds on
FUZZ_S = 60  # on each
LONG = {"PACELINE_LONG": "1"}
# Tests of `./dev check`: those of one core library, on its own and on real ranks.
CHECK_CPP = r"(unit|short|process)\."
CHECK_PYTHON = ("cli", "communicator", "failures", "launch", "stopped")


def test():
    report = Report("./dev test", commit(), LIMIT_S, TARGET_S)
    ready = begin(report)
    asked = due()
    if ready:
        phase(report, "ctest", lambda left_s: ctests.test(
            "release", limit_s=left_s, without=None if "proofs" in asked else "proof"))
    report.phase("tidy", lambda _: tidy())
    if ready:
        phase(report, "pytest", lambda left_s: python_tests.test(left_s, {}))
        for on in FUZZ:
            phase(report, f"fuzz {on}", lambda left_s: fuzz(on, 1, left_s, "--programs", PROGRAMS))
        for preset in SANITIZERS:
            if preset in asked:
                phase(report, preset, lambda left_s: sanitize(preset, left_s))
    print(parts.described())
    return report.finish()


def check():
    """Tests in five minutes, on a fresh machine and without torch, that the core works."""
    report = Report("./dev check", commit(), LIMIT_S, CHECK_TARGET_S)
    ready = report.phase("setup", lambda _: prepare.ensure(torch=False))
    if ready and report.phase("build", lambda _: build.core()):
        start(report)
        phase(report, "ctest", lambda left_s: ctests.test(
            "release", limit_s=left_s, only=CHECK_CPP, without="device", configuration="Check",
            env={"PACELINE_SHORT": "1"}))
        files = [f"tests/python/test_{name}.py" for name in CHECK_PYTHON]
        phase(report, "pytest", lambda left_s: python_tests.test(left_s, {}, where=files))
    return report.finish()


def long(names):
    """These parts; the file of parts then holds how they ended."""
    report = Report(f"./dev test --long {' '.join(names)}", commit(), PART_S * len(names) + LIMIT_S)
    if begin(report, long=True):
        for name in names:
            parts.note(name, report.commit, phase(report, name, PARTS[name], PART_S))
    return report.finish()


def draw(seed):
    """Runs long tests and random programs drawn by a seed, or by the day: for use before work is
    called done. The same seed draws the same tests and programs."""
    seed = today() if seed is None else seed
    command = f"./dev test --draw --seed {seed}"
    print(f"again: {command}", flush=True)
    report = Report(command, commit(), PART_S)
    if begin(report, long=True):
        phase(report, "drawn", lambda left_s: python_tests.test(
            left_s, LONG, "long", where=drawn(seed)), PART_S / 2)
        phase(report, "fuzz", lambda left_s: fuzz_more(seed, left_s), PART_S / 3)
    return report.finish()


def begin(report, long=False):
    """Prepares every run; True if all is there. `long`: also what long tests alone need."""
    ready = report.phase("setup", lambda _: prepare.ensure())
    report.phase("mpi", lambda _: mpis.ensure(long))
    compilers = mpis.compilers(long)
    if ready := ready and report.phase("build", lambda _: build.release(mpicc=compilers)):
        start(report)
    return ready


def start(report):
    """Measures how slow this machine is: the factor of all limits, that of the whole run, too."""
    report.phase("start", lambda _: slowness.measure())
    report.limit_s *= min(slowness.factor(), SLOWEST)


def phase(report, name, action, limit_s=None):
    """Runs a phase that may take `limit_s` on two idle cores, by default HANGS times what is usual
    there: longer on a machine that is slower."""
    limit_s = limit_s or HANGS * USUAL_S[name]
    return report.phase(name, action, limit_s * slowness.factor())


def drawn(seed):
    """The files of tests that the seed draws."""
    files = sorted(path.relative_to(ROOT) for folder in ("tests/python", "bench/tests")
                   for path in ROOT.glob(f"{folder}/test_*.py"))
    return sorted({ALWAYS_DRAWN, *random.Random(seed).sample(files, len(files) // DRAWN)})


def due():
    """The names of base.CHECKED that run; prints why."""
    commit = base.read()
    changed = base.changed_since(commit)
    found = base.due(changed)
    why = ("git does not know what has changed since then" if changed is None
           else f"{len(changed)} files have changed since then")  # fmt: skip
    left_out = [name for name in base.CHECKED if name not in found]
    print(f"\nbase {commit[:10] or 'none'}: {why}; left out: {', '.join(left_out) or 'nothing'}",
          flush=True)
    return found


def today():
    """The day in UTC as a number: 20261103."""
    return int(datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))


def commit():
    """The hash of git's HEAD; zeros if there is no git."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "0" * 40


def fuzz_more(number, left_s):
    """More of the programs of every run, and others from this number's seed on; the lines to keep.
    """
    end = time.monotonic() + left_s
    rounds = [(on, 1, "--programs", MORE_PROGRAMS) for on in FUZZ]
    rounds += [(on, number * 10000, "--seconds", FUZZ_S) for on in FUZZ_ON]  # each has a seed
    return "\n".join(fuzz(on, seed, end - time.monotonic(), *words)
                     for on, seed, *words in rounds)


def fuzz(on, seed, left_s, *words):
    """Random programs from a seed on; their last line says how many there were."""
    command = [VENV / "bin/python", "tests/python/fuzzing.py", "--on", on, "--seed", seed, *words]
    lines = run(command, timeout_s=left_s, keep=r"programs from seed \d+ on end rightly")
    counted = len(lines.splitlines())
    if not counted:
        raise Failed("no program has been played")
    return f"{on}: seed {seed}, {counted} times 50 programs"


def sanitize(preset, left_s, long=False):
    """Build with a sanitizer and run: all tests in short form, or some worlds and real ranks.

    What a sanitizer finds does not depend on how many worlds are proven, and it takes ten times as
    long for each.
    """
    # GCC's sanitizers, before 14, cannot place their shadow under the widest address randomisation.
    # Children inherit this; where it is forbidden nothing changes.
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    begun, some = time.monotonic(), {"targets": ["short", "short_shm"]}
    if trouble := why_not(SANITIZERS[preset]):
        return f"skipped: no program of this sanitizer runs here: {trouble}"
    build.build(preset, limit_s=left_s, **({} if long else some))
    return ctests.test(preset, limit_s=left_s - (time.monotonic() - begun),
                       only=None if long else SHORT[preset], env={"PACELINE_SHORT": "1"})


def why_not(sanitizer):
    """The error of an empty program with this sanitizer; empty if it runs."""
    with tempfile.TemporaryDirectory(prefix="paceline-sanitizer-") as folder:
        source, program = Path(folder, "empty.cpp"), Path(folder, "empty")
        source.write_text("int main() {}\n")
        compiler = os.environ.get("CXX", "c++")
        for command in ([compiler, f"-fsanitize={sanitizer}", source, "-o", program], [program]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            if done.returncode:
                said = (done.stderr or done.stdout).strip().splitlines()
                return " | ".join(said[:3]) or f"exit status {done.returncode}"
    return ""


def tidy():
    """The house rules; ruff too if .venv has it."""
    commands = [[sys.executable, "tests/tidy/tidy.py"]]
    if (VENV / "bin/ruff").exists():
        commands.append([VENV / "bin/ruff", "check", "--quiet", "."])
    failures = []
    for command in commands:  # both, so that one round of mending does
        try:
            run(command, timeout_s=120)
        except Failed as failure:
            failures.append(str(failure))
    if failures:
        raise Failed("; ".join(failures))


PARTS = {
    "ctest": lambda left_s: ctests.test("release", limit_s=left_s, env=LONG,
                                        test_limit_s=ctests.LONG_TEST_LIMIT_S),
    "pytest": lambda left_s: python_tests.test(left_s, LONG),
    "fuzz": lambda left_s: fuzz_more(today(), left_s),
    "asan": lambda left_s: sanitize("asan", left_s, long=True),
    "tsan": lambda left_s: sanitize("tsan", left_s, long=True),
    "aarch64": aarch64.test,
    "torch": newest_torch.test,
}
