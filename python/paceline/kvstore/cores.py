"""Counts the cores of a node and the threads of its ranks, to see if a core is left for sums."""

import os
import sys
from dataclasses import dataclass

import numpy

from paceline.communicator import Communicator

_PROCESSORS = 4096  # whose numbers are told


@dataclass(frozen=True)
class Cores:
    """Cores and threads of the node that all ranks share."""

    count: int  # on which any rank may run
    threads: int  # of all ranks, that compute

    @property
    def are_full(self) -> bool:
        """True if computing uses all cores, so that sums take time from it."""
        return self.threads >= self.count

    @classmethod
    def of(cls, comm: Communicator) -> "Cores | None":
        """Collective; equal on all ranks. None for ranks on several nodes, and for one rank
        alone."""
        if comm.size == 1 or comm._core.nodes > 1:
            return None
        mine = numpy.zeros(_PROCESSORS, "uint8")
        mine[[number % _PROCESSORS for number in os.sched_getaffinity(0)]] = 1
        threads = numpy.array([_threads()], "int32")
        comm.allreduce(mine, op="max", tag="the cores of auto")
        comm.allreduce(threads, tag="the threads of auto")
        return cls(int(mine.sum()), int(threads[0]))


def _threads() -> int:
    """Number of threads that compute on this rank: torch's, or the calling one alone."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch is not None else 1
