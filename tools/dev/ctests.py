"""Runs the C++ tests by ctest: failed ones once more; says why parts of them were skipped."""

import re

from dev import skips, slowness, stacks
from dev.process import ROOT, VENV, Failed, cores, environment, run

TEST_LIMIT_S, LONG_TEST_LIMIT_S = 600, 2400  # of one file of tests
KEPT = r"tests passed.* out of \d+|No tests were found|\*\*\*(Failed|Timeout|Exception)"


def test(preset, *, limit_s, only=None, without=None, configuration=None, env=None,
         test_limit_s=TEST_LIMIT_S):
    """Run the tests of a preset; the lines to keep. `only`: those whose names begin so (a regular
    expression). `without`: leaves out those of this label. `configuration`: adds its own. Failed:
    a test failed twice, or was skipped for a reason that has no row in skips.py."""
    test_limit_s = max(1, int(min(limit_s, test_limit_s * slowness.factor())))
    beside = cores() + 1  # some of them sleep
    command = [VENV / "bin/ctest", "--preset", preset, "-j", beside, "--repeat", "until-pass:2",
               "--timeout", test_limit_s, *(["-R", f"^({only})"] if only else []),
               *(["-LE", f"^{without}$"] if without else []),
               *(["-C", configuration] if configuration else [])]  # fmt: skip
    lines = run(command, timeout_s=limit_s, env=environment(**(env or {})), keep=KEPT,
                on_late=lambda child: print(tell(child), flush=True))  # fmt: skip
    log = ROOT / f"build/{preset}/Testing/Temporary/LastTest.log"
    return "\n".join([flaky(lines), *skipped(log.read_text(errors="replace"))])


def tell(child):
    """Describes the processes of a run that is ended for its time."""
    return f"UNDER WAY:\n{stacks.describe(stacks.tree(child)[1:])}"


def flaky(lines):
    """The output of a green run, with the tests named that passed at their second try."""
    return re.sub(r".*Test +#\d+: (\S+) \.*\*\*\*(.*)", r"FLAKY \1: \2", lines)


def skipped(log):
    """The tests that ctest's log shows as skipped, and why; Failed for a reason not in skips.py.
    """
    found = sorted(set(re.findall(r"^SKIPPED (.*)$", log, re.MULTILINE)))
    unknown = [line for line in found if not skips.is_known(line.partition(" [in: ")[0])]
    if unknown:
        raise Failed(f"skipped, with no row in {skips.__file__}: {'; '.join(unknown)}",
                     "\n".join(found))
    return [f"skipped: {line}" for line in found]
