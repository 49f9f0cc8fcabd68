"""Collectives whose ranks come at different times: `paceline bench --arrival`.

Before each call every rank computes, for as long as the pattern says; then it enters. Entry and
exit are read as absolute times on the clock that the ranks of a machine share, one call at a time.
What counts is the time from the last arrival to the last exit: what the collective still has to do
once everybody is there. The time of a message, which factors multiply, is measured in the same
launch: half of a round trip of that size between ranks 0 and 1.
"""

import statistics
import time
from dataclasses import dataclass

import numpy as np

from paceline import _core
from paceline.patterns import parse

PINGS = 7
TAG = 0x61727269 << 16
KNEAD = 64  # numbers that the computation before a call works on: they stay in the cache
LONGEST_S = 60.0  # of all calls of one size: what has not been repeated by then is left out


def compute_until(moment_ns):
    """Computes, as a rank does before it has a result to share."""
    numbers = np.arange(KNEAD, dtype=np.float64)
    while time.monotonic_ns() < moment_ns:
        numbers = np.sqrt(numbers * numbers + 1.0)


def message_s(worker, nbytes):
    """Seconds of a message of so many bytes from one rank to another, equal on all ranks."""
    comm, data = worker.communicator, np.zeros(max(nbytes, 1), dtype=np.uint8)
    if worker.ranks < 2:
        return 0.0
    times = []
    if worker.rank < 2:
        pairs = [comm.subgroup(order, TAG + place) for place, order in enumerate(((0, 1), (1, 0)))]
        for _ in range(PINGS):
            begin = time.monotonic_ns()
            for pair in pairs:
                pair.broadcast(data, root=0)
            times.append((time.monotonic_ns() - begin) * 0.5e-9)
    found = np.array([statistics.median(times) if worker.rank == 0 else 0.0])
    comm.broadcast(found, root=0)
    return float(found[0])


def timed(worker, calls, cases, nbytes, repeats):
    """{"message_s", "enter", "leave"}: by label the absolute times of this rank (s), call by
    call."""
    pattern = parse(worker.spec["arrival"])
    alpha_s = message_s(worker, nbytes)
    enter, leave = {label: [] for label in calls}, {label: [] for label in calls}
    turn, begin = list(calls.items()), time.monotonic()
    for repetition in range(-1, repeats):
        delays = pattern.delays_s(worker.ranks, max(repetition, 0), alpha_s)
        for label, call in turn:
            cases[label].rewrite()
            start = worker.meeting.start()
            compute_until(start + int(1e9 * delays[worker.rank]))
            entered = time.monotonic_ns()
            call()
            left = time.monotonic_ns()
            if repetition >= 0:
                enter[label].append(entered * 1e-9)
                leave[label].append(left * 1e-9)
        turn.append(turn.pop(0)) if turn else None
        if worker.meeting.agreed({"go on": time.monotonic() - begin < LONGEST_S}):
            break
    return {"message_s": alpha_s, "enter": enter, "leave": leave}


@dataclass
class Row:
    """One variant at one size; seconds, one number for each call of all launches."""

    variant: object
    bytes: int
    message_s: float
    after_last: list   # from the last arrival to the last exit
    in_call: list      # from entry to exit, the mean over ranks
    imbalance: list    # Omega: what the ranks have made of the pattern

    @property
    def median_s(self):
        """Of last arrival to last exit."""
        return statistics.median(self.after_last)


def rows_of(launches, plan):
    """(rows, notes) from `launches[launch][rank]`, the ranks' files."""
    from paceline.bench.report import notes_of

    rows, notes = [], []
    for place in range(len(plan.sizes)):
        found = [[rank["cases"][place] for rank in launch] for launch in launches]
        nbytes = found[0][0]["bytes"]
        notes += notes_of(found, nbytes)
        for variant in plan.variants:
            label = variant.label
            if not all(rank["enter"].get(label) for launch in found for rank in launch):
                continue
            row = Row(variant, nbytes,
                      statistics.median(launch[0]["message_s"] for launch in found), [], [], [])
            for launch in found:
                enter = np.array([rank["enter"][label] for rank in launch])
                leave = np.array([rank["leave"][label] for rank in launch])
                row.after_last += (leave.max(axis=0) - enter.max(axis=0)).tolist()
                row.in_call += (leave - enter).mean(axis=0).tolist()
                row.imbalance += [_core.imbalance(call)[0] for call in enter.T.tolist()]
            rows.append(row)
    return rows, list(dict.fromkeys(notes))


def table(rows, plan):
    """For the terminal."""
    from rich.table import Table

    from paceline.units import human_time

    out = Table("size", "variant", "last arrival to last exit", "in the call, mean", "imbalance",
                "message", title=f"{plan.collective}, {plan.ranks} ranks, --arrival {plan.arrival}")
    for column in out.columns[2:]:
        column.justify = "right"
    for row in rows:
        out.add_row(_core.human_bytes(row.bytes), row.variant.label, human_time(row.median_s),
                    human_time(statistics.fmean(row.in_call)),
                    human_time(statistics.median(row.imbalance)), human_time(row.message_s))
    return out


def record(row, plan):
    """As the other records of `paceline bench --json`; time_us is last arrival to last exit."""
    after = sorted(1e6 * seconds for seconds in row.after_last)
    return {
        "collective": plan.collective, "bytes": row.bytes, "ranks": plan.ranks,
        "algorithm": row.variant.algorithm or None, "segments": row.variant.segments or None,
        "segment_bytes": row.variant.segment_bytes or None, "combines": row.variant.combines,
        "variant": row.variant.label, "library": row.variant.library, "dtype": plan.dtype,
        "op": plan.op, "arrival": plan.arrival, "message_us": 1e6 * row.message_s,
        "time_us_median": statistics.median(after), "time_us_min": after[0],
        "time_us_max": after[-1], "in_call_us_mean": 1e6 * statistics.fmean(row.in_call),
        "imbalance_us_median": 1e6 * statistics.median(row.imbalance),
        "bytes_per_s": 1e6 * row.bytes / statistics.median(after) if after[0] > 0 else None,
        "calls": len(after),
    }
