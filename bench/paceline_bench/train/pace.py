"""Ranks that do not compute equally fast: some are slow, and all of them vary from step to step."""

import random
import re
from dataclasses import dataclass, replace

from paceline.errors import UsageError

HOW = "write the ranks and how many times as long they compute, such as 3:1.2 or 2,5:1.5"
MOST = 1000


@dataclass(frozen=True)
class Pace:
    """`slow`: {rank: factor of its computing time}; `jitter`: largest share of a step's computing
    by which each rank takes longer, drawn for each step."""

    slow: tuple = ()
    jitter: float = 0.0

    def factor(self, rank, number):
        """Factor of a step's computing. Equal wherever it is computed, whatever the step does."""
        drawn = random.Random(f"{rank} {number}").random() if self.jitter else 0.0
        return dict(self.slow).get(rank, 1.0) * (1 + self.jitter * drawn)

    @property
    def slowest(self):
        """The largest factor of all ranks, without jitter."""
        return max([1.0, *(factor for _, factor in self.slow)])


def parse(words, jitter, ranks):
    """The Pace of --slow and --jitter. Raises UsageError that shows their form."""
    slow = ()
    if words:
        found = re.fullmatch(r"(\d+(?:,\d+)*):(\d+(?:\.\d+)?)", words)
        factor = float(found[2]) if found else 0.0
        if not 1 <= factor <= MOST:
            raise UsageError(f"train: replay: --slow is '{words}'; {HOW}.")
        named = sorted({int(rank) for rank in found[1].split(",")})
        if named[-1] >= ranks:
            raise UsageError(f"train: replay: --slow {words} names rank {named[-1]}; with {ranks} "
                             f"ranks they are 0 to {ranks - 1}.")
        slow = tuple((rank, factor) for rank in named)
    return Pace(slow, jitter)


def slowed(step, factor):
    """A perfect.Step whose computing takes so many times as long."""
    return replace(step, needed_s=tuple(factor * at for at in step.needed_s),
                   ready_s=tuple(factor * at for at in step.ready_s),
                   forward_s=factor * step.forward_s, backward_s=factor * step.backward_s)
