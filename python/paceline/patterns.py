"""Arrival patterns: the times at which ranks enter a collective, relative to the first.

    uniform:MIF                 each rank computes for a random time before each call, of at most
                                MIF times the time of a message of that size (MIF: maximum
                                imbalance factor of Alizadeh et al., 2022)
    late:RANK[,RANK]:FACTOR     these ranks enter FACTOR message times after all others
    trace:FILE                  arrivals from a file of `paceline profile --json`

The same patterns feed `paceline bench --arrival` and `paceline simulate --arrival`.
"""

from dataclasses import dataclass

import numpy as np

from paceline.errors import UsageError
from paceline.files import member, read_json

MOST_CALLS, MOST_RANKS = 1_000_000, 65536
MOST_FACTOR = 1e6
HOW = ("write uniform:MIF (such as uniform:10), late:RANK[,RANK]:FACTOR (such as late:3:1.5), or "
       "trace:FILE")


@dataclass(frozen=True)
class Pattern:
    """A parsed word such as uniform:10. `factor`: in message times; `rows`: of a trace."""

    words: str
    kind: str
    factor: float = 0.0
    late: tuple = ()
    rows: tuple = ()

    def delays_s(self, ranks, call, message_s, seed=0):
        """Seconds by rank from the beginning of the pattern until the rank enters, in the call of
        that number. Equal on all ranks."""
        if self.kind == "uniform":
            random = np.random.default_rng([seed, call])
            return (random.random(ranks) * self.factor * message_s).tolist()
        if self.kind == "late":
            return [self.factor * message_s if rank in self.late else 0.0 for rank in range(ranks)]
        return list(self.rows[call % len(self.rows)])

    def longest_s(self, message_s):
        """The largest delay of any rank."""
        return max(map(max, self.rows)) if self.rows else self.factor * message_s

    def check(self, ranks):
        """Raises UsageError if it does not fit a world of `ranks`."""
        beyond = [rank for rank in self.late if rank >= ranks]
        if beyond:
            raise UsageError(f"--arrival {self.words} names rank {beyond[0]}; with {ranks} ranks "
                             f"they are 0 to {ranks - 1}.")
        if self.rows and len(self.rows[0]) != ranks:
            raise UsageError(f"--arrival {self.words} is of {len(self.rows[0])} ranks; use --ranks "
                             f"{len(self.rows[0])}, or another trace.")


def parse(words):
    """The Pattern of a word. Raises UsageError that shows the forms of a word."""
    kind, _, rest = words.partition(":")
    if kind == "trace" and rest:
        return Pattern(words, kind, rows=read_trace(rest))
    try:
        if kind == "uniform":
            return Pattern(words, kind, positive(rest))
        if kind == "late":
            ranks, _, factor = rest.rpartition(":")
            late = tuple(sorted({int(rank) for rank in ranks.split(",")}))
            if late[0] >= 0:
                return Pattern(words, kind, positive(factor), late)
    except ValueError:
        pass
    raise UsageError(f"--arrival is '{words}'; {HOW}.")


def positive(text):
    """A factor of at least 0."""
    value = float(text)
    if not 0 <= value <= MOST_FACTOR:
        raise ValueError(text)
    return value


def read_trace(file):
    """The arrivals of a profile: rows of seconds after the first, by rank."""

    def check(fields):
        rows = member(fields, "arrivals_s", list)
        if not 1 <= len(rows) <= MOST_CALLS:
            raise ValueError("it holds no call that all ranks have entered")
        found = []
        for row in rows:
            if not isinstance(row, list) or not 1 <= len(row) <= MOST_RANKS:
                raise ValueError("arrivals_s is no table")
            if len(row) != len(rows[0]):
                raise ValueError("its rows are of different lengths")
            if not all(isinstance(at, (int, float)) and 0 <= at < 1e6 for at in row):
                raise ValueError("an arrival is no time from 0 on")
            found.append(tuple(float(at) for at in row))
        return tuple(found)

    return read_json(file, "profile as paceline profile --json writes it", check)
