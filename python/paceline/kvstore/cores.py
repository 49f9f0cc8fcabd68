"""Whether the ranks of a node leave a core on which sums could overlap computing."""

import os
import sys
from dataclasses import dataclass

import numpy

from paceline.communicator import Communicator

_PROCESSORS = 4096  # whose numbers are told


@dataclass(frozen=True)
class Cores:
    """Of the node that all ranks share."""

    count: int  # that any of them may run on
    threads: int  # that compute, of all of them

    @property
    def are_full(self) -> bool:
        """Then what sums takes its time from what computes."""
        return self.threads >= self.count

    @classmethod
    def of(cls, comm: Communicator) -> "Cores | None":
        """Collective; equal on all ranks. None: they are on several nodes, or there is only one."""
        if comm.size == 1 or comm._core.nodes > 1:
            return None
        mine = numpy.zeros(_PROCESSORS, "uint8")
        mine[[number % _PROCESSORS for number in os.sched_getaffinity(0)]] = 1
        threads = numpy.array([_threads()], "int32")
        comm.allreduce(mine, op="max", tag="the cores of auto")
        comm.allreduce(threads, tag="the threads of auto")
        return cls(int(mine.sum()), int(threads[0]))


def _threads() -> int:
    """That compute on this rank: torch's, or the one that calls."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch is not None else 1
