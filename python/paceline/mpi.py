"""The MPI of this process: finds it as mpi4py does, loads it once, and finalises it.

Nothing here is needed for ranks of one machine that `paceline run` or torchrun started.
"""

import glob
import mmap
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from paceline import _core, launchers
from paceline.errors import RefusalError, ResourceError, UsageError
from paceline.launchers import MPICH, OPENMPI, STANDARD, Launcher

FAMILIES = (MPICH, OPENMPI, STANDARD)
FAMILY_NAMES = {MPICH: "MPICH's family", OPENMPI: "Open MPI", STANDARD: "the standard ABI"}
# File names of their libraries, by family.
_NAMES = {
    OPENMPI: ("libmpi.so.40", "libmpi.so"),
    MPICH: ("libmpi.so.12", "libmpich.so.12", "libmpi.so"),
    STANDARD: ("libmpi_abi.so.1",),
}
_GRACE_S = 5.0  # for what gives up by itself at the limit, and says more
# Names of programs that start the ranks of an MPI; srun's slurmstepd brings no MPI.
_OF_MPI = re.compile(r"mpi(exec|run|spawn)|hydra_|pmi_proxy|ort(ed|erun)|prt(ed|erun)|prun")
# Option of srun that starts their ranks.
_SRUN = {OPENMPI: "--mpi=pmix", MPICH: "--mpi=pmi2", STANDARD: "--mpi=pmi2"}


@dataclass(frozen=True)
class Found:
    """A candidate library. An empty path stands for the library that the process has loaded."""

    path: str
    why: str
    family: str = ""  # empty: not known before it is loaded
    wanted: bool = False  # the user named it: an error if it cannot be used


_loaded: "tuple[_core.Mpi, Found] | None" = None


def candidates(families: tuple[str, ...] = FAMILIES) -> list[Found]:
    """The candidate libraries, the best first. `families`: those that fit the launcher."""
    option = str(_core.option("mpi"))
    if _core.has_mpi():
        if os.path.exists(option) and os.path.realpath(option) not in _mapped():
            raise UsageError(
                f"init: PACELINE_MPI is {option}, but another MPI is in this process already. Load "
                "one only: mpi4py takes the library that MPI4PY_LIBMPI names."
            )
        return [Found("", "in this process already", wanted=True)]
    for variable, value in (
        ("PACELINE_MPI", option),
        ("MPI4PY_LIBMPI", os.environ.get("MPI4PY_LIBMPI", "")),
    ):
        if value:
            return [Found(value, f"{variable} names it", family_of(value), wanted=True)]
    found = [f for f in _installed() if f.family in families]
    found.sort(key=lambda f: families.index(f.family))  # otherwise as they were
    for family in families:
        found += [Found(name, "the loader knows it", family) for name in _NAMES[family]]
    # The loader may know either family's library by that name.
    return [f for f in found if f.path != "libmpi.so"]


def _launcher() -> str:
    """The program that started this one for an MPI, directly or by a script; empty: there is none,
    or it is another user's."""
    process = os.getppid()
    while process > 1:
        try:
            path = os.readlink(f"/proc/{process}/exe")
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
                process = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            return ""
        if _OF_MPI.match(os.path.basename(path)):
            return path
    return ""


def _installed() -> Iterator[Found]:
    """Libraries beside the launcher, and in this Python's environment."""
    launcher = _launcher()
    prefixes = {}
    if launcher:
        prefixes[os.path.dirname(os.path.dirname(launcher))] = "it belongs to the launcher"
    prefixes.setdefault(sys.exec_prefix, "it is in this Python's environment")
    for prefix, why in prefixes.items():
        for name in dict.fromkeys(name for names in _NAMES.values() for name in names):
            for path in (f"{prefix}/lib/{name}", *glob.glob(f"{prefix}/lib/*-linux-gnu/{name}")):
                if os.path.isfile(path):
                    yield Found(path, why, family_of(path))


