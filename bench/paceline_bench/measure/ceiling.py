"""A bound for all libraries inside one node: the time to touch each byte as often as one must.

The ceiling of an allreduce of n bytes on p ranks: every rank adds one p-th of the vectors straight
from where they lie (p reads and one write of it), then copies the other results (a read and a
write). With p = 2 that is T = 3n/add + 2n/copy, where `add` and `copy` are the bytes that all ranks
together read and write per second in the same run, on arrays as long as the message.
"""

import numpy as np
from paceline import _core

from paceline_bench import _native

# Below this a call costs more than its bytes, and a fraction of the ceiling says nothing.
LEAST_BYTES = 4096
LARGEST_BYTES = 64 << 20  # of an array that a rate is measured on: longer ones are no slower


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
    """The ceiling as a time; None if there is none. `rates` is (add, copy) in bytes/s."""
    added, copied = touched(collective, ranks)
    if nbytes < LEAST_BYTES or added + copied == 0 or ranks == 1 or rates is None:
        return None
    return added * nbytes / rates[0] + copied * nbytes / rates[1]


def rates(nbytes, meeting):
    """This rank's [add, copy] rates in bytes/s while all ranks do the same; to be summed up.

    On arrays of `nbytes`, at most LARGEST_BYTES; None if there is no ceiling."""
    if nbytes < LEAST_BYTES:
        return None
    a, b, c = np.ones((3, max(1, min(nbytes, LARGEST_BYTES) // 4)), np.float32)
    add, copy = (_core.native_combine(c, some, "sum") for some in ([a, b], [a]))
    return [_native.rate(meeting.line, 3 * c.nbytes, add),
            _native.rate(meeting.line, 2 * c.nbytes, copy)]
