"""Ranks that come to differ at lines that are marked; each prints the error, and after how long."""

import os
import sys
import time

import numpy
from notes import await_notes, note

import paceline
from paceline import call_site


def told(call):
    begin = time.monotonic()
    try:
        call()
    except paceline.Error as error:
        print(f"{type(error).__name__} {time.monotonic() - begin:.2f} {error}")


def differ(comm):
    """Two lines of the program, two collectives."""
    def step():
        if comm.rank == 0:
            comm.allreduce(numpy.ones(5))  # line: first
        else:
            comm.broadcast(numpy.ones(5))  # line: second
        comm.barrier()  # line: after
    comm.barrier()
    told(step)
    print("again", comm.broken)


def counts(comm):
    """One line, other arguments, as requests; in a part of the world, and without shared stages."""
    part = comm.split(0, -comm.rank)

    def step():
        request = part.iallreduce(numpy.ones(5 + part.rank), algorithm="ring")
        request.wait()  # line: wait
    told(step)


def late(comm):
    """Rank 1 computes; who waits says where, and does not wait long for rank 1 to say it."""
    comm.barrier()
    if comm.rank == 1:
        await_notes(rank for rank in range(comm.size) if rank != 1)
        told(comm.barrier)
        return
    told(lambda: comm.allreduce(numpy.ones(50), timeout_ms=500))  # line: waits
    note(comm)


def of_torch(comm):
    """The line of the program, not one of torch or of the backend."""
    import torch
    import torch.distributed as dist

    paceline.finalize()
    dist.init_process_group("paceline")

    def step():
        tensor = torch.ones(5 + dist.get_rank())
        dist.all_reduce(tensor)  # line: torch
    told(step)


def ancestor(generations):
    """The line of the frame so far out; of the outermost one where there are fewer."""
    frame = sys._getframe(2)
    while frame.f_back and generations > 0:
        frame, generations = frame.f_back, generations - 1
    return call_site._line(frame)


# Answers that are wrong, each of which the test must notice: MUTANT names one.
MUTANTS = {
    "nowhere": lambda: "",
    "outermost": lambda: ancestor(1000),
    "inside": lambda: f"{paceline.communicator.__file__}:1 in allreduce",
    "neighbour": lambda: right().replace(" in step", " in told"),
}
right = call_site.here

if __name__ == "__main__":
    call_site.here = MUTANTS.get(os.environ.get("MUTANT"), right)
    globals()[sys.argv[1]](paceline.init())
