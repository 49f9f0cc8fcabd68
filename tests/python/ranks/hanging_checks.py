"""A check that never ends, between two that do: what run_checks makes of it."""

import time

import numpy
import support


def check_before(comm):
    assert comm.allreduce(numpy.ones(3))[0] == comm.size


def check_hangs(comm):
    """The last rank computes for ever; the others wait for it."""
    if comm.rank == comm.size - 1:
        time.sleep(1000)
    comm.allreduce(numpy.ones(3))


def check_after(comm):
    assert comm.allreduce(numpy.ones(3))[0] == comm.size


if __name__ == "__main__":
    support.run_checks(support.checks_in(__import__("__main__")))
