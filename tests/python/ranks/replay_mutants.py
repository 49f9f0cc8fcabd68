"""A replay whose first library does something wrong; MUTANT says what."""

import os

import libraries
import replay_rank

Ours = libraries.Ours


def lost(self, buffer, start=Ours.start):
    """The second bucket of a step is never summed."""
    self.started = getattr(self, "started", 0) + 1
    if self.started % 3 != 1:  # of two buckets and a warm-up of two calls
        start(self, buffer)


def early(self, moment_ns):
    """Buckets are sent before they are ready."""


def kept(self, buffer):
    """Sums that every rank keeps to itself."""


MUTANTS = {"lost": ("start", lost), "early": ("wait_until", early), "kept": ("start", kept)}

if __name__ == "__main__":
    setattr(Ours, *MUTANTS[os.environ["MUTANT"]])
    replay_rank.main()
