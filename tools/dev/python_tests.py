"""The Python tests, side by side; what failed once more, alone."""

import os
import time

from dev import verdict, watching
from dev.process import ROOT, VENV, Failed, cores, environment, run

OUT = ROOT / "out/tests"
KEPT = (r"^=+ .*(passed|failed|error|skipped|no tests ran|deselected).* in [\d.]+s"
        r"|^skipped \d+: |^[\d.]+s (call|setup|teardown) ")
WORKER_GIB = 2  # that the ranks of a test may take
WORKER_SHARED_GIB = 1 / 32  # of that in /dev/shm; MPICH dies where it is full


def workers():
    """Some tests sleep: three for two cores, where memory allows. With four, ranks that poll take
    time from each other: 620 s of two processors, with three 550 s (one run each)."""
    return max(1, min(3 * cores() // 2, 8, int(free_gib() / WORKER_GIB),
                      int(free_shared_gib() / WORKER_SHARED_GIB)))


def free_shared_gib():
    found = os.statvfs("/dev/shm")
    return found.f_bavail * found.f_frsize / 2**30


def free_gib():
    with open("/proc/meminfo") as file:
        (line,) = [line for line in file if line.startswith("MemAvailable:")]
    return int(line.split()[1]) / 2**20


def test(limit_s, env, *marks, where=()):
    """All tests that have these marks; the lines to keep. Failed: something failed twice.

    where: files, and other words for pytest.
    """
    end = time.monotonic() + limit_s
    chosen = ["-m", " and ".join(marks)] if marks else []
    first = some("beside", workers(), end, env, *chosen, *where)
    options = [word for word in where if str(word).startswith("-")]
    return verdict.judge(
        first, lambda names: some("again", 1, end, env, *options, *names))


def some(name, count, end, env, *words):
    """One run of pytest, as a Try."""
    OUT.mkdir(parents=True, exist_ok=True)
    results, under_way = OUT / f"{name}.jsonl", OUT / "under-way"
    results.unlink(missing_ok=True)
    under_way.mkdir(exist_ok=True)
    for file in under_way.iterdir():
        file.unlink()
    told = environment(**env, TESTS_RESULTS=str(results),
                       TESTS_UNDER_WAY=str(under_way))  # fmt: skip
    command = [VENV / "bin/python", "-m", "pytest", "-n", count, "--dist", "loadfile",
               "--durations", 10, *words]
    failure, lines = None, ""
    try:
        lines = run(command, timeout_s=end - time.monotonic(), env=told, keep=KEPT,
                    on_late=lambda _: print(watching.describe(under_way), flush=True))  # fmt: skip
    except Failed as caught:
        failure, lines = caught, caught.summary
    return verdict.Try(verdict.read(results), failure, lines)
