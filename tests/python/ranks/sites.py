"""Ranks that come to differ at lines that are marked; each prints the error, and after how long."""

import sys
import time

import numpy

import paceline


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
        time.sleep(2)
        told(comm.barrier)
        return
    told(lambda: comm.allreduce(numpy.ones(50), timeout_ms=500))  # line: waits


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


if __name__ == "__main__":
    globals()[sys.argv[1]](paceline.init())
