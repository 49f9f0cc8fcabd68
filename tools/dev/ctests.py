"""The C++ tests, by ctest: what failed once more, alone; why parts of them were skipped."""

import re
import time
import xml.etree.ElementTree as xml

from dev import skips, slowness, stacks, verdict
from dev.process import ROOT, VENV, Failed, cores, environment, run

TEST_LIMIT_S = 600  # of one file of tests
SUMMARY = r"tests passed.* out of \d+|No tests were found"
TAIL_LINES = 6


def test(preset, *, limit_s, durations, only=None, without=None, env=None):
    """Run the tests of a preset; the lines to keep. `only`: those whose names begin so (a regular
    expression). `without`: leaves out those of this label. Failed: a test failed twice, or was
    skipped for a reason that has no row in skips.py."""
    end = time.monotonic() + limit_s
    log = ROOT / f"build/{preset}/Testing/Temporary/LastTest.log"
    logs = []

    def some(count, *words):
        how = attempt(preset, count, end, env, durations, *words)
        logs.append(log.read_text(errors="replace") if log.exists() else "")
        return how

    def again(names):
        return some(1, "-R", "^(" + "|".join(map(re.escape, names)) + ")$")

    which = [*(["-R", rf"^{only}"] if only else []), *(["-LE", f"^{without}$"] if without else [])]
    lines = verdict.judge(some(cores(), *which), again)
    return verdict.joined(lines, *skipped("\n".join(logs)))


def attempt(preset, count, end, env, durations, *words):
    """One run of ctest, as a Try."""
    file = ROOT / f"out/tests/ctest-{preset}.xml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    left_s = end - time.monotonic()
    limit_s = max(1, int(min(left_s, TEST_LIMIT_S * slowness.factor())))
    command = [VENV / "bin/ctest", "--preset", preset, "-j", count, "--output-junit", file,
               "--timeout", limit_s, *words]  # fmt: skip
    failure = None
    try:
        lines = run(command, timeout_s=left_s, env=environment(**(env or {})), keep=SUMMARY,
                    on_late=lambda child: print(tell(child), flush=True))  # fmt: skip
    except Failed as caught:
        failure, lines = caught, caught.summary
    failed, seconds = read(file)
    durations.add({f"{preset} {name}": s for name, s in seconds.items()})
    return verdict.Try(failed, failure, lines)


def tell(child):
    """What a run that is ended was at."""
    return f"UNDER WAY:\n{stacks.describe(stacks.tree(child)[1:])}"


def read(file):
    """(failed as in verdict.Try, test -> seconds) of ctest's file."""
    failed, seconds = {}, {}
    for case in xml.parse(file).iter("testcase") if file.exists() else ():
        name = case.get("name")
        seconds[name] = float(case.get("time") or 0)
        if case.get("status") == "fail":
            said = (case.findtext("system-out") or "").strip().splitlines()
            tail = " | ".join(" ".join(line.split()) for line in said[-TAIL_LINES:])
            failed[name] = (f"{tail[-1200:]}", True)
    return failed, seconds


def skipped(log):
    """The tests that ctest's log shows as skipped, and why; Failed for a reason that nobody knows.
    """
    found = sorted(set(re.findall(r"^SKIPPED (.*)$", log, re.MULTILINE)))
    unknown = [line for line in found if not skips.is_known(line.partition(" [in: ")[0])]
    if unknown:
        raise Failed(f"skipped, with no row in {skips.__file__}: {'; '.join(unknown)}",
                     "\n".join(found))
    return [f"skipped: {line}" for line in found]
