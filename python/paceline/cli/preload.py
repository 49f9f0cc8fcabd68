"""`paceline preload`: prints the path of the drop-in library for an MPI. In a source tree `./dev
build` builds it; an installed package compiles it at the first call for that MPI."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import click

from paceline.errors import ResourceError, UsageError

BUILT = Path(__file__).parents[3] / "build/preload"  # of a source tree; not in a wheel
LIBRARY = "libpaceline_mpi.so"
LIMIT_S = 60


def answer_of(mpicc):
    """Returns the output of `mpicc -show`: compiler and folders, which identify the MPI."""
    path = shutil.which(mpicc)
    if path is None:
        raise UsageError(
            f"preload: there is no program '{mpicc}'. Pass the path of the MPI's C compiler: "
            "paceline preload --mpicc PATH."
        )
    try:
        said = subprocess.run(
            [path, "-show"], capture_output=True, text=True, timeout=LIMIT_S, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(
            f"preload: '{path} -show' fails ({error}); the C compiler of an MPI "
            "prints its command there."
        ) from None
    return path, said.strip()


def library_for(mpicc):
    """The path of the library for this MPI; an installed package builds it if it has to."""
    path, said = answer_of(mpicc)
    for note in sorted(BUILT.glob("*/mpicc.txt")):
        library = note.with_name(LIBRARY)
        if note.read_text(encoding="utf-8").strip() == said and library.exists():
            return library
    from paceline.cli import preload_made

    if preload_made.CARRIED.exists():
        return preload_made.library(os.path.abspath(path), said)
    raise ResourceError(
        f"preload: no drop-in library has been built for the MPI of {os.path.abspath(path)}. In "
        f"Paceline's source tree run: ./dev build --mpicc {shlex.quote(os.path.abspath(path))}"
    )


@click.command("preload")
@click.option("--mpicc", default="mpicc", show_default=True, metavar="PATH",
              help="The C compiler of the MPI that the program runs under.")
def command(mpicc):
    """Print the path of the drop-in library for MPI programs.

    Under LD_PRELOAD the library serves the blocking, non-blocking and persistent collectives of an
    unchanged MPI program in C or Fortran. The MPI serves every other call.

    The first call for an MPI compiles the library, which takes up to a minute and g++ 12 or newer,
    and keeps it in ~/.cache/paceline. In a source tree `./dev build --mpicc PATH` compiles it.

    \b
    paceline preload --mpicc mpicc.mpich
    LD_PRELOAD=$(paceline preload) mpiexec -n 2 ./app
    PACELINE_PRELOAD=allreduce,barrier   serves these alone; none serves nothing
    PACELINE_PRELOAD_SUMMARY=on          prints a summary at MPI_Finalize
    """
    click.echo(library_for(mpicc))
    return 0
