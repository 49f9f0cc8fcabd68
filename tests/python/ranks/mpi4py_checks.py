"""Checks of programs that use mpi4py and us: one MPI in the process, whoever came first."""

import os
import sys

FIRST = os.environ.get("FIRST")   # the test itself reads this file for the names below
if FIRST == "mpi4py":
    from mpi4py import MPI
import numpy  # noqa: E402
from support import checks_in, data, raises, run_checks, same  # noqa: E402

import paceline  # noqa: E402
from paceline import mpi  # noqa: E402

if FIRST == "paceline":
    paceline.init()
    from mpi4py import MPI


def total(ranks, count=9):
    return sum(data(r, count) for r in ranks)


def check_one_mpi(comm):
    library, _ = mpi.load()
    assert library.is_initialized and not library.is_finalized
    assert library.version.strip() in " ".join(MPI.Get_library_version().split("\0")), (
        library.version, MPI.Get_library_version())
    assert MPI.COMM_WORLD.size == comm.size and MPI.COMM_WORLD.rank == comm.rank


def check_world(comm):
    theirs = MPI.COMM_WORLD
    ours = paceline.Communicator(theirs)
    assert (ours.rank, ours.size) == (theirs.rank, theirs.size)
    same(ours.allreduce(data(ours.rank, 9)), total(range(ours.size)))


def check_split(comm):
    """Ranks in reverse order, and one left out."""
    world = MPI.COMM_WORLD
    theirs = world.Split(0 if world.rank else MPI.UNDEFINED, -world.rank)
    if theirs == MPI.COMM_NULL:
        raises(paceline.UsageError, "is null", lambda: paceline.Communicator(theirs))
        return
    ours = paceline.Communicator(theirs)
    assert (ours.rank, ours.size) == (theirs.rank, theirs.size)
    assert ours.rank == world.size - 1 - world.rank
    out = ours.allgather(data(world.rank, 3))
    same(out, numpy.concatenate([data(r, 3) for r in reversed(range(1, world.size))]))
    theirs.Free()
    same(ours.allreduce(data(world.rank, 9)), total(range(1, world.size)), "theirs is freed")


def check_self(comm):
    alone = paceline.Communicator(MPI.COMM_SELF)
    assert (alone.rank, alone.size) == (0, 1)
    same(alone.allreduce(data(3, 5)), data(3, 5))


def check_mixed_calls(comm):
    """Their messages and ours, under way at the same time."""
    world, ours = MPI.COMM_WORLD, paceline.Communicator(MPI.COMM_WORLD)
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for turn in range(20):
        x = data(world.rank, 4000) + turn
        request = ours.iallreduce(x)
        out = numpy.empty(50)
        theirs = [world.Isend(data(world.rank, 50) + turn, right), world.Irecv(out, left)]
        other = numpy.empty(4000)
        world.Allreduce(data(world.rank, 4000) + turn, other)
        MPI.Request.Waitall(theirs)
        request.wait()
        same(x, other, turn)
        same(out, data(left, 50) + turn)


def check_what_is_no_communicator(comm):
    raises(paceline.UsageError, "is no communicator", lambda: paceline.Communicator("world"))
    world = MPI.COMM_WORLD
    if world.size == 1:
        return
    half = world.Split(world.rank == 0, 0)
    between = half.Create_intercomm(0, world, 0 if world.rank else 1)
    raises(paceline.UsageError, "between groups", lambda: paceline.Communicator(between))
    between.Free()


if __name__ == "__main__":
    import mpi4py_checks

    run_checks(checks_in(mpi4py_checks))
    sys.stdout.write(f"finalized {MPI.Is_finalized()}\n")
