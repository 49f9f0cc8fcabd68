"""Configure and compile with CMake; make the Python package importable from .venv."""

import os
import re
import shutil
import sys

from dev.process import ROOT, VENV, Failed, cores, environment, run

sys.path.insert(0, str(ROOT / "tests/python"))
import skips  # noqa: E402

BUILD_LIMIT_S = 1800
TEST_LIMIT_S = 600  # of one of ctest's


def build(preset, *, targets=(), defines=(), limit_s=BUILD_LIMIT_S, bar=None):
    """Bring build/<preset> up to date: all of it, or only `targets`.

    bar: what a progress bar says, which then stands in the place of the compiler's lines.
    """
    python = f"-DPython_EXECUTABLE={VENV / 'bin/python'}"
    cmake = VENV / "bin/cmake"
    run([cmake, "--preset", preset, python, *defines], timeout_s=300,
        bar=bar and "configuring")
    command = [cmake, "--build", "--preset", preset, "-j", cores()]
    if targets:
        command += ["--target", *targets]
    run(command, timeout_s=limit_s, bar=bar)


def release(*defines, mpicc=()):
    """Build everything optimised. The module goes beside the Python sources (git ignores it).

    mpicc: of the MPIs that the drop-in library is built for, too; it stays so in later builds.
    """
    if mpicc:
        defines = (*defines, "-DPACELINE_MPICC=" + ";".join(map(path_of, mpicc)))
    build("release", defines=defines)
    install_module()


def module():
    """Build the Python module alone, optimised: what a program needs that imports paceline."""
    build("release", targets=["_core"], bar="compiling")
    install_module()


def install_module():
    """Copy the module beside the Python sources, and make .venv see them as a package."""
    package = ROOT / "python"
    run(
        [VENV / "bin/cmake", "--install", "build/release", "--component", "python",
         "--prefix", package],
        timeout_s=60,
    )
    if (package / "paceline/__init__.py").exists():
        run([VENV / "bin/python", ROOT / "tools/dev/link.py"], timeout_s=60)


def path_of(mpicc):
    """The compiler as a path; links are kept, since Open MPI's look at the name they are called."""
    found = shutil.which(mpicc)
    if not found:
        raise Failed(f"--mpicc {mpicc}: no such program; give the path of an MPI's C compiler")
    return os.path.abspath(found)


def ctest(preset, *, timeout_s, only=None, env=None):
    """Run the tests of a preset; return ctest's summary line, and why parts of tests were skipped.
    `only`: tests whose names begin so (a regular expression)."""
    command = [VENV / "bin/ctest", "--preset", preset, "-j", cores(),
               "--timeout", int(min(timeout_s, TEST_LIMIT_S))]
    if only:
        command += ["-R", rf"^{only}"]
    summary = r"tests passed.* out of \d+|No tests were found"
    counted = run(command, timeout_s=timeout_s, env=environment(**(env or {})), keep=summary)
    log = ROOT / f"build/{preset}/Testing/Temporary/LastTest.log"
    return "\n".join([counted, *skipped(log.read_text(errors="replace"))])


def skipped(log):
    """The tests that ctest's log shows as skipped, and why; Failed for a reason that nobody knows.
    """
    found = sorted(set(re.findall(r"^SKIPPED (.*)$", log, re.MULTILINE)))
    unknown = [line for line in found if not skips.is_known(line.partition(" [in: ")[0])]
    if unknown:
        raise Failed(f"skipped, with no row in {skips.__file__}: {'; '.join(unknown)}",
                     "\n".join(found))
    return [f"skipped: {line}" for line in found]
