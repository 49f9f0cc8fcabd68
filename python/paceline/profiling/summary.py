"""Summary of a profile: imbalance, shares, waiting apart from transfer, and late ranks.

Imbalance by equations 2.1 to 2.3 of P. Alizadeh et al., EuroMPI 2022, computed by _core.imbalance;
factors are multiples of the time that a message of that size takes.
"""

from collections import defaultdict
from dataclasses import asdict, dataclass, field

import numpy as np

from paceline import _core

# The document's ranges: what a leader sums in shared memory, what passes through shared memory.
CLASSES = (("small", 1 << 10), ("medium", 64 << 10), ("large", 1 << 62))
SIGNIFICANT = 0.1   # of a call's transfer: a rank that comes so much after the others is late
LEAST_LATE_S = 1e-6
MOST_ARRIVALS = 20_000
MOST_RECORDING_S = 150e-9   # that a recorded call takes longer (docs/design/0043-profile.md)


def class_of(nbytes):
    """'small', 'medium' or 'large'."""
    return next(name for name, most in CLASSES if nbytes <= most)


@dataclass
class Invocation:
    """One call, of all its ranks. Seconds; NaN: not known."""

    group: int
    row: int
    collective: str
    bytes: float
    site: str
    ranks: int
    begin_s: float       # the first arrival
    worst_s: float       # Omega
    average_s: float     # Delta
    node_worst_s: float  # mean over nodes that have several of its ranks; NaN: there are none
    node_average_s: float
    transfer_s: float    # from the last arrival to the last exit
    last: int            # the rank that came last
    alone_s: float       # time that all others had been there by then
    factor_of: float = np.nan  # the time of a message, which the factors are divided by

    @property
    def worst(self):
        """Omega as a factor."""
        return self.worst_s / self.factor_of

    @property
    def average(self):
        """Delta as a factor."""
        return self.average_s / self.factor_of


@dataclass
class Row:
    """A collective, or one class of its messages."""

    collective: str
    sizes: str           # "all", or a class
    calls: int = 0
    share_of_calls: float = 0.0
    time_s: float = 0.0  # in calls, the mean over ranks
    share_of_run: float = 0.0
    waiting_s: float = 0.0   # of that, for the last rank to come
    transfer_s: float = 0.0  # the rest
    worst_s: float = np.nan
    average_s: float = np.nan
    worst: float = np.nan
    average: float = np.nan
    node_worst: float = np.nan
    node_average: float = np.nan
    node_worst_s: float = np.nan
    message_s: float = np.nan


@dataclass
class Late:
    """Number of calls in which a rank was last, and the time for which only it was missing."""

    rank: int
    node: str
    last: int            # calls in which it came last, and late enough to matter
    share: float         # of all calls that it is in
    alone_s: float
    waits_s: float       # its waiting for others


@dataclass
class Summary:
    """All figures of a profile. `factors`: what the factors are divided by, in words."""

    ranks: int
    nodes: int
    run_s: float
    in_calls: float      # share of run time
    calls: int
    factors: str
    rows: list[Row] = field(default_factory=list)
    sites: list[dict] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    invocations: list[Invocation] = field(default_factory=list)
    arrivals_s: list[list[float]] = field(default_factory=list)  # see arrivals_of
    notes: list[str] = field(default_factory=list)
    clock_error_s: float = 0.0

    @property
    def recording(self):
        """Upper bound of the share of the run time that recording took. It assumes that every rank
        made all calls."""
        return self.calls * MOST_RECORDING_S / self.run_s if self.run_s else 0.0

    def plain(self):
        """The fields for JSON: NaN becomes null."""
        found = asdict(self) | {"recording": self.recording}
        found["rows"] = [_plain(row) for row in found["rows"]]
        found["late"] = [_plain(row) for row in found["late"]]
        found["invocations"] = [
            _plain({**asdict(one), "worst": one.worst, "average": one.average})
            for one in self.invocations]
        return found


def _plain(fields):
    return {name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in fields.items()}