def _mapped() -> list[str]:
    """The files that this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return list(dict.fromkeys(line.split(None, 5)[-1].rstrip("\n") for line in maps))


def path_of(found: Found) -> str:
    """Path of a loaded library."""
    if os.path.isabs(found.path):
        return found.path
    names = [path for path in _mapped() if os.path.basename(path).startswith("libmpi")]
    return next((path for path in names if family_of(path)), found.path)


def family_of(path: str) -> str:
    """The family of a library, from the names inside, without loading it; empty: not known."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            if text.find(b"\0ompi_mpi_comm_world\0") >= 0:
                return OPENMPI
            if os.path.basename(path).startswith("libmpi_abi"):
                return STANDARD
            return MPICH if text.find(b"\0PMPI_Init_thread\0") >= 0 else ""
    except (OSError, ValueError):  # not there, or empty
        return ""


def load(launcher: Launcher | None = None) -> "tuple[_core.Mpi, Found]":
    """Returns the MPI of this process, and the reason for this one. It fits the launcher, if any.

    Raises RefusalError if no MPI fits the launcher, and ResourceError if there is no MPI.
    """
    global _loaded
    families = launcher.families if launcher else FAMILIES
    if _loaded is None:
        _loaded = _load(launcher, families)
    library, found = _loaded
    if launcher and (library.abi not in families or _lacks_pmix(launcher, library, found)):
        raise RefusalError(
            f"init: {launcher.name} started {launcher.ranks} ranks, but the MPI of this process is "
            f"{_origin(library, found)}, which does not know that launcher: every rank would be "
            f"alone. Start with {_starter(launcher, library.abi)}, or let PACELINE_MPI (and "
            f"MPI4PY_LIBMPI) name a library of {FAMILY_NAMES[families[0]]}."
        )
    return _loaded


def _load(launcher: Launcher | None, families: tuple[str, ...]) -> "tuple[_core.Mpi, Found]":
    tried, found_all = [], candidates(families)
    if launcher:  # what fits best, wherever it is
        found_all.sort(key=lambda f: families.index(f.family) if f.family in families else 0)
    for found in found_all:
        # A library of the wrong family is refused before it is loaded: it would stay for good.
        if launcher and found.family and found.family not in families:
            raise RefusalError(
                f"init: {found.path} is of {FAMILY_NAMES[found.family]} ({found.why}); "
                f"{launcher.name}, which started this process, goes with "
                f"{FAMILY_NAMES[families[0]]}: every rank would be alone. Name another library, "
                f"or start with {_starter(launcher, found.family)}."
            )
        try:
            return _core.load_mpi(found.path), found
        except ResourceError as error:
            if found.wanted:
                raise
            tried.append(str(error))
    raise ResourceError(
        f"init: no MPI was found. Looked beside the launcher, in {sys.exec_prefix}/lib and where "
        "the loader looks. Let PACELINE_MPI name its libmpi.so, or `pip install 'paceline[mpi]'`."
    )


def _lacks_pmix(launcher: Launcher, library: "_core.Mpi", found: Found) -> bool:
    """True if this is an MPICH without PMIx, which the launcher's ranks need.

    Version 5 then ends the process in MPI_Init; in version 4 each process is a world of its own.
    The behaviour of MPICH's relatives is unknown.
    """
    if not launcher.has_pmix or library.is_initialized or "MPICH Version" not in library.version:
        return False
    try:
        with open(path_of(found), "rb") as file:
            return b"\0PMIx_Init\0" not in file.read()
    except OSError:
        return False


def _starter(launcher: Launcher, family: str) -> str:
    """The command that starts ranks of this MPI, where the launcher cannot."""
    return f"`srun {_SRUN[family]}`" if launcher.is_srun else "the mpiexec of this MPI"


def _origin(library: "_core.Mpi", found: Found) -> str:
    return f"{version_of(library)} ({path_of(found)}: {found.why})"


def join_launched(
    launcher: Launcher, timeout_ms: int | None = None, start_timeout_ms: int | None = None
) -> _core.Communicator:
    """The world of all ranks that the launcher has started."""
    library = ready(launcher, start_timeout_ms)
    limit_ms = start_timeout_ms or int(_core.option("start_timeout_ms"))
    with _limit(launcher, limit_ms, "the ranks have not met over MPI", _GRACE_S):
        core = library.join(None, timeout_ms, start_timeout_ms)
    if core.size != launcher.ranks:
        core.leave()
    check_size(launcher, core.size)
    return core


