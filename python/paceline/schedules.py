"""Arguments for the World of a call: the length of its units, and the choice's keywords."""

from paceline import calls

# Access of the algorithms that send messages; the others read and write memory that ranks share.
SENDS = ("messages", "nodes")


def unit_count(collective, ranks, size):
    """Elements of 4 bytes in a unit of a message of `size` bytes; the last may be filled up."""
    pieces = 1 if collective in ("allreduce", "reduce", "broadcast", "barrier") else ranks
    return -(-size // (4 * pieces))


def how(choice):
    """The part of a choice that a World takes as keywords."""
    return {name: choice[name] for name in (*calls.CUT, "group", "canonical")}
