"""Checks that ranks which disagree all hear of it: those that wait, and the others at their next
call. Each uses a communicator of its own, which is broken afterwards; the world is not."""

import numpy
from support import checks_in, run_checks

import paceline

FLOATS = numpy.ones(2000, "float32")


def disagree(comm, first, others, *words):
    """Rank 0 makes one call, the others another. Every rank must get an error with all `words`."""
    call = first if comm.rank == 0 else others
    try:
        call()
        comm.barrier()  # a rank that needed nobody hears of it now
        comm.barrier()
    except paceline.MismatchError as error:
        for word in (*words, "rank"):
            assert word in str(error), f"'{word}' is not in: {error}"
    else:
        raise AssertionError("no MismatchError")
    assert comm.broken
    try:
        comm.allreduce(numpy.ones(3))
    except paceline.MismatchError:
        return
    raise AssertionError("a broken communicator works again")


def check_counts(comm):
    disagree(
        comm,
        lambda: comm.allreduce(numpy.ones(1024)),
        lambda: comm.allreduce(numpy.ones(1023)),
        "count", "1024", "1023",
    )  # fmt: skip


def check_counts_of_large_messages(comm):
    disagree(
        comm,
        lambda: comm.allreduce(numpy.ones(1_000_000)),
        lambda: comm.allreduce(numpy.ones(999_999)),
        "count", "1000000", "999999",
    )  # fmt: skip


def check_types(comm):
    disagree(
        comm,
        lambda: comm.allreduce(numpy.ones(8, "float32")),
        lambda: comm.allreduce(numpy.ones(8, "int32")),
        "type", "float32", "int32",
    )  # fmt: skip


def check_operations(comm):
    disagree(
        comm,
        lambda: comm.allreduce(FLOATS.copy(), op="max"),
        lambda: comm.allreduce(FLOATS.copy(), op="min"),
        "operation", "max", "min",
    )  # fmt: skip


def check_roots(comm):
    disagree(
        comm,
        lambda: comm.broadcast(FLOATS.copy(), root=0),
        lambda: comm.broadcast(FLOATS.copy(), root=1),
        "root",
    )  # fmt: skip


def check_collectives(comm):
    disagree(
        comm,
        lambda: comm.allgather(numpy.ones(4)),
        lambda: comm.reduce_scatter(numpy.ones(4 * comm.size)),
        "collective", "allgather", "reduce_scatter",
    )  # fmt: skip


def check_algorithms(comm):
    disagree(
        comm,
        lambda: comm.allreduce(FLOATS.copy(), algorithm="ring"),
        lambda: comm.allreduce(FLOATS.copy(), algorithm="recursive_doubling"),
        "algorithm",
    )  # fmt: skip


def check_radix(comm):
    disagree(
        comm,
        lambda: comm.allreduce(FLOATS.copy(), algorithm="circulant", radix=2),
        lambda: comm.allreduce(FLOATS.copy(), algorithm="circulant", radix=3),
        "algorithm", "radix",
    )  # fmt: skip


def check_blocks(comm):
    disagree(
        comm,
        lambda: comm.broadcast(FLOATS.copy(), algorithm="circulant", blocks=4),
        lambda: comm.broadcast(FLOATS.copy(), algorithm="circulant", blocks=5),
        "algorithm", "blocks",
    )  # fmt: skip


def check_order(comm):
    disagree(
        comm,
        lambda: (comm.barrier(), comm.allreduce(FLOATS.copy())),
        lambda: (comm.allreduce(FLOATS.copy()), comm.barrier()),
        "barrier", "allreduce",
    )  # fmt: skip


def check_uneven_counts(comm):
    p, me = comm.size, comm.rank
    disagree(
        comm,
        lambda: comm.allgather(numpy.ones(3), counts=[3] * p),
        lambda: comm.allgather(numpy.ones(4), counts=[4 if r == me else 3 for r in range(p)]),
        "count",
    )  # fmt: skip


def check_pieces_of_alltoall(comm):
    p = comm.size
    disagree(
        comm,
        lambda: comm.alltoallv(numpy.ones(2 * p), [2] * p, [2] * p),
        lambda: comm.alltoallv(numpy.ones(3 * p), [3] * p, [3] * p),
        "count",
    )  # fmt: skip


def check_not_waiting(comm):
    """A started request fails like a call; on a rank that comes late the start fails already."""
    try:
        call = comm.iallreduce(numpy.ones(7 if comm.rank else 8))
        while not call.test():
            pass
        comm.barrier()
    except paceline.MismatchError:
        pass
    else:
        raise AssertionError("no MismatchError")


if __name__ == "__main__":
    import mismatch_checks

    run_checks(checks_in(mismatch_checks))
