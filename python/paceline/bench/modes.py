"""Launches that may be compared: those in which the cores were equally near to each other.

A virtual machine moves its cores between near and far caches, and a flag then takes 105 or 515 ns
from one to the other and back: short messages take as many times longer, whosever they are. Each
launch measures that trip before and after its cases; a verdict rests on launches of one mode.
"""

from collections import Counter
from dataclasses import dataclass

FAR = 1.5  # neighbours in the sorted list of trips that differ by more belong to different modes


@dataclass(frozen=True)
class Modes:
    """What the trips of all launches say."""

    kept: list  # numbers of the launches in the mode that most had; of all, where none kept one
    dropped: int
    sentence: str  # for people; empty where nothing was measured


def groups(values):
    """By value the number of its mode, the fastest 0."""
    order = sorted(values)
    bounds = [above for below, above in zip(order, order[1:]) if above > FAR * below]
    return [sum(value >= bound for bound in bounds) for value in values]


def modes_of(trips):
    """Which launches to keep; `trips` has (before, after) in ns for each, 0: not measured."""
    numbers = groups([trip for pair in trips for trip in pair])
    pairs = list(zip(numbers[::2], numbers[1::2]))
    # A launch whose cores have moved belongs to no mode.
    steady = Counter(before for before, after in pairs if before == after)
    if not steady:
        return Modes([], len(trips), "The cores moved during every launch: no launch can be "
                     f"compared with another. {listed(trips)}")
    most = max(steady.values())
    mode = min(number for number, count in steady.items() if count == most)
    kept = [number for number, pair in enumerate(pairs) if pair == (mode, mode)]
    dropped = len(trips) - len(kept)
    sentence = listed(trips) if any(trip for pair in trips for trip in pair) else ""
    if dropped:
        sentence += (f" {dropped} of {len(trips)} launches were dropped: their cores were nearer "
                     "or farther, or moved.")
    return Modes(kept, dropped, sentence)


def listed(trips):
    """All trips in a line."""
    pairs = ", ".join(f"{before:.0f}-{after:.0f}" for before, after in trips)
    return f"Flag from rank 0 to rank 1 and back, before and after each launch: {pairs} ns."
