"""MPICH's own tests of collectives over every MPI, under the drop-in library. They know nothing of
this project."""

import mpis
import pytest
from length import each, in_long
from test_preload import built, mpi_of, mpicc_of, run, served

pytestmark = pytest.mark.ranks

# Their source is Debian's: ./dev mpi puts it there, and makes programs of it for each MPI.
FOLDER = mpis.ROOT / "build/mpich-tests"
LIST = FOLDER / "mpich-4.0.2/test/mpi/coll/testlist.in"
# MPICH's scripts would put tests for many datatypes into a list of its own. These are three:
MORE = ("bcast 4 arg=-type=MPI_INT:4+MPI_DOUBLE:8 arg=-count=512 arg=-seed=4 arg=-testsize=4",
        "bcast_comm_world_only 10 arg=-type=MPI_INT arg=-count=1 arg=-seed=9 arg=-testsize=16",
        "uoplong_large 4")  # fmt: skip
MANY = 10  # ranks are left out, and the programs that take minutes with fewer:
SLOW = {("nonblocking3", "5"), ("nonblocking3", "10")}
FEW = ("allred6 4", "icbcast 4", "scatterv 4")
PARTS = 6
# Calls of the drop-in library begin with the third on a communicator; most programs make no three.
SETTLED, AS_THEY_ARE = "3", "0"  # barriers on each communicator that they make
HOSTS = ("openmpi5", "openmpi4", "mpich5", "mpich4")
HOST_FAILS = {("mpich5", "oplxor"): "MPICH 5 has no MPI_LXOR of floats, and MPI defines none"}


def of_list(lines):
    """(program, ranks, arguments) of lines like theirs."""
    rows = [line.split() for line in lines if line and line[0] not in "#@"]
    return [(name, ranks, [word.removeprefix("arg=") for word in more if word.startswith("arg=")])
            for name, ranks, *more in rows
            if int(ranks) <= MANY and (name, ranks) not in SLOW]  # fmt: skip


def expect_no_errors(name, barriers, rows):
    """Runs the programs one after another; fails naming all that found errors."""
    mpi = mpi_of(name)
    library = built(mpicc_of(mpi))
    ours, found = 0, []
    for program, ranks, arguments in rows:
        path = FOLDER / name / "bin" / program
        if not path.exists() or (name, program) in HOST_FAILS:  # not every MPI has every call
            continue
        status, said = run(mpi, int(ranks), library, path, *arguments, BARRIERS=barriers)
        if status or " No Errors" not in said or "pass through to the host MPI" in said:
            found.append(f"{program} {ranks} {' '.join(arguments)}: status {status}\n{said}")
        ours += sum(count for count, _ in served(said).values())
    assert not found, "\n".join(found)
    assert ours > 0, "nothing was served"


def lines():
    """The lines of their list; skips the test where there is none."""
    if not LIST.exists():
        pytest.skip("mpich-tests is not installed (./dev mpi)")
    return [*LIST.read_text().splitlines(), *MORE]


@each("name", ["openmpi4", "mpich5"], ["openmpi5", "mpich4"])
def test_few(name):
    assert set(FEW) <= set(lines())
    expect_no_errors(name, SETTLED, of_list(FEW))


@in_long
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name, barriers", [
    *((name, SETTLED) for name in HOSTS), ("openmpi5", AS_THEY_ARE), ("mpich4", AS_THEY_ARE),
])  # fmt: skip
def test_part(name, barriers, part):
    expect_no_errors(name, barriers, of_list(lines())[part::PARTS])