def summarise(calls, machine=None):
    """The Summary of `Calls`. machine: a machine model, by name or settings; factors are then
    multiples of a message's time in it. None: multiples of the measured transfer time, from last
    arrival to last exit."""
    invocations, waits = [], defaultdict(float)
    for place, group in enumerate(calls.groups):
        invocations += invocations_of(place, group, calls.nodes)
    factors = set_factors(invocations, machine)
    invocations.sort(key=lambda one: one.begin_s)
    run_s = max(calls.run_s.values(), default=0.0)
    found = Summary(calls.ranks, len(set(calls.nodes.values())), run_s, 0.0, 0, factors,
                    invocations=invocations, notes=list(calls.notes),
                    clock_error_s=calls.clock_error_s)
    spent = parts_of(calls, waits)
    found.rows = rows_of(calls, invocations, spent, run_s)
    found.calls = sum(row.calls for row in found.rows if row.sizes == "all")
    found.in_calls = sum(row.share_of_run for row in found.rows if row.sizes == "all")
    found.sites = sites_of(calls, invocations)
    found.late = late_of(calls, invocations, waits)
    found.arrivals_s = arrivals_of(calls)
    return found


def arrivals_of(calls):
    """Arrivals in the communicator with the most calls, by call and rank, in seconds after the
    first. --arrival trace:FILE replays them. At most the first MOST_ARRIVALS calls."""
    group = max(calls.groups, key=lambda one: int(one.complete.sum()) * len(one.members),
                default=None)
    if group is None:
        return []
    enter = group.enter[group.complete][:MOST_ARRIVALS]
    return (enter - enter.min(axis=1, keepdims=True)).tolist()


def invocations_of(place, group, nodes):
    """The Invocations of a group that every rank has entered, if it has several ranks."""
    if len(group.members) < 2:
        return []
    on_node = defaultdict(list)
    for column, rank in enumerate(group.members):
        on_node[nodes.get(rank, "")].append(column)
    several = [columns for columns in on_node.values() if len(columns) > 1]
    found = []
    for row in np.flatnonzero(group.complete).tolist():
        enter, leave = group.enter[row], group.leave[row]
        worst, average = _core.imbalance(enter.tolist())
        parts = [_core.imbalance(enter[columns].tolist()) for columns in several]
        node = np.mean(parts, axis=0) if parts else (np.nan, np.nan)
        order = np.argsort(enter, kind="stable")
        last_s = enter[order[-1]]
        over_s = np.nan if np.isnan(leave).all() else float(np.nanmax(leave))
        found.append(Invocation(
            place, row, group.collective[row], float(group.bytes[row]), group.site[row],
            len(group.members), float(enter[order[0]]), worst, average, float(node[0]),
            float(node[1]), max(over_s - last_s, 0.0), group.members[order[-1]],
            float(last_s - enter[order[-2]])))
    return found


def set_factors(invocations, machine):
    """Sets the time by which each Invocation's imbalance is divided; returns its name in words."""
    if machine is not None:
        model = _core.machine(machine)
        for one in invocations:
            one.factor_of = message_s(machine, one.ranks, one.bytes)
        return f"the time of a message of that size: {model}"
    by_kind = defaultdict(list)
    for one in invocations:
        by_kind[one.collective, one.ranks, one.bytes].append(one.transfer_s)
    usual = {kind: float(np.nanmedian(times)) for kind, times in by_kind.items()
             if not np.isnan(times).all()}
    for one in invocations:
        usual_s = usual.get((one.collective, one.ranks, one.bytes), np.nan)
        one.factor_of = usual_s if usual_s > 0 else np.nan
    return ("the measured transfer time of that size: the median, over calls, of last arrival to "
            "last exit")


def message_s(machine, ranks, nbytes):
    """Seconds of one message of `nbytes` between two ranks, by a machine's model."""
    chosen = _core.World("broadcast", "binomial", 2).simulate(int(max(nbytes, 1)), 1, machine, [])
    return chosen.span_s


