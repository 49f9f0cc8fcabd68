"""The MPI that a benchmark compares with: its library, and the mpiexec that belongs to it."""

import os
import shutil
from pathlib import Path

from paceline import mpi
from paceline.errors import ResourceError
from paceline.launchers import OPENMPI

from paceline_bench.measure import peers

# More ranks than cores, as root, and unbound: the benchmark binds ranks by itself.
RELAXED = ("--oversubscribe", "--bind-to", "none")
# Debian's stand side by side in one folder, and there mpiexec alone may mean either.
NAMES = {OPENMPI: ("mpiexec.openmpi", "mpiexec"), "": ("mpiexec.mpich", "mpiexec")}


def mpi_of_host(collective, ranks, setting=peers.DEFAULT, more=()):
    """The MPI to compare with, as a dict: library, version, kind, setting, the words of its
    mpiexec, and the environment of its ranks.

    setting: a name of peers.settings(); more: words NAME=VALUE that win over it."""
    library, found = mpi.load()
    path, version = mpi.path_of(found), mpi.version_of(library)
    kind = peers.kind_of(version)
    chosen = {**peers.setting(kind, collective, setting), **peers.pairs(more)}
    return {"library": path, "version": version, "abi": library.abi, "kind": kind,
            "setting": setting, "set": chosen,
            "environment": {**peers.needed(kind, path, ranks), **chosen},
            "mpiexec": mpiexec_of(path, library.abi)}


def mpiexec_of(path, abi):
    """The launcher in the bin/ beside the library's lib/, else one of its names on the PATH."""
    names = NAMES.get(abi, NAMES[""])
    folders = [parent.parent / "bin" for parent in Path(path).parents if parent.name == "lib"]
    for name in names:
        for folder in folders[:1]:
            if os.access(folder / name, os.X_OK):
                return [str(folder / name), *flags(abi)]
    for name in names:
        if shutil.which(name):
            return [shutil.which(name), *flags(abi)]
    raise ResourceError(f"bench: no mpiexec was found for {path}; put its folder into the PATH.")


def flags(abi):
    """Options of mpiexec that let it start any number of ranks here."""
    if abi != OPENMPI:
        return []
    return [*RELAXED, "--allow-run-as-root"] if os.geteuid() == 0 else list(RELAXED)
