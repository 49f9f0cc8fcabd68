"""A trace as plain data: the activities of ranks, with times, as in src/trace/trace.hpp."""

import json
from dataclasses import asdict, dataclass, field

from paceline.files import member, number, read_json, whole

ACTIVITIES = ("send", "recv", "reduce", "copy", "signal", "wait", "compute")
LABELS = {
    "send": "send", "recv": "receive", "reduce": "reduce", "copy": "copy",
    "signal": "signal", "wait": "wait for signal", "compute": "compute",
}  # fmt: skip


MOST_RANKS = 65536
MOST = (1 << 63) - 1  # of any whole number


@dataclass
class Event:
    rank: int
    activity: str
    peer: int = -1
    step: int = -1
    steps: int = 1
    segment: int = 0
    begin_s: float = 0.0
    end_s: float = 0.0
    bytes: int = 0
    what: str = ""             # more exact than the activity, if the schedule was asked
    moved: int = 0             # bytes read and written, likewise


FIELDS = tuple(name for name in Event.__dataclass_fields__ if name not in ("what", "moved"))


@dataclass
class Trace:
    """The fields of src/trace/trace.hpp, as plain data."""

    title: str = ""
    provenance: str = ""
    ranks: int = 0
    arrival_s: list = field(default_factory=list)
    exit_s: list = field(default_factory=list)
    events: list = field(default_factory=list)
    counted: str = ""          # what all ranks read and wrote, in lines of words

    @property
    def span_s(self):
        return max(self.exit_s) - min(self.arrival_s) if self.arrival_s and self.exit_s else 0.0


def from_core(core):
    """A Trace from an object with the same attributes; an activity may be an enum."""
    events = []
    for e in core.events:
        values = {name: getattr(e, name) for name in FIELDS}
        values["activity"] = getattr(e.activity, "name", e.activity)
        events.append(Event(**values))
    rest = (core.title, core.provenance, core.ranks, list(core.arrival_s), list(core.exit_s))
    return checked(Trace(*rest, events))


def from_json(text):
    """A Trace from what to_json, here or in src/trace/json.hpp, has written. Raises ValueError."""
    return from_fields(json.loads(text))


def read(path):
    """A Trace from a file. Raises UsageError for a file without a trace."""
    return read_json(path, "trace", from_fields)


def from_fields(fields):
    """A Trace from parsed JSON. Raises ValueError."""
    ranks = whole(fields, "ranks", 0, MOST_RANKS)
    times = [[number({name: time}, name) for time in member(fields, name, list, [])]
             for name in ("arrival_s", "exit_s")]
    texts = [member(fields, name, str, "") for name in ("title", "provenance", "counted")]
    events = [_event(e, ranks) for e in member(fields, "events", list)]
    return checked(Trace(*texts[:2], ranks, *times, events, texts[2]))


def _event(fields, ranks):
    """One event; checked() tests what its numbers mean together."""
    unknown = set(member({"event": fields}, "event", dict)) - set(Event.__dataclass_fields__)
    if unknown:
        raise ValueError(f"an event has the unknown field {min(unknown)!r}")
    bounds = {"rank": (0, ranks), "peer": (-1, ranks), "segment": (0, MOST)}
    values = {"rank": whole(fields, "rank", 0, ranks), "activity": member(fields, "activity", str)}
    for name in ("peer", "step", "steps", "segment", "bytes", "moved"):
        default = Event.__dataclass_fields__[name].default
        values[name] = whole(fields, name, *bounds.get(name, (-1, MOST)), default)
    for name in ("begin_s", "end_s"):
        values[name] = number(fields, name, 0.0)
    return Event(**values, what=member(fields, "what", str, ""))


def kind(event):
    """The kind of an event: the work of its steps if known, else its activity."""
    return event.what or event.activity


def is_load_store(trace):
    """True for a trace of a load/store call: its events have the work of their steps."""
    return any(event.what for event in trace.events)


# Rows by the first thing that an event does.
ROWS = {"send": 0, "signal": 0, "reduce": 1, "copy": 1, "compute": 1, "recv": 2, "wait": 2}
LOAD_STORE_ROWS = {"copy in": 0, "reduce": 1, "copy out": 2, "copy": 2, "signal": 3, "wait": 3}
ORDER = ("send", "recv", "copy in", "reduce", "copy", "copy out", "signal", "wait", "compute")


def rows(trace):
    """The row of a rank's lane that each kind of event has, by its first word or two.

    Sends are above, sums in the middle, receives below. A load/store call has copies in, sums,
    copies out, and the meetings.
    """
    table = LOAD_STORE_ROWS if is_load_store(trace) else ROWS
    return {name: table[first(name)] for name in kinds(trace)}


def first(name):
    """The first part of a name: 'reduce' of 'reduce + copy in'."""
    return name.split(" + ")[0]


def kinds(trace):
    """The kinds that occur, in the order of a legend."""
    used = {kind(event) for event in trace.events}
    return sorted(used, key=lambda name: (ORDER.index(first(name)), name))


def to_json(trace):
    return json.dumps(asdict(trace))


def checked(trace):
    """The trace. Raises ValueError if it cannot be drawn."""
    for name in ("arrival_s", "exit_s"):
        if len(getattr(trace, name)) != trace.ranks:
            count = len(getattr(trace, name))
            raise ValueError(f"trace: {count} values of {name} for {trace.ranks} ranks")
    for e in trace.events:
        if e.activity not in ACTIVITIES:
            raise ValueError(f"trace: activity {e.activity!r} is none of {', '.join(ACTIVITIES)}")
        if first(kind(e)) not in ORDER:
            raise ValueError(f"trace: an event is {e.what!r}; it must begin with one of "
                             f"{', '.join(ORDER)}")
        if not 0 <= e.rank < trace.ranks or not e.begin_s <= e.end_s:
            raise ValueError(f"trace: an event that cannot be drawn: {e}")
    return trace


def messages(trace):
    """Pairs (send, receive) and (signal, wait), by the order within two ranks and a segment."""
    ends = {}
    for e in sorted(trace.events, key=lambda e: (e.segment, e.step, e.begin_s)):
        departs = e.activity in ("send", "signal")
        if departs or e.activity in ("recv", "wait"):
            pair = (e.rank, e.peer) if departs else (e.peer, e.rank)
            key = (*pair, e.segment, e.activity in ("signal", "wait"))
            ends.setdefault(key, ([], []))[0 if departs else 1].append(e)
    return [pair for departures, arrivals in ends.values() for pair in zip(departures, arrivals)]
