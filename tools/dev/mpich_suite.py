"""MPICH's own tests of collectives as programs of each MPI, for long tests: `./dev mpi`.

Debian has the source, and its apt-get checks the signature; tests/mpich/CMakeLists.txt compiles.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

from dev.process import ROOT, VENV, Failed, cores, environment, run

VERSION = "4.0.2"
PACKAGE = f"mpich={VERSION}-3"
SOURCES = "http://deb.debian.org/debian bookworm main"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
FOLDER = ROOT / "build/mpich-tests"
SUITE = FOLDER / f"mpich-{VERSION}/test/mpi"


def ensure(compilers):
    """Builds the programs; compilers: C compiler by the MPI's name."""
    if not SUITE.exists():
        fetch()
    for name, mpicc in compilers.items():
        build(name, mpicc)


def fetch():
    """Unpacks the tests of MPICH's source; whole or not at all."""
    if not shutil.which("apt-get") or not Path(KEYS).exists():
        raise Failed("their source comes by Debian's apt-get")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        (Path(folder) / "lists/partial").mkdir(parents=True)
        listed = Path(folder) / "sources.list"
        listed.write_text(f"deb-src [signed-by={KEYS}] {SOURCES}\n")
        settings = {"Dir::Etc::sourcelist": listed, "Dir::Etc::sourceparts": "-",
                    "Dir::State::lists": f"{folder}/lists", "Dir::Cache": folder}  # fmt: skip
        apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
        run([*apt, "update"], timeout_s=300)
        run(["sh", "-c", 'cd "$0" && exec "$@"', folder, *apt, "source", "--download-only",
             PACKAGE], timeout_s=300)  # fmt: skip
        run(["tar", "-C", folder, "-xf", f"{folder}/mpich_{VERSION}.orig.tar.xz",
             f"mpich-{VERSION}/test/mpi"], timeout_s=120)  # fmt: skip
        mend(Path(folder, f"mpich-{VERSION}/test/mpi/coll"))
        Path(folder, f"mpich-{VERSION}").rename(FOLDER / f"mpich-{VERSION}")


def mend(folder):
    """Makes two programs keep datatypes as such: they take them for int, as MPICH's are."""
    for path in (folder / "nonblocking2.c", folder / "nonblocking3.c"):
        path.write_text(re.sub(r"\bint (\*(send|recv)types)", r"MPI_Datatype \1", path.read_text()))


def build(name, mpicc):
    """Brings the programs of one MPI up to date: build/mpich-tests/<name>/bin."""
    cmake = VENV / "bin/cmake"
    path = os.path.abspath(shutil.which(mpicc))  # Open MPI's look at the name they are called
    run([cmake, "-G", "Ninja", "-S", ROOT / "tests/mpich", "-B", FOLDER / name,
         f"-DCMAKE_C_COMPILER={path}", f"-DSUITE={SUITE}"], timeout_s=300,
        env=environment(), bar="configuring")  # fmt: skip
    run([cmake, "--build", FOLDER / name, "-j", cores()], timeout_s=1200, env=environment(),
        bar="compiling")  # fmt: skip
