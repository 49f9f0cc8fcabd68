"""Checks of ranks that share nodes and were told who comes late (PACELINE_PREDICT=static:…)."""

import os

import numpy
from support import checks_in, run_checks

COUNT = 1 << 18  # of float32: beyond it the tail pays, by PACELINE_MACHINE


def check_named_late_rank(comm):
    """The form that goes with it from the first call on, and right sums of any length."""
    x = numpy.zeros(COUNT, dtype="float32")
    said = comm.explain("allreduce", x)
    assert said.split(",")[0].split(":")[0] == os.environ["WANTED"], said
    for count in (0, 1, comm.size - 1, 1001, COUNT):
        of = [numpy.arange(count) % 1009 + 10 * rank for rank in range(comm.size)]
        x = of[comm.rank].astype("float32")
        comm.allreduce(x)
        assert numpy.array_equal(x, sum(of)), count


if __name__ == "__main__":
    import named_late_node_checks

    run_checks(checks_in(named_late_node_checks))
