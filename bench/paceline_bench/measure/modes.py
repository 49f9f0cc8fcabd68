"""Launches that may be compared: those in which the cores were equally near to each other.

A virtual machine moves its cores between near and far caches, and a flag then takes 105 or 515 ns
from one to the other and back: short messages take as many times longer, whosever they are. Each
launch measures that trip before and after its cases; a verdict rests on launches of one mode.
"""

import statistics
from collections import Counter
from dataclasses import dataclass

FAR = 2  # neighbours in the sorted list of trips that differ by more belong to different modes


@dataclass(frozen=True)
class Modes:
    """The modes of all launches, by their trips."""

    trips: list  # (before, after) of every launch in ns; 0: not measured
    kept: list  # numbers of the launches in the mode that most had; none if all have moved

    @property
    def dropped(self):
        """Number of launches."""
        return len(self.trips) - len(self.kept)

    @property
    def typical(self):
        """The median trip of those that were kept; None if there is none."""
        found = [trip for number in self.kept for trip in self.trips[number] if trip]
        return statistics.median(found) if found else None

    @property
    def sentence(self):
        """A sentence for readers; empty if all launches can be compared."""
        if not self.dropped:
            return ""
        pairs = ", ".join(f"{before:.0f}-{after:.0f}" for before, after in self.trips)
        trips = f"Flag from rank 0 to rank 1 and back, before and after each launch: {pairs} ns."
        if not self.kept:
            return ("The cores moved during every launch: no launch can be compared with another. "
                    + trips)
        return (f"{self.dropped} of {len(self.trips)} launches were dropped: their cores were "
                f"nearer or farther, or moved. {trips}")


def groups(values):
    """Number of each value's mode, the fastest 0."""
    order = sorted(values)
    bounds = [above for below, above in zip(order, order[1:]) if above > FAR * below]
    return [sum(value >= bound for bound in bounds) for value in values]


def modes_of(trips):
    """The launches to keep; `trips` has (before, after) in ns for each, 0: not measured."""
    numbers = groups([trip for pair in trips for trip in pair])
    pairs = list(zip(numbers[::2], numbers[1::2]))
    # A launch whose cores have moved belongs to no mode.
    steady = Counter(before for before, after in pairs if before == after)
    if not steady:
        return Modes(trips, [])
    most = max(steady.values())
    mode = min(number for number, count in steady.items() if count == most)
    return Modes(trips, [number for number, pair in enumerate(pairs) if pair == (mode, mode)])
