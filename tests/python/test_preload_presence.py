"""The drop-in library where it cannot serve: on some ranks only, of another version on one of
them, in a program that is linked statically. One line says so, and the program runs as it does
without."""

import os
import shutil
import signal
import subprocess
from importlib.metadata import version

import launched
import pytest
from length import each
from test_preload import LIMIT_S, built, compiled, mpi_of, mpicc_of, served

pytestmark = pytest.mark.ranks
LINE = "not loaded Paceline's library; all calls pass through to the host MPI"


def started(mpi, *parts):
    """Status and output of a program whose parts have other libraries: (ranks, library or None)."""
    program = compiled(mpicc_of(mpi), "manners")
    command = list(mpi.mpiexec)
    for ranks, library in parts:
        preload = ["env", f"LD_PRELOAD={library}"] if library else []
        command += [*[":"] * (len(command) > len(mpi.mpiexec)), "-n", str(ranks), *preload, program,
                    "progress"]  # fmt: skip
    env = {**os.environ, **launched.limits(), "PACELINE_PRELOAD_SUMMARY": "on",
           "PACELINE_START_TIMEOUT_MS": "3000" if all(library for _, library in parts) else "500",
           }  # fmt: skip
    done = subprocess.run(list(map(str, command)), env=env, text=True, timeout=LIMIT_S,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)  # fmt: skip
    return done.returncode, done.stdout


@each("name", ["mpich5", "openmpi4"], ["mpich4", "openmpi5"])
def test_ranks_that_lack_it_are_named(name):
    mpi = mpi_of(name)
    library = built(mpicc_of(mpi))
    status, said = started(mpi, (1, library), (2, None))
    assert status == 0 and said.count("progress ok") == 3, said
    assert said.count(LINE) == 1 and "ranks 1, 2 of 3 have not loaded" in said, said
    assert served(said) == {"Allreduce": (0, 4)}, said
    status, said = started(mpi, (1, None), (1, library))
    assert status == 0 and said.count("progress ok") == 2, said
    assert said.count(LINE) == 1 and "rank 0 of 2 has not loaded" in said, said
    status, said = started(mpi, (1, library), (1, library))
    assert status == 0 and LINE not in said and served(said) == {"Allreduce": (4, 0)}, said


def test_another_version_on_one_rank_is_named(tmp_path):
    mpi = mpi_of("mpich5")
    library = built(mpicc_of(mpi))
    other = shutil.copytree(library.parent, tmp_path / "other") / library.name
    calls = other.with_name("libpaceline_mpi_calls.so")
    code, mine = calls.read_bytes(), version("paceline")[:4]
    assert code.count(mine.encode()) == 1, "compilers write short texts into the code"
    calls.write_bytes(code.replace(mine.encode(), b"7.7."))
    status, said = started(mpi, (1, library), (1, other))
    assert status == 0 and said.count("progress ok") == 2, said
    assert "7.7." in said and mine in said and "are the host MPI's" in said, said
    assert served(said) == {"Allreduce": (0, 4)}, said


def test_a_static_program_is_named(tmp_path):
    mpi = mpi_of("mpich5")
    source, program = tmp_path / "nothing.c", tmp_path / "nothing"
    source.write_text("int main(void) { return 0; }\n")
    made = subprocess.run(["gcc", "-static", source, "-o", program], capture_output=True)
    if made.returncode != 0:
        pytest.skip("no static libc")
    env = {**os.environ, "LD_PRELOAD": str(built(mpicc_of(mpi)))}
    for command, times in ((mpi.command(2, program), 1), (mpi.command(2, "/bin/true"), 0)):
        # One in 300 launches of MPICH's mpiexec of a program without MPI ends so, also without us.
        for _ in range(3):
            done = subprocess.run(command, env=env, capture_output=True, text=True,
                                  timeout=LIMIT_S)
            if done.returncode != -signal.SIGPIPE:
                break
        assert done.returncode == 0
        assert done.stderr.count(f"{program} is linked statically") == times, done.stderr
