"""./dev test: the phases of a full check, each timed, each bounded, all of them run."""

import ctypes
import sys
import time

from dev import build, mpis, prepare
from dev.process import VENV, Failed, cores, environment, run

ADDR_NO_RANDOMIZE = 0x0040000  # <sys/personality.h>
LEAVES_TIME_S = 720  # after so long a sanitizer still ends within a quarter of an hour


class Report:
    """What ran, how long it took, how it ended."""

    def __init__(self):
        self.rows = []  # (phase, seconds, failure or None, the tool's own summary line)

    def phase(self, name, action):
        """Run one phase; a failure is written down, and the next phase can still run."""
        print(f"\n=== {name} ===", flush=True)
        start, failure = time.monotonic(), None
        try:
            line = action() or ""
        except Failed as caught:
            failure, line = caught, caught.summary
            print(f"{name}: {caught}", file=sys.stderr, flush=True)
        self.rows.append((name, time.monotonic() - start, failure, line))
        return failure is None

    def seconds(self):
        """So far."""
        return sum(seconds for _, seconds, _, _ in self.rows)

    def finish(self):
        """Print the table, then the summary lines of ctest and pytest as they wrote them."""
        total = self.seconds()
        print("\nphase              seconds")
        for name, seconds, failure, _ in self.rows:
            verdict = f"FAILED ({failure})" if failure else "ok"
            print(f"{name:<18} {seconds:7.1f}  {verdict}")
        print(f"{'total':<18} {total:7.1f}")
        for name, _, _, line in self.rows:
            if line:
                print(f"\n{name}:\n{line}")
        return 1 if any(failure for _, _, failure, _ in self.rows) else 0


def test(long):
    report = Report()
    env = {"PACELINE_LONG": "1"} if long else {}
    limit_s = 3600 if long else 240
    ready = report.phase("setup", prepare.ensure)
    report.phase("mpi", mpis.ensure)
    ready = ready and report.phase("build", lambda: build.release(mpicc=mpis.compilers()))
    if ready:
        report.phase("ctest", lambda: build.ctest("release", timeout_s=limit_s, env=env))
    report.phase("tidy", tidy)
    if ready:
        report.phase("pytest", lambda: pytest(limit_s * 3, env))
        # Building costs minutes each: the thread sanitizer waits for the long run, and on a slow
        # machine the other one, too.
        if not long and report.seconds() > LEAVES_TIME_S:
            report.phase("asan", lambda: "left out, it is late; ./dev test --long has it")
            return report.finish()
        for preset in ("asan", "tsan") if long else ("asan",):
            report.phase(preset, lambda: sanitize(preset, limit_s, long))
    return report.finish()


def sanitize(preset, limit_s, long):
    """Build with a sanitizer and run: all tests in short form, or a few of the worlds.

    What a sanitizer finds does not depend on how many worlds are proven, and it takes ten times as
    long for each.
    """
    if preset == "tsan":
        # GCC 12's thread sanitizer cannot place its shadow under the widest address
        # randomisation. Children inherit this; where it is forbidden nothing changes.
        ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    if long:
        build.build(preset)
        return build.ctest(preset, timeout_s=limit_s, env={"PACELINE_SHORT": "1"})
    build.build(preset, targets=["short"])
    return build.ctest(preset, timeout_s=limit_s, only=r"short\.")


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


def pytest(limit_s, env):
    """A file of tests per core at a time, but not more than four: each starts many ranks."""
    summary = r"^=+ .*(passed|failed|error|skipped|no tests ran).* in [\d.]+s"
    return run(
        [VENV / "bin/python", "-m", "pytest", "-n", min(cores(), 4), "--dist", "loadfile"],
        timeout_s=limit_s, env=environment(**env), keep=summary,
    )
