"""Collectives whose ranks come at different times: `paceline bench --arrival`.

Before each call every rank computes, for as long as the pattern says; then it enters. Entry and
exit are read as absolute times on the clock that the ranks of a machine share, one call at a time.
The result is the time from the last arrival to the last exit: what the collective still has to do
once all ranks are there. The time of a message, which factors multiply, is measured in the same
launch: half of a round trip of that size between ranks 0 and 1.

On the nodes of an emulated cluster, which share that clock as well, a message takes what its bytes
need on a link, and ranks sleep until they come: they have no core of their own to compute on. There
figures that the links do not allow are refused, as without a pattern.
"""

import re
import statistics
import time
from dataclasses import dataclass

import numpy as np
from paceline import _core
from paceline.errors import RefusalError
from paceline.patterns import parse

from paceline_bench.measure import links, wire_check
from paceline_bench.measure.counted import Counted, explained
from paceline_bench.measure.meeting import wait_until
from paceline_bench.measure.statistics import CONFIDENCE, median_interval

PINGS = 7
TAG = 0x61727269 << 32
KNEAD = 64  # numbers that the computation before a call works on: they stay in the cache
LONGEST_S = 60.0  # of all calls of one size: repetitions after that are left out
# Calls before that, in which late ranks are learned: some four between nodes
# (docs/design/0042-predict.md), some 20 in a node (0044).
LEARNING = 32
NAMED = r"taken for late: \d"  # in what explain() says


def compute_until(moment_ns):
    """Computes, as a rank does before it has a result to share."""
    numbers = np.arange(KNEAD, dtype=np.float64)
    while time.monotonic_ns() < moment_ns:
        numbers = np.sqrt(numbers * numbers + 1.0)


def message_s(worker, nbytes):
    """Seconds of a message of `nbytes` from one rank to another, equal on all ranks."""
    comm, data = worker.communicator, np.zeros(max(nbytes, 1), dtype=np.uint8)
    if worker.ranks < 2:
        return 0.0
    times = []
    if worker.rank < 2:
        pairs = [comm.subgroup(order, TAG + 2 * nbytes + place)  # a tag names one group
                 for place, order in enumerate(((0, 1), (1, 0)))]
        for _ in range(PINGS):
            begin = time.monotonic_ns()
            for pair in pairs:
                pair.broadcast(data, root=0)
            times.append((time.monotonic_ns() - begin) * 0.5e-9)
    found = np.array([statistics.median(times) if worker.rank == 0 else 0.0])
    comm.broadcast(found, root=0)
    return float(found[0])