def parts_of(calls, waits):
    """(collective, class) -> [calls, time in calls, waiting, transfer], each the mean over ranks.
    Adds each rank's waiting to `waits`."""
    spent = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for group in calls.groups:
        last = np.where(group.complete, np.nanmax(np.nan_to_num(group.enter, nan=-np.inf), axis=1),
                        np.nan)
        waiting = np.clip(np.fmin(last[:, None] - group.enter, group.leave - group.enter), 0, None)
        # A program does not stand in a non-blocking call while others are late.
        waiting = np.fmin(np.nan_to_num(waiting), np.nan_to_num(group.spent))
        for column, rank in enumerate(group.members):
            waits[rank] += float(waiting[:, column].sum())
        share = 1 / max(calls.ranks, 1)
        for row, (kind, nbytes) in enumerate(zip(group.collective, group.bytes)):
            time_s = float(np.nansum(group.spent[row])) * share
            waits_s = float(waiting[row].sum()) * share
            for sizes in ("all", class_of(nbytes)):
                part = spent[kind, sizes]
                part[0] += 1
                part[1] += time_s
                part[2] += waits_s
                part[3] += time_s - waits_s
    return spent


def rows_of(calls, invocations, spent, run_s):
    """The table: collectives by time, and of each the classes of its messages."""
    total = sum(part[0] for (_, sizes), part in spent.items() if sizes == "all") or 1
    by_kind = defaultdict(list)
    for one in invocations:
        for sizes in ("all", class_of(one.bytes)):
            by_kind[one.collective, sizes].append(one)
    rows = []
    for (kind, sizes), (number, time_s, waiting_s, transfer_s) in spent.items():
        row = Row(kind, sizes, number, number / total, time_s, time_s / run_s if run_s else 0.0,
                  waiting_s, transfer_s)
        some = by_kind[kind, sizes]
        for name, value in (("worst_s", "worst_s"), ("average_s", "average_s"), ("worst", "worst"),
                            ("average", "average"), ("node_worst_s", "node_worst_s"),
                            ("message_s", "factor_of")):
            setattr(row, name, mean([getattr(one, value) for one in some]))
        row.node_worst = mean([one.node_worst_s / one.factor_of for one in some])
        row.node_average = mean([one.node_average_s / one.factor_of for one in some])
        rows.append(row)
    order = {name: place for place, (name, _) in enumerate((("all", 0), *CLASSES))}
    time_of = {row.collective: row.time_s for row in rows if row.sizes == "all"}
    rows.sort(key=lambda row: (-time_of[row.collective], row.collective, order[row.sizes]))
    return rows


def sites_of(calls, invocations):
    """The 20 places in the program at which ranks wait longest for the last one."""
    found = defaultdict(lambda: [0, 0.0, 0.0])
    for one in invocations:
        part = found[one.site, one.collective, class_of(one.bytes)]
        part[0] += 1
        part[1] += one.worst_s
        part[2] += one.alone_s
    rows = [{"site": site, "collective": kind, "sizes": sizes, "calls": number,
             "worst_s": worst_s / number, "waited_s": worst_s}
            for (site, kind, sizes), (number, worst_s, _) in found.items()]
    return sorted(rows, key=lambda row: -row["waited_s"])[:20]


def late_of(calls, invocations, waits):
    """Late ranks, first the one for which all others waited longest."""
    last, alone, within = defaultdict(int), defaultdict(float), defaultdict(int)
    for one in invocations:
        members = calls.groups[one.group].members
        for rank in members:
            within[rank] += 1
        usual_s = 0.0 if np.isnan(one.factor_of) else one.factor_of
        if one.alone_s > max(SIGNIFICANT * usual_s, LEAST_LATE_S):
            last[one.last] += 1
            alone[one.last] += one.alone_s
    rows = [Late(rank, calls.nodes.get(rank, ""), last[rank], last[rank] / within[rank],
                 alone[rank], waits[rank]) for rank in sorted(within)]
    return sorted(rows, key=lambda row: -row.alone_s)


def mean(values):
    """The mean of the known values."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else np.nan
