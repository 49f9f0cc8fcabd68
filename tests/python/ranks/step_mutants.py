"""paceline_bench.train.replaying with a fault, MUTANT: what its checks must find."""

import os

from paceline_bench.train import replaying


class Early(replaying.Stored):
    """Layers that begin without their weights."""

    def reads(self, own):
        return []


class Lost(replaying.Keys):
    """A rank whose last gradient never changes."""

    def make(self, number, key):
        if key != len(self.arrays) - 1 or self.rank:
            super().make(number, key)


class Broken(replaying.Keys):
    """Something in the middle of a key changes on the way."""

    def look_all(self, number):
        self.arrays[0][len(self.arrays[0]) // 2] += 1
        super().look_all(number)


class Hasty(replaying.Clock):
    """Computes nothing."""

    def compute(self, seconds):
        pass


NAME, FAULTY = {"early": ("Stored", Early), "lost": ("Keys", Lost), "broken": ("Keys", Broken),
                "hasty": ("Clock", Hasty)}.get(os.environ["MUTANT"], ("Clock", replaying.Clock))
setattr(replaying, NAME, FAULTY)
replaying.main()
