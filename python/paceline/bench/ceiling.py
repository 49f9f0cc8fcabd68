"""What no library can beat inside one node: the time to touch each byte as often as one must.

The ceiling of an allreduce of n bytes on p ranks: every rank adds one p-th of the vectors straight
from where they lie (p reads and one write of it), then copies the other results (a read and a
write). With p = 2 that is T = 3n/add + 2n/copy, where `add` and `copy` are the bytes that all ranks
together read and write per second in the same run, on arrays as long as the message.
"""

import time

import numpy as np

# Below this a call costs more than its bytes, and a fraction of the ceiling says nothing.
LEAST_BYTES = 4096
SHORTEST_S = 0.002  # of a measurement: long enough for the clock, short enough to be repeated
REPEATS = 5


def touched(collective, ranks):
    """(bytes added, bytes copied) over all ranks, as multiples of the full message."""
    p = ranks
    return {
        "allreduce": (p + 1, 2 * (p - 1)),
        "reduce": (p + 1, 0),
        "reduce_scatter": (p + 1, 0),
        "broadcast": (0, 2 * (p - 1)),
        "allgather": (0, 2 * p),
        "alltoall": (0, 2 * p),
        "gather": (0, 2),
        "scatter": (0, 2),
        "barrier": (0, 0),
    }[collective]


def seconds(collective, ranks, nbytes, rates):
    """The ceiling as a time; None where it says nothing. `rates` is (add, copy) in bytes/s."""
    added, copied = touched(collective, ranks)
    if nbytes < LEAST_BYTES or added + copied == 0 or ranks == 1 or rates is None:
        return None
    return added * nbytes / rates[0] + copied * nbytes / rates[1]


def rates(nbytes, meeting):
    """This rank's (add, copy) rates in bytes/s while all ranks do the same; to be summed up."""
    count = max(1, nbytes // 4)
    a, b, out = (np.ones(count, dtype=np.float32) for _ in range(3))
    add = rate(lambda: np.add(a, b, out=out), 12 * count, meeting)
    return add, rate(lambda: np.copyto(out, a), 8 * count, meeting)


def rate(action, nbytes, meeting):
    """Bytes per second of `action`, which touches `nbytes`: the median of a few measurements."""
    action()
    begin = time.perf_counter()
    action()
    # Every rank takes its own number of turns: what counts is that all work during the measurement.
    turns = max(1, int(SHORTEST_S / max(time.perf_counter() - begin, 1e-7)))
    found = []
    for _ in range(REPEATS):
        meeting.barrier()
        begin = time.perf_counter()
        for _ in range(turns):
            action()
        found.append(turns * nbytes / (time.perf_counter() - begin))
    return float(np.median(found))
