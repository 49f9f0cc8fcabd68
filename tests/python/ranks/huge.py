"""Arrays of 4.5 GiB: counts above 2^32, and pieces of one rank above 2^31.

    huge.py numpy|torch     2 ranks; torch: a tensor, and torch.distributed in front of it

Each rank has this array alone and works in place; what stands in it is compared by chunks, all of
it, edges first.
"""

import sys

import numpy

import paceline

PIECE = (1 << 31) + (1 << 28) + 3  # so that of 7 segments the last begins above 2^32
COUNT = 2 * PIECE  # bytes
PRIME = 61  # divides no power of 2: what lies such a power too far away differs
CHUNK = 16 << 20
EDGES = (0, (1 << 31) - 8, PIECE - 8, (1 << 32) - 8, COUNT - 16)
TILE = (numpy.arange(CHUNK + PRIME) % PRIME).astype("uint8")


def pattern(first, count, rank):
    """Values of a rank from place `first` on, below 61; `count` at most CHUNK."""
    at = (first + 17 * rank) % PRIME
    return TILE[at : at + count]


def chunks(first, count):
    return ((at, min(CHUNK, first + count - at)) for at in range(first, first + count, CHUNK))


def fill(x, rank, first=0, count=COUNT):
    for at, n in chunks(first, count):
        x[at : at + n] = pattern(at, n, rank)


def compare(x, expected):
    """expected(first, count): what stands there; within pieces, since it may jump between them."""
    for at in EDGES:
        for first, n in ((at, 16), (max(0, at - 64), 16)):
            if first // PIECE == (first + n - 1) // PIECE:
                equal(x, first, n, expected)
    for piece in (0, PIECE):
        for at, n in chunks(piece, PIECE):
            equal(x, at, n, expected)


def equal(x, first, n, expected):
    wrong = numpy.nonzero(x[first : first + n] != expected(first, n))[0]
    assert not len(wrong), (
        f"{len(wrong)} of {n} from {first} on, first {first + wrong[0]}: {x[first + wrong[0]]}")


def moved(source, to):
    """What rank `source` had, now in its piece, where it was meant for rank `to`."""
    return lambda first, n: pattern(first % PIECE + PIECE * to, n, source)


def check(name, call, x, rank, expected):
    fill(x, rank)
    call()
    compare(x, expected)
    if rank == 0:  # if the other finds fault, the run fails
        print(f"{name}: right", flush=True)


def calls_of(comm, x):
    own = x[PIECE * comm.rank : PIECE * (comm.rank + 1)]
    return {
        "allreduce": lambda: comm.allreduce(x),
        "pipelined allreduce": lambda: comm.allreduce(x, segments=7),
        "broadcast": lambda: comm.broadcast(x, 1),
        "allgather": lambda: comm.allgather(own, x),
        "alltoall": lambda: comm.alltoall(x, x),
    }


def calls_of_torch(t, rank):
    import torch.distributed as dist

    own = t[PIECE * rank : PIECE * (rank + 1)]
    return {
        "torch allreduce": lambda: dist.all_reduce(t),
        "torch broadcast": lambda: dist.broadcast(t, 1),
        "torch allgather": lambda: dist.all_gather_into_tensor(t, own),
    }


def expected_of(rank):
    return {
        "allreduce": lambda first, n: pattern(first, n, 0) + pattern(first, n, 1),
        "broadcast": lambda first, n: pattern(first, n, 1),
        "allgather": lambda first, n: pattern(first, n, first // PIECE),
        "alltoall": lambda first, n: moved(first // PIECE, rank)(first, n),
    }


def main(library):
    comm = paceline.init()
    x = numpy.empty(COUNT, "uint8")
    calls = calls_of(comm, x)
    if library == "torch":
        import torch
        import torch.distributed as dist

        dist.init_process_group("paceline")
        tensor = torch.from_numpy(x)
        calls = {"allreduce": lambda: comm.allreduce(tensor), **calls_of_torch(tensor, comm.rank)}
    for name, call in calls.items():
        check(name, call, x, comm.rank, expected_of(comm.rank)[name.split()[-1]])
    if library == "torch":
        dist.destroy_process_group()


main(sys.argv[1])
