"""Meeting place of a benchmark's ranks before each call: no rank is measured by being early.

A file in memory that all ranks map: a _native.StartLine, and a vote by rank. Times are nanoseconds
of CLOCK_MONOTONIC, which the processes of one machine share.
"""

import ctypes
import mmap
import os
import time

import numpy as np

from paceline_bench import _native

WORD = 8
VOTES = 63  # in a word with a sign
SPIN_NS = 150_000  # the last stretch: a core that has just been asleep starts late and cold
PR_SET_TIMERSLACK = 29
SETTLE_S, SETTLE_STEP_S = 120, 200e-6


class Meeting:
    """One rank's side: call start() for the agreed moment, barrier() to wait for all ranks."""

    def __init__(self, path, rank, ranks):
        self.rank, self.ranks = rank, ranks
        self.oversubscribed = ranks > len(os.sched_getaffinity(0))
        file = os.open(path, os.O_RDWR)
        try:
            whole = np.frombuffer(mmap.mmap(file, size_of(ranks)), dtype=np.uint8)
        finally:
            os.close(file)
        # By default the system may let a sleep last 50 us longer than asked for.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0)
        line, words = np.split(whole, [_native.StartLine.bytes_for(ranks)])
        self.line = _native.StartLine(line, rank, ranks, self.oversubscribed)
        self.votes, self.settled = np.split(words.view(np.int64), 2)

    def barrier(self):
        """Returns once every rank has called it as often as this one. Raises TimeoutError."""
        self.line.barrier()

    def settle(self, wake_peers):
        """The same, calling wake_peers() meanwhile: an MPI may have yet to send."""
        self.settled[self.rank] += 1
        deadline = time.monotonic() + SETTLE_S
        while self.settled.min() < self.settled[self.rank]:
            wake_peers()
            time.sleep(SETTLE_STEP_S)
            if time.monotonic() > deadline:
                raise TimeoutError(f"bench: rank {self.settled.argmin()} of {self.ranks} has not "
                                   f"come back from a call for {SETTLE_S} s")

    def start(self):
        """Waits for all ranks and then for one moment that they agree on; returns it (ns)."""
        return self.line.start()

    def agreed(self, mine):
        """The keys of `mine` (a dict of bools, equal keys on all ranks) that are False anywhere.

        A rank's vote holds 63 at a time."""
        keys = list(mine)
        if len(keys) > VOTES:
            rest = self.agreed({key: mine[key] for key in keys[VOTES:]})
            return self.agreed({key: mine[key] for key in keys[:VOTES]}) + rest
        votes = 0
        for place, yes in enumerate(mine.values()):
            votes |= (not yes) << place
        self.votes[self.rank] = votes
        self.barrier()
        against = int(np.bitwise_or.reduce(self.votes))
        self.barrier()  # the votes stay until all ranks have counted them
        return [key for place, key in enumerate(mine) if against >> place & 1]


def wait_until(moment_ns, spin):
    """Sleeps most of the way; spins for the rest if a core can be spared."""
    left = moment_ns - time.monotonic_ns() - SPIN_NS
    if left > 0 or not spin:
        time.sleep(max(0, left + (0 if spin else SPIN_NS)) / 1e9)
    while spin and time.monotonic_ns() < moment_ns:
        pass


def size_of(ranks):
    """Bytes of the file."""
    return _native.StartLine.bytes_for(ranks) + 2 * ranks * WORD


def make_room(path, ranks):
    """Creates the file; the launching process does it before any rank starts."""
    with open(path, "wb") as file:
        file.write(bytes(size_of(ranks)))
