"""Where the ranks of a benchmark meet before each call, so that nobody is measured by being early.

A file in memory that all ranks map; no collective of any library is involved, so none of them is
warmed up or favoured by it. Times are nanoseconds of CLOCK_MONOTONIC, which the processes of one
machine share.
"""

import ctypes
import mmap
import os
import time

import numpy as np

WORD = 8
LIMIT_S = 300  # a rank that is missing so long has died; the launcher says how
SETTLED_NS = 200_000  # from the agreement to the start: long enough for everybody to have read it
CROWDED_NS = 3_000_000  # likewise where ranks outnumber cores and take turns
SPIN_NS = 150_000  # the last stretch: a core that has just been asleep starts late and cold
LOOK_S = 20e-6  # between two looks at the others
PR_SET_TIMERSLACK = 29


class Meeting:
    """One rank's seat: call start() for the agreed moment, barrier() to wait for everybody."""

    def __init__(self, path, rank, ranks):
        self.rank, self.ranks, self.round = rank, ranks, 0
        self.crowded = ranks > len(os.sched_getaffinity(0))
        file = os.open(path, os.O_RDWR)
        try:
            self.map = mmap.mmap(file, size_of(ranks))
        finally:
            os.close(file)
        # By default the system may let a sleep last 50 us longer than asked for.
        ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0)
        words = np.frombuffer(self.map, dtype=np.int64)
        # By rank the round that it has reached, by rank its votes; the moment of the next start.
        self.seats, self.votes, self.time = np.split(words, [ranks, 2 * ranks])

    def barrier(self):
        """Returns once every rank has called it as often as this one."""
        self.round += 1
        self.seats[self.rank] = self.round
        deadline, looks = time.monotonic() + LIMIT_S, 0
        while self.seats.min() < self.round:
            looks += 1
            # Never spin: it would use up this process's share of a busy core, and libraries whose
            # calls sleep and wake would pay for that in whole time slices.
            time.sleep(LOOK_S)
            if looks % 1000 == 0 and time.monotonic() > deadline:
                missing = [r for r in range(self.ranks) if self.seats[r] < self.round]
                raise TimeoutError(f"bench: no sign of rank {missing} for {LIMIT_S} s")

    def agreed(self, mine):
        """The keys of `mine` (a dict of bools, equal keys on all ranks) that are False anywhere."""
        votes = 0
        for place, yes in enumerate(mine.values()):
            votes |= (not yes) << place
        self.votes[self.rank] = votes
        self.barrier()
        against = int(np.bitwise_or.reduce(self.votes))
        self.barrier()  # the votes stay until everybody has counted them
        return [key for place, key in enumerate(mine) if against >> place & 1]

    def start(self):
        """Waits for everybody and then for one moment that all ranks agree on; returns it (ns)."""
        before = int(self.time[0])
        self.barrier()
        if self.rank == 0:
            ahead = CROWDED_NS if self.crowded else SETTLED_NS
            self.time[0] = time.monotonic_ns() + ahead
        else:
            while int(self.time[0]) == before:
                time.sleep(LOOK_S)
        # Rank 0 cannot change it before all have read it: it has to pass the next barrier first.
        agreed = int(self.time[0])
        wait_until(agreed, spin=not self.crowded)
        return agreed


def wait_until(moment_ns, spin):
    """Sleeps most of the way; spins for the rest where a core can be spared."""
    left = moment_ns - time.monotonic_ns() - SPIN_NS
    if left > 0 or not spin:
        time.sleep(max(0, left + (0 if spin else SPIN_NS)) / 1e9)
    while spin and time.monotonic_ns() < moment_ns:
        pass


def size_of(ranks):
    """Bytes of the file."""
    return (2 * ranks + 1) * WORD


def make_room(path, ranks):
    """Creates the file; the launching process does it before any rank starts."""
    with open(path, "wb") as file:
        file.write(bytes(size_of(ranks)))