class Timed:
    """The calls at one size: this rank's absolute times (s) by label, call by call."""

    def __init__(self, worker, calls, cases, nbytes):
        self.worker, self.calls, self.cases, self.nbytes = worker, calls, cases, nbytes
        self.pattern = parse(worker.spec["arrival"])
        self.message_s = (worker.cluster.message_s(nbytes) if worker.cluster else
                          message_s(worker, nbytes))
        self.counted = Counted(worker, calls) if worker.cluster else None
        self.enter, self.leave = {label: [] for label in calls}, {label: [] for label in calls}
        self.late_from = {}  # number of the first call that named late ranks, counted from 1
        self.faults, self.refused = {}, {}  # why there are no times, on this rank and on all

    def call(self, label, number, counts=True):
        """Makes one call, with the arrivals that the pattern has for the call of that number. A
        call that is refused once the late ranks are known is refused on all ranks."""
        if label in self.refused:
            return
        delay_s = self.pattern.delays_s(self.worker.ranks, number, self.message_s)
        self.cases[label].rewrite()

        def run():
            moment = self.worker.meeting.start() + int(1e9 * delay_s[self.worker.rank])
            if self.worker.cluster:
                wait_until(moment, spin=False)
            else:
                compute_until(moment)
            entered = time.monotonic_ns()
            try:
                self.calls[label]()
            except RefusalError as error:
                self.refused[label] = f"RefusalError: {error}".splitlines()[0]
            return entered, time.monotonic_ns()

        entered, left = self.counted.around(label, run, counts) if self.counted else run()
        if counts:
            self.enter[label].append(entered * 1e-9)
            self.leave[label].append(left * 1e-9)

    def learn(self):
        """Makes calls that are not timed, until those that learn late ranks may know them."""
        begin = time.monotonic()
        for variant in self.worker.variants:
            if variant.label not in self.calls or not variant.learns or not predicts():
                continue
            for number in range(LEARNING):
                said = explained(self.worker.communicator, variant, self.cases[variant.label])
                if re.search(NAMED, said):
                    self.late_from.setdefault(variant.label, number + 1)
                self.call(variant.label, number, counts=False)
                if self.is_over(begin):
                    break

    def repeat(self, repeats):
        """Runs all variants in turn, once to warm up; the first result is checked."""
        turn, begin = list(self.calls), time.monotonic()
        for repetition in range(-1, repeats):
            for label in turn:
                self.call(label, max(repetition, 0), repetition >= 0)
                if repetition <= 0:
                    self.check(label)
            turn.append(turn.pop(0)) if turn else None
            if repetition >= 0 and self.is_over(begin):
                break

    def is_over(self, begin):
        """True if that has taken long enough; equal on all ranks."""
        return bool(self.worker.meeting.agreed({"on": time.monotonic() - begin < LONGEST_S}))

    def check(self, label):
        """Checks the last call's result: by now the call may know which ranks are late."""
        variant = next(v for v in self.worker.variants if v.label == label)
        fault = self.cases[label].fault() if variant.combines else ""
        if fault and label not in self.refused:
            self.faults[label] = f"wrong result: {fault}"

    @property
    def notes(self):
        """Reasons why some variants have no times, by label."""
        return {**self.faults, **self.refused}

    def found(self):
        """All that is known now."""
        for label in self.notes:
            del self.enter[label], self.leave[label]
            if self.counted:
                del self.counted.calls[label]
        about = self.counted.found(self.cases) if self.counted else {}
        return {**about, "message_s": dict.fromkeys(self.enter, self.message_s),
                "predict": _core.option("predict"), "late_from": self.late_from,
                "enter": self.enter, "leave": self.leave}


def predicts():
    """True if late ranks are learned in this process."""
    return _core.option("predict") in ("nodes", "auto")


def timed(worker, calls, cases, nbytes, repeats):
    """The entry of one size in a rank's file, and by label why some variants have no times."""
    calls_at = Timed(worker, calls, cases, nbytes)
    calls_at.learn()
    calls_at.repeat(repeats)
    return calls_at.found(), calls_at.notes


@dataclass
class Row:
    """One variant at one size; seconds, one number for each call of all launches."""

    variant: object
    bytes: int
    message_s: float
    after_last: list   # from the last arrival to the last exit
    in_call: list      # from entry to exit, the mean over ranks
    imbalance: list    # Omega: what the ranks have made of the pattern
    span: list         # from the first arrival to the last exit
    launches: int
    predict: str       # PACELINE_PREDICT of its processes
    choice: str = ""   # between nodes: what was chosen, in words
    machine: str = ""  # for which machine
    late_from: int | None = None  # in the first launch
    idle: float | None = None  # and the share of the machine that was left

    @property
    def median_s(self):
        """The median time from last arrival to last exit."""
        return statistics.median(self.after_last)


def row_of(variant, found, plan):
    """The Row of a variant from the launches' cases at one size; None if it has no times."""
    label, first = variant.label, found[0][0]
    if not all(rank["enter"].get(label) for launch in found for rank in launch):
        return None
    message = statistics.median(cases[0]["message_s"][label] for cases in found)
    row = Row(variant, first["bytes"], message,
              [], [], [], [], len(found), variant.predict or first["predict"],
              *(wire_check.known(variant, found) if plan.cluster else ()))
    row.late_from = first.get("late_from", {}).get(label)
    for cases in found:
        enter = np.array([rank["enter"][label] for rank in cases])
        leave = np.array([rank["leave"][label] for rank in cases])
        row.after_last += (leave.max(axis=0) - enter.max(axis=0)).tolist()
        row.in_call += (leave - enter).mean(axis=0).tolist()
        row.imbalance += [_core.imbalance(call)[0] for call in enter.T.tolist()]
        row.span += (leave.max(axis=0) - enter.min(axis=0)).tolist()
    return row


def refusal(row, launches, found, plan):
    """The reason to refuse figures of ranks on several nodes; empty if they are credible."""
    if not plan.cluster:
        return ""
    spans = {row.variant.label: [row.span] * len(launches)}
    why = wire_check.refusal(row.variant, launches, found, spans, plan)
    if why or plan.collective != "allreduce" or plan.cluster.nodes < 2:
        return why
    # The last rank's input has yet to come to all other nodes.
    return links.too_fast(row.message_s / row.median_s, row.bytes)