def ready(launcher: Launcher, start_timeout_ms: int | None = None) -> "_core.Mpi":
    """The launcher's MPI, loaded and initialised."""
    if not launcher.families:
        raise RefusalError(
            f"init: srun started {launcher.ranks} ranks without an MPI interface. Use `srun "
            "--mpi=pmix` (Open MPI) or `srun --mpi=pmi2` (MPICH's family; `srun --mpi=list` shows "
            "what there is), or torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT."
        )
    library, _ = load(launcher)
    with _limit(launcher, start_timeout_ms or int(_core.option("start_timeout_ms"))):
        library.init()
    return library


@contextmanager
def _limit(
    launcher: Launcher, limit_ms: int, late: str = "MPI has not started", grace_s: float = 0
) -> Iterator[None]:
    """Ends the process if MPI waits for longer: its wait cannot be stopped.

    srun, unlike mpiexec, lets ranks wait for a rank that has ended.
    """

    def end() -> None:
        sys.stderr.write(
            f"paceline: rank {launcher.rank} of {launcher.ranks}: {late} within "
            f"{limit_ms} ms, and cannot be stopped: this process ends. Do all ranks run, and call "
            "paceline.init()? Raise start_timeout_ms (PACELINE_START_TIMEOUT_MS), or take another "
            "MPI (PACELINE_MPI).\n"
        )
        sys.stderr.flush()
        os._exit(1)

    timer = threading.Timer(min(limit_ms / 1000 + grace_s, threading.TIMEOUT_MAX), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_size(launcher: Launcher, size: int) -> None:
    """Raises RefusalError if MPI counts other ranks than the launcher: each process is alone
    then."""
    if size != launcher.ranks:
        library, found = load()
        starter = _starter(launcher, library.abi) if launcher.is_srun else "its own mpiexec"
        raise RefusalError(
            f"init: {launcher.name} started {launcher.ranks} ranks, but {_origin(library, found)} "
            f"counts {size}: it belongs to another launcher. Start with {starter}, or let "
            "PACELINE_MPI name the launcher's library."
        )


def join_communicator(comm: Any) -> _core.Communicator:
    """The ranks of a communicator of mpi4py, as a world of their own. Collective over it."""
    mpi4py = sys.modules.get("mpi4py.MPI")
    if mpi4py is None or not isinstance(comm, mpi4py.Comm):
        raise UsageError(
            f"Communicator: {comm!r} is no communicator; pass one of mpi4py, such as "
            "MPI.COMM_WORLD, or call paceline.init()."
        )
    if not isinstance(comm, mpi4py.Intracomm) or comm == mpi4py.COMM_NULL:
        what = "null" if comm == mpi4py.COMM_NULL else "between groups"
        raise UsageError(
            f"Communicator: {comm!r} is {what}; pass an intra-communicator that this process "
            "belongs to."
        )
    library, _ = load()
    return library.join(mpi4py._addressof(comm))


def libraries_to_start() -> list[str]:
    """Libraries of MPICH's family, which ranks on several nodes can start without an MPI
    launcher."""
    return [found.path for found in candidates((MPICH, STANDARD))]


def finalize() -> None:
    """Finalises the MPI if this library initialised it. Collective."""
    _core.finish_mpi()
    if _loaded:
        _loaded[0].finalize()


def describe() -> tuple[str, str]:
    """Returns (the MPI with the reason for it, its version), empty if there is none. Loads it."""
    launcher = launchers.mpi_launcher()
    try:
        library, found = load(launcher if launcher and launcher.families else None)
    except ResourceError:
        if _core.option("mpi") or os.environ.get("MPI4PY_LIBMPI"):
            raise
        return "", ""
    return f"{path_of(found)} ({found.why})", version_of(library)


def version_of(library: "_core.Mpi") -> str:
    """The library's own version text, on one line and without the spaces of a table."""
    return " ".join(library.version.split())
