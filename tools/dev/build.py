"""Configure and compile with CMake; make the Python package importable from .venv."""

import os
import shutil

from dev.process import ROOT, VENV, Failed, cores, environment, run

BUILD_LIMIT_S = 1800


def build(preset, *, targets=(), defines=()):
    """Bring build/<preset> up to date: all of it, or only `targets`."""
    python = f"-DPython_EXECUTABLE={VENV / 'bin/python'}"
    cmake = VENV / "bin/cmake"
    run([cmake, "--preset", preset, python, *defines], timeout_s=300)
    command = [cmake, "--build", "--preset", preset, "-j", cores()]
    if targets:
        command += ["--target", *targets]
    run(command, timeout_s=BUILD_LIMIT_S)


def release(*defines, mpicc=()):
    """Build everything optimised. The module goes beside the Python sources (git ignores it).

    mpicc: of the MPIs that the drop-in library is built for, too; it stays so in later builds.
    """
    if mpicc:
        defines = (*defines, "-DPACELINE_MPICC=" + ";".join(map(path_of, mpicc)))
    build("release", defines=defines)
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
    """Run the tests of a preset; return ctest's summary line. `only`: tests whose names begin
    so (a regular expression)."""
    command = [VENV / "bin/ctest", "--preset", preset, "-j", cores(), "--timeout", timeout_s]
    if only:
        command += ["-R", rf"^{only}"]
    summary = r"tests passed.* out of \d+|No tests were found"
    return run(command, timeout_s=4 * timeout_s, env=environment(**(env or {})), keep=summary)
