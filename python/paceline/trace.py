"""A trace as plain data: who did what and when. The mirror of src/trace/trace.hpp."""

import json
from dataclasses import asdict, dataclass, field

ACTIVITIES = ("send", "recv", "reduce", "copy", "signal", "wait", "compute")


@dataclass
class Event:
    rank: int
    activity: str
    peer: int = -1
    step: int = -1
    segment: int = 0
    begin_s: float = 0.0
    end_s: float = 0.0
    bytes: int = 0


@dataclass
class Trace:
    """The fields of src/trace/trace.hpp, as plain data."""

    title: str = ""
    provenance: str = ""
    ranks: int = 0
    arrival_s: list = field(default_factory=list)
    exit_s: list = field(default_factory=list)
    events: list = field(default_factory=list)

    @property
    def span_s(self):
        return max(self.exit_s) - min(self.arrival_s) if self.arrival_s and self.exit_s else 0.0


def from_core(core):
    """A Trace from an object with the same attributes; an activity may be an enum."""
    events = []
    for e in core.events:
        values = {name: getattr(e, name) for name in Event.__dataclass_fields__}
        values["activity"] = getattr(e.activity, "name", e.activity)
        events.append(Event(**values))
    rest = (core.title, core.provenance, core.ranks, list(core.arrival_s), list(core.exit_s))
    return checked(Trace(*rest, events))


def from_json(text):
    """A Trace from what to_json, here or in src/trace/json.hpp, has written."""
    fields = json.loads(text)
    return checked(Trace(**{**fields, "events": [Event(**e) for e in fields["events"]]}))


def to_json(trace):
    return json.dumps(asdict(trace))


def checked(trace):
    """Refuses what could only be drawn wrong."""
    for name in ("arrival_s", "exit_s"):
        if len(getattr(trace, name)) != trace.ranks:
            count = len(getattr(trace, name))
            raise ValueError(f"trace: {count} values of {name} for {trace.ranks} ranks")
    for e in trace.events:
        if e.activity not in ACTIVITIES:
            raise ValueError(f"trace: activity {e.activity!r} is none of {', '.join(ACTIVITIES)}")
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
