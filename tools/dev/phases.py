"""./dev test: the phases of a full check, each timed, each bounded, all of them run.

Every commit, day and machine is asked the same. What is drawn besides, a sixteenth of the long
Python tests and random programs of the day, is `./dev test --draw`, and decides about nothing.
"""

import ctypes
import datetime
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dev import (
    aarch64, base, build, ctests, mpis, newest_torch, prepare, python_tests, slowness,
)  # fmt: skip
from dev.process import ROOT, VENV, Failed, run
from dev.report import Report

ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
TARGET_S = 720  # of ./dev test on two idle cores: told, never enforced
LIMIT_S = 3600  # of it all, whatever hangs, and however slow the machine
LONG_S = 14400  # of ./dev test --long, which takes about half of that
SLICES = 16  # of the long tests
SLICE_S = 120  # of a slice, after which it begins no other test
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
# Tests of their short form: a single thread has nothing to tell the thread sanitizer.
SHORT = {"asan": "short", "tsan": r"short\.(device|execute|graph_calls)|short_shm"}
FUZZ = ("loop", "shm")  # on each, so many programs from the first seed on:
PROGRAMS, MORE_PROGRAMS = 250, 1000
FUZZ_S = {"loop": 60, "shm": 60, "mpi": 60, "preload": 60}  # seconds on each, from other seeds on
# What a phase takes on two idle cores, until this machine has shown that it takes longer.
USUAL_S = {"ctest": 210, "pytest": 700, "slice": 140, "fuzz loop": 15, "fuzz shm": 15, "asan": 430,
           "tsan": 480, "ctest long": 850, "pytest long": 1500, "asan long": 900, "tsan long": 900}


def usual(report, phase):
    """The limit of a phase, and the name under which the machine's own time is kept."""
    return report.durations.limit_of(phase, USUAL_S[phase]), phase


def test(long):
    report = Report("./dev test --long" if long else "./dev test", commit(),
                    LONG_S if long else LIMIT_S, None if long else TARGET_S)
    kept = report.durations
    ready = report.phase("setup", lambda _: prepare.ensure())
    report.phase("mpi", lambda _: mpis.ensure(long))
    ready = ready and report.phase("build", lambda _: build.release(mpicc=mpis.compilers()))
    if ready:
        report.phase("start", lambda _: slowness.measure())
    env = {"PACELINE_LONG": "1"} if long else {}
    asked = list(base.CHECKED) if long else due()
    if ready:
        report.phase("ctest", lambda left_s: ctests.test(
            "release", limit_s=left_s, durations=kept, env=env,
            without=None if "proofs" in asked else "proof"),
            *usual(report, "ctest long" if long else "ctest"))
    report.phase("tidy", lambda _: tidy())
    if not ready:
        return report.finish()
    report.phase("pytest", lambda left_s: python_tests.test(left_s, env, kept),
                 *usual(report, "pytest long" if long else "pytest"))
    if long:
        fuzz_more(report, today())
        report.phase("aarch64", aarch64.test, 2400)
        report.phase("newest torch", newest_torch.test, 1800)
    else:
        for on in FUZZ:
            report.phase(f"fuzz {on}", lambda left_s: fuzz(
                on, 1, left_s, "--programs", PROGRAMS), *usual(report, f"fuzz {on}"))
    for preset in SANITIZERS:
        if preset in asked:
            report.phase(preset, lambda left_s: sanitize(preset, left_s, long, kept),
                         *usual(report, f"{preset} long" if long else preset))
    return report.finish()


def draw(seed):
    """What a seed, or else the day, chooses of what no commit is asked: before something is called
    done. The same seed is the same tests and programs again."""
    seed = today() if seed is None else seed
    command = f"./dev test --draw --seed {seed}"
    print(f"again: {command}", flush=True)
    report = Report(command, commit(), LIMIT_S)
    if report.phase("setup", lambda _: prepare.ensure()):
        report.phase("mpi", lambda _: mpis.ensure())
        if report.phase("build", lambda _: build.release(mpicc=mpis.compilers())):
            report.phase("start", lambda _: slowness.measure())
            report.phase("slice", lambda left_s: python_tests.test(
                left_s, slice_of(seed), report.durations, "long"), *usual(report, "slice"))
            fuzz_more(report, seed)
    return report.finish()


def due():
    """Which of base.CHECKED run; says why."""
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
    """20261103, wherever the clock's owner lives."""
    return int(datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d"))


def commit():
    """What git calls the tree; zeros where there is no git."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "0" * 40


def slice_of(seed):
    """For pytest."""
    return {"PACELINE_SLICE": f"{seed % SLICES}/{SLICES}", "PACELINE_SLICE_S": str(SLICE_S)}


def seed_of(number):
    """Programs have a seed each, counted from here on."""
    return number * 10000


def fuzz_more(report, number):
    """More of the programs of every run, and others from this number's seed on."""
    for on in FUZZ:
        report.phase(f"fuzz {on}, {MORE_PROGRAMS}", lambda left_s: fuzz(
            on, 1, left_s, "--programs", MORE_PROGRAMS), 300)
    for on, seconds in FUZZ_S.items():
        report.phase(f"fuzz {on}", lambda left_s: fuzz(
            on, seed_of(number), left_s, "--seconds", seconds), seconds + 240)


def fuzz(on, seed, left_s, *words):
    """Random programs from a seed on; their last line says how many there were."""
    command = [VENV / "bin/python", "tests/python/fuzzing.py", "--on", on, "--seed", seed, *words]
    lines = run(command, timeout_s=left_s, keep=r"programs from seed \d+ on end rightly")
    counted = len(lines.splitlines())
    if not counted:
        raise Failed("no program has been played")
    return f"seed {seed}, {counted} times 50 programs"


def sanitize(preset, left_s, long, durations):
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
    return ctests.test(preset, limit_s=left_s - (time.monotonic() - begun), durations=durations,
                       only=None if long else SHORT[preset], env={"PACELINE_SHORT": "1"})


def why_not(sanitizer):
    """What an empty program of it says where it does not run; empty where it does."""
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
    """The house rules; ruff too where .venv has it."""
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