def rows_of(launches, plan):
    """(rows, notes) from `launches[launch][rank]`, the ranks' files."""
    from paceline_bench.measure.report import notes_of

    rows, notes = [], untaught(plan, launches)
    for place in range(len(plan.sizes)):
        found = [[rank["cases"][place] for rank in launch] for launch in launches]
        notes += notes_of(found, found[0][0]["bytes"])
        for variant in plan.variants:
            row = row_of(variant, found, plan)
            why = row and refusal(row, launches, found, plan)
            if why:
                notes.append(wire_check.refused(variant, row.bytes, why))
            elif row:
                rows.append(row)
    return rows, list(dict.fromkeys(notes))


def untaught(plan, launches):
    """A sentence if algorithms for late ranks were measured by name and knew no late rank: they use
    predictions that calls without a named algorithm have learned in the same processes."""
    predict = launches[0][0]["cases"][0]["predict"]
    is_told = predict.startswith("static:")
    if is_told or predict != "off" and any(v.learns for v in plan.variants):
        return []
    aware = {row["name"] for row in _core.algorithms()
             if row["collective"] == plan.collective and row["expects_late"]}
    names = [v.label for v in plan.variants if v.algorithm in aware]
    return [f"{', '.join(names)}: predicted no late rank, since no call here learns late "
            "ranks; set PACELINE_PREDICT=nodes and measure auto, too, or "
            "PACELINE_PREDICT=static:RANK."
            ] if names else []


def table(rows, plan):
    """The table for the terminal."""
    from paceline.units import human_time
    from rich.table import Table

    of_message = ["x n/rate"] if plan.cluster else []
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    out.add_column("size", justify="right", no_wrap=True)
    out.add_column("variant", no_wrap=True)
    for heading in ("after\nlast", *of_message, "in the\ncall", *of_message, "imbalance",
                    *([] if plan.cluster else ["message"])):
        out.add_column(heading, justify="right", no_wrap=True)
    before = None
    for row in rows:
        cells = [_core.human_bytes(row.bytes) if row.bytes != before else "", row.variant.label]
        for seconds in (row.median_s, statistics.fmean(row.in_call)):
            cells.append(human_time(seconds))
            if plan.cluster:
                cells.append(f"{seconds / row.message_s:.2f}" if row.message_s else "-")
        cells.append(human_time(statistics.median(row.imbalance)))
        out.add_row(*cells, *([] if plan.cluster else [human_time(row.message_s)]))
        before = row.bytes
    return out


def record(row, plan):
    """A record like those of `paceline bench --json`; time_us is last arrival to last exit."""
    after = sorted(1e6 * seconds for seconds in row.after_last)
    in_call, message = 1e6 * statistics.fmean(row.in_call), 1e6 * row.message_s
    interval = median_interval(after)
    found = {
        "collective": plan.collective, "bytes": row.bytes, "ranks": plan.ranks,
        "algorithm": row.variant.algorithm or None, "segments": row.variant.segments or None,
        "segment_bytes": row.variant.segment_bytes or None, "combines": row.variant.combines,
        "variant": row.variant.label, "library": row.variant.library,
        "chosen": row.variant.library == "paceline" and not row.variant.algorithm,
        "predict": row.predict if row.variant.library == "paceline" else None,
        "dtype": plan.dtype, "op": plan.op, "arrival": plan.arrival, "message_us": message,
        "time_us_median": statistics.median(after), "time_us_min": after[0],
        "time_us_max": after[-1], "in_call_us_mean": in_call,
        "imbalance_us_median": 1e6 * statistics.median(row.imbalance),
        "interval": {"of": "calls", "low_us": interval[0], "high_us": interval[1],
                     "confidence": CONFIDENCE} if interval else None,
        "bytes_per_s": 1e6 * row.bytes / statistics.median(after) if after[0] > 0 else None,
        "calls": len(after), "launches": row.launches, "late_from_call": row.late_from,
    }
    if plan.cluster and row.message_s:
        found |= {"time_per_message": found["time_us_median"] / message,
                  "in_call_per_message": in_call / message}
    if plan.cluster:
        found |= {"choice": row.choice, "machine": row.machine, "idle_share": row.idle}
    return found
