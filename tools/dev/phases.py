"""./dev test: the phases of a full check, each timed, each bounded, all of them run.

What a short run tries besides is drawn from the commit, so that some commits together see all of
it: one of the two sanitizers, and a sixteenth of the long Python tests. Random programs have the
day's seed.
"""

import ctypes
import datetime
import subprocess
import sys
import time

from dev import aarch64, build, mpis, newest_torch, prepare
from dev.process import ROOT, VENV, Failed, cores, environment, run
from dev.report import Report

ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
LONG_S = 3540  # of ./dev test --long in all: within an hour, whatever hangs
SLICES = 16  # of the long tests
SLICE_S = 120  # of a slice, after which it begins no other test
SANITIZERS = ("asan", "tsan")
FUZZ = {"loop": 15, "shm": 15}  # seconds on each
FUZZ_LONG = {"loop": 60, "shm": 60, "mpi": 60, "preload": 60}


def test(long):
    report = Report("./dev test --long" if long else "./dev test", commit(),
                    LONG_S if long else None)
    number = int(commit()[:8], 16)
    ready = report.phase("setup", lambda _: prepare.ensure())
    report.phase("mpi", lambda _: mpis.ensure())
    ready = ready and report.phase("build", lambda _: build.release(mpicc=mpis.compilers()))
    env = {"PACELINE_LONG": "1"} if long else {}
    if ready:
        report.phase("ctest", lambda left_s: build.ctest("release", timeout_s=left_s, env=env), 600)
    report.phase("tidy", lambda _: tidy())
    if not ready:
        return report.finish()
    report.phase("pytest", lambda left_s: pytest(left_s, env), 1500 if long else 1080)
    if not long:
        report.phase("slice", lambda left_s: pytest(left_s, slice_of(number), "-m", "long"), 420)
    for on, seconds in (FUZZ_LONG if long else FUZZ).items():
        report.phase(f"fuzz {on}", lambda left_s: fuzz(on, seconds, left_s), seconds + 240)
    if long:
        report.phase("aarch64", aarch64.test, 900)
        report.phase("newest torch", newest_torch.test, 900)
    for preset in SANITIZERS if long else [SANITIZERS[number % 2]]:
        report.phase(preset, lambda left_s: sanitize(preset, left_s, long), 1200 if long else 1000)
    return report.finish()


def commit():
    """What git calls the tree; zeros where there is no git."""
    command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "0" * 40


def slice_of(number):
    """For pytest: the slice of the commit with this number; another one than with its sanitizer."""
    which = number // len(SANITIZERS) % SLICES
    return {"PACELINE_SLICE": f"{which}/{SLICES}", "PACELINE_SLICE_S": str(SLICE_S)}


def seed_of(day):
    """Programs have a seed each, counted from here on."""
    return int(day.strftime("%Y%m%d")) * 10000


def fuzz(on, seconds, left_s):
    """Random programs from the day's seed on; their last line says how many there were."""
    seed = seed_of(datetime.date.today())
    command = [VENV / "bin/python", "tests/python/fuzzing.py", "--on", on, "--seed", seed,
               "--seconds", seconds]
    lines = run(command, timeout_s=left_s, keep=r"programs from seed \d+ on end rightly")
    counted = len(lines.splitlines())
    if not counted:
        raise Failed("no program has been played")
    return f"seed {seed}, {counted} times 50 programs"


def sanitize(preset, left_s, long):
    """Build with a sanitizer and run: all tests in short form, or some worlds and real ranks.

    What a sanitizer finds does not depend on how many worlds are proven, and it takes ten times as
    long for each.
    """
    if preset == "tsan":
        # GCC 12's thread sanitizer cannot place its shadow under the widest address
        # randomisation. Children inherit this; where it is forbidden nothing changes.
        ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    begun, some = time.monotonic(), {"targets": ["short", "short_shm"]}
    build.build(preset, limit_s=left_s, **({} if long else some))
    return build.ctest(preset, timeout_s=left_s - (time.monotonic() - begun),
                       only=None if long else "short", env={"PACELINE_SHORT": "1"})


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


def pytest(limit_s, env, *words):
    """A file of tests per core at a time, but not more than four: each starts many ranks."""
    kept = r"^=+ .*(passed|failed|error|skipped|no tests ran).* in [\d.]+s|^skipped \d+: |^FAILED: "
    return run(
        [VENV / "bin/python", "-m", "pytest", "-n", min(cores(), 4), "--dist", "loadfile", *words],
        timeout_s=limit_s, env=environment(**env), keep=kept,
    )
