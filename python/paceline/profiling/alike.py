"""Matches communicators of the same ranks whose order differs from rank to rank.

MPI has no name for a communicator that all its ranks know, and to agree on one takes a call, in
which a program hangs if one of its ranks is not recorded. So each rank numbers them as it first
uses them, and ranks may do that in different orders: with non-blocking calls, or in threads.
"""

from collections import defaultdict


def paired(communicators):
    """The communicators of each rank, in the order of the first rank's.

    communicators: rank -> list of sequences of names, the collectives that the rank has called on
    each communicator, as it first used them. Those of the same sequence belong together, the k-th
    on one rank and the k-th on another. Returns rank -> list of places: entry i is which of its own
    is the i-th of the first rank. A rank whose sequences are others keeps its order.
    """
    ranks = sorted(communicators)
    wanted = communicators[ranks[0]]
    places = {}
    for rank in ranks:
        own = communicators[rank]
        places[rank] = list(range(len(own)))
        if own == wanted or sorted(own) != sorted(wanted):
            continue
        at = defaultdict(list)
        for place, calls in enumerate(own):
            at[calls].append(place)
        for left in at.values():
            left.reverse()
        places[rank] = [at[calls].pop() for calls in wanted]
    return places
