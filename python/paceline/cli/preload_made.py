"""Compiles the drop-in library for an MPI from the wheel's sources, once, in the user's cache."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import track

from paceline.errors import ResourceError

CARRIED = Path(__file__).parents[1] / "native/drop_in"  # of a wheel; not of a source tree
CALLS, STUB = "libpaceline_mpi_calls.so", "libpaceline_mpi.so"
LIMIT_S = 600
# The same as in src/preload/library.cmake.
COMMON = ("-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fno-semantic-interposition")
CXX = (*COMMON, "-std=c++20", "-fvisibility-inlines-hidden")
SHARED = ("-shared", "-pthread")
SYSTEM = ("-ldl", "-lrt")
# A family of calls exists if this call of it does; the stub gets the macro.
FAMILIES = {"Gather_c": "PACELINE_MPI_HAS_LONG_COUNTS",
            "Gather_init": "PACELINE_MPI_HAS_PERSISTENT"}  # fmt: skip
# Names the MPI of an mpi.h: the preprocessor leaves one line.
ASKS = """#include <mpi.h>
#if defined(OPEN_MPI)
mpi openmpi OMPI_MAJOR_VERSION.OMPI_MINOR_VERSION.OMPI_RELEASE_VERSION
#elif defined(I_MPI_VERSION)
mpi impi I_MPI_VERSION
#else
mpi mpich MPICH_VERSION
#endif
"""


def compiler(variable, usual):
    """The words of the command. Raises ResourceError if there is none."""
    words = shlex.split(os.environ.get(variable, "")) or [usual]
    if shutil.which(words[0]) is None:
        raise ResourceError(
            "preload: the drop-in library has to be compiled for this MPI, and there is no "
            f"compiler '{words[0]}'. Install g++ 12 or newer, or name a compiler: CC=... CXX=... "
            "paceline preload.")
    return words


def run(*command, **options):
    """Returns a compiler's output. Raises ResourceError with the first line that holds `error`."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=LIMIT_S, **{"input": "", **options})
    except (OSError, subprocess.SubprocessError) as error:
        raise ResourceError(f"preload: the compiler failed: {error}") from None
    if done.returncode == 0:
        return done.stdout
    lines = done.stderr.splitlines() or ["it said nothing"]
    first = next((line for line in lines if "error" in line), lines[-1])
    raise ResourceError(
        f"preload: '{shlex.join(map(str, command[:1]))}' could not compile the drop-in library "
        f"(exit status {done.returncode}): {first.strip()}. It takes g++ 12 or newer; set CXX to "
        "another compiler.")


def cache():
    """The user's folder for compiled files, by XDG's rules."""
    for variable, below in (("XDG_CACHE_HOME", "paceline"), ("HOME", ".cache/paceline")):
        value = os.environ.get(variable, "")
        if value.startswith("/"):
            return Path(value, below, "preload")
    raise ResourceError("preload: there is no folder to keep the compiled drop-in library in. Set "
                        "XDG_CACHE_HOME or HOME.")


def ask_header(mpicc, flags):
    """(family, version, macros for the stub) of the MPI whose mpi.h these flags find. Raises
    ResourceError."""
    try:
        text = run(*compiler("CC", "cc"), "-E", "-P", "-x", "c", *flags, "-", input=ASKS)
    except ResourceError as error:
        raise ResourceError(f"{error} Are the headers of the MPI of {mpicc} installed?") from None
    found = re.search(r"mpi (openmpi|impi|mpich) ([0-9. \"a-z]+)", text)
    if not found:
        raise ResourceError(f"preload: the mpi.h of {mpicc} is of an unknown MPI; the drop-in "
                            "library serves Open MPI, MPICH and Intel MPI.")
    has = [f"-D{macro}" for call, macro in FAMILIES.items()
           if re.search(rf"\bMPI_{call} *\(", text)]  # fmt: skip
    return found[1], re.sub(r'[ "]', "", found[2]), has


def digest(*texts):
    """Digest of these texts and of the wheel's sources: a new version is compiled again."""
    sha = hashlib.sha256("\n".join(texts).encode())
    for path in sorted(path for path in CARRIED.rglob("*") if path.is_file()):
        sha.update(str(path.relative_to(CARRIED)).encode() + b"\0" + path.read_bytes())
    return sha.hexdigest()[:12]


def library(mpicc, shown):
    """The library for this MPI, compiled now if it has not been. `shown`: the output of `mpicc
    -show`."""
    flags = [word for word in shlex.split(shown) if re.match("-[ID]", word)]
    family, version, has = ask_header(mpicc, flags)
    folder = cache() / f"{family}-{version}-{digest(shown, version)}"
    if not (folder / STUB).exists():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".being-made-") as room:
                made = Path(room, "library")
                made.mkdir()
                compile_into(made, Path(room), flags, has, f"{family} {version}", folder)
                (made / "mpicc.txt").write_text(f"{shown}\n", encoding="utf-8")
                if not folder.exists():  # else another process made it meanwhile
                    made.rename(folder)
        except OSError as error:
            if not (folder / STUB).exists():
                raise ResourceError(f"preload: {folder} cannot be written: {error}") from None
    return folder / STUB


def compile_into(made, room, flags, has, name, folder):
    """Compiles both parts of the library. Messages go to stderr: stdout is for the path."""
    cxx, cc = compiler("CXX", "c++"), compiler("CC", "cc")
    source = CARRIED / "src/preload"
    files = sorted(source.glob("*.cpp"))
    out = Console(stderr=True, highlight=False)
    out.print(f"paceline: preload: compiling the drop-in library for {name}, once, in {folder}",
              soft_wrap=True, markup=False)

    def object_of(file):
        target = room / f"{file.stem}.o"
        run(*cxx, *CXX, "-I", CARRIED / "src", *flags, "-c", file, "-o", target)
        return target

    threads = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        objects = list(track(threads.map(object_of, files), "compiling", len(files), console=out,
                             transient=True, disable=not out.is_terminal))
    finally:
        threads.shutdown(cancel_futures=True)  # one that fails is enough
    run(*cxx, *SHARED, f"-Wl,--version-script={source}/calls.map", *objects,
        CARRIED / "libpaceline_core.a", *SYSTEM, "-o", made / CALLS)
    run(*cc, *COMMON, "-std=c11", *has, *SHARED, f"-Wl,--version-script={source}/stub.map",
        *sorted(source.glob("*.c")), *SYSTEM, "-o", made / STUB)
