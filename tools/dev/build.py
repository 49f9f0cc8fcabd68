"""Configure and compile with CMake; make the Python package importable from .venv."""

import os
import shutil

from dev.process import ROOT, VENV, Failed, cores, run

BUILD_LIMIT_S = 1800


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
