"""Checks of ranks that share nodes and learn who is late (PACELINE_PREDICT=auto)."""

import hashlib
import re
import time

import numpy
from support import checks_in, run_checks

CALLS = 30
LATE_S = 0.05  # the message takes 42 ms by PACELINE_MACHINE
COUNT = 1 << 18  # of float32


def check_late_rank(comm):
    """All name the last rank's node in the same call, and the bits stay what they were."""
    last = comm.size - 1
    values = (1 / (3 + comm.rank) + 1e3 * (numpy.arange(COUNT) * 7 % 11)).astype("float32")
    named, bits, forms = [], set(), set()
    for _ in range(CALLS):
        x = values.copy()
        said = comm.explain("allreduce", x)
        named.append(re.search(rf"taken for late: (\d+, )*{last}\b", said) is not None)
        forms.add(said.split(",")[0].split(":")[0])
        if comm.rank == last:
            time.sleep(LATE_S)
        comm.allreduce(x)
        bits.add(hashlib.sha256(x.tobytes()).hexdigest())
    assert len(bits) == 1, "bits that follow who is late"
    assert forms == {"multilane", "multilane_tail_as_ring"}, forms
    digest = numpy.frombuffer(bytes.fromhex(bits.pop()), dtype=numpy.uint8)
    told = numpy.concatenate([numpy.array(named, dtype=numpy.uint8), digest])
    all_told = comm.allgather(told, numpy.empty(told.size * comm.size, dtype=numpy.uint8))
    assert all(numpy.array_equal(row, told) for row in all_told.reshape(comm.size, -1))
    assert sum(named) >= 2, named  # more if that paid, which is a matter of the machine


if __name__ == "__main__":
    import late_node_checks

    run_checks(checks_in(late_node_checks))
