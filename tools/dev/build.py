"""Configure and compile with CMake; make the Python package importable from .venv."""

import os
import shutil

from dev.process import ROOT, VENV, Failed, cores, environment, run

BUILD_LIMIT_S = 1800


def build(preset, *, targets=(), defines=(), limit_s=BUILD_LIMIT_S, bar=None):
    """Bring build/<preset> up to date: all of it, or only `targets`.

    bar: what a progress bar says, which then stands in the place of the compiler's lines.
    """
    python = f"-DPython_EXECUTABLE={VENV / 'bin/python'}"
    cmake = VENV / "bin/cmake"
    launchers, env = compiler_cache()
    run([cmake, "--preset", preset, python, *launchers, *defines], timeout_s=300, env=env,
        bar=bar and "configuring")
    command = [cmake, "--build", "--preset", preset, "-j", cores()]
    if targets:
        command += ["--target", *targets]
    run(command, timeout_s=limit_s, env=env, bar=bar)


def compiler_cache():
    """CMake's options and the environment with which ccache, where it is there, keeps objects in
    the user's cache folder, for every clone of this repository. The user's own launcher goes first.
    """
    if not shutil.which("ccache") or "CMAKE_CXX_COMPILER_LAUNCHER" in os.environ:
        return [], environment()
    launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    return launchers, environment(
        CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1",  # paths of a clone make no difference
        CCACHE_SLOPPINESS="pch_defines,time_macros",  # what precompiled headers need
        # Keeps hashes of files: to read the 64 MB of a precompiled header took 0.07 s an object.
        # They lie in this clone, since a machine that goes down may leave them locked.
        CCACHE_INODECACHE="1", CCACHE_TEMPDIR=str(ROOT / "build/ccache"),
    )


def release(*defines, mpicc=()):
    """Build everything optimised. The module goes beside the Python sources (git ignores it).

    mpicc: of the MPIs that the drop-in library is built for, too; it stays so in later builds.
    """
    if mpicc:
        defines = (*defines, "-DPACELINE_MPICC=" + ";".join(map(path_of, mpicc)))
    build("release", defines=defines)
    install_module()


def core():
    """Build what `./dev check` runs: the core's tests and the Python module, for no MPI."""
    build("release", targets=["unit", "short", "process", "_core", "_native"])
    install_module()


def module():
    """Build the Python modules alone, optimised: what a program needs that imports paceline."""
    build("release", targets=["_core", "_native"], bar="compiling")
    install_module()


def install_module():
    """Copy the modules beside the Python sources, and make .venv see those as packages."""
    for component, folder in (("python", "python"), ("bench", "bench")):
        run([VENV / "bin/cmake", "--install", "build/release", "--component", component,
             "--prefix", ROOT / folder], timeout_s=60)  # fmt: skip
    run([VENV / "bin/python", ROOT / "tools/dev/link.py"], timeout_s=60)


def path_of(mpicc):
    """The compiler as a path; links are kept, since Open MPI's look at the name they are called."""
    found = shutil.which(mpicc)
    if not found:
        raise Failed(f"--mpicc {mpicc}: no such program; give the path of an MPI's C compiler")
    return os.path.abspath(found)
