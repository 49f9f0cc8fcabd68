"""Runs a collective on ranks of this machine: checks its result, and times or records its calls.

`paceline doctor` and `paceline draw --measured` use it. Each rank runs `python -m paceline.trial
SPEC`.
"""

import os
import tempfile
import time
from datetime import datetime

import numpy as np

import paceline
from paceline import _core, on_ranks, trace
from paceline.calls import ASKED
from paceline.provenance import describe_machine
from paceline.schedules import unit_count

IN_PLACE = ("allreduce", "reduce", "broadcast")  # as torch.distributed has them: one buffer
WARM_UP = 5  # the first calls fill caches, pools and page tables: that is another picture
RECORDED, TIMED = 7, 200  # calls
AHEAD_NS, AHEAD_OVERSUBSCRIBED_NS = 300_000, 3_000_000  # from the agreement to the start
SPIN_NS = 150_000  # a core that has just been asleep starts late and cold


class Case:
    """The buffers of a call on one rank, `unit` elements of float32 in each piece."""

    def __init__(self, collective, unit, comm, root=0, empty=np.empty):
        self.collective, self.unit, self.root = collective, unit, root
        self.rank, self.ranks = comm.rank, comm.size
        self.pattern = self.brought(self.rank)
        self.expected = self.due()
        self.input = empty(len(self.pattern), np.float32)
        self.output = self.input
        if collective not in IN_PLACE and self.expected is not None:
            self.output = empty(len(self.expected), np.float32)

    def brought(self, rank):
        """The input of a rank: whole numbers, so that sums are exact."""
        pieces = self.ranks if self.collective in ("reduce_scatter", "scatter", "alltoall") else 1
        return ((np.arange(self.unit * pieces) * 7 + rank * 31) % 251).astype(np.float32)

    def due(self):
        """The expected result on this rank; None if it receives nothing."""
        every = [self.brought(rank) for rank in range(self.ranks)]
        mine = slice(self.rank * self.unit, (self.rank + 1) * self.unit)
        if self.collective in ("reduce", "gather") and self.rank != self.root:
            return None
        found = {
            "allreduce": lambda: sum(every), "reduce": lambda: sum(every),
            "reduce_scatter": lambda: sum(every)[mine],
            "broadcast": lambda: every[self.root], "scatter": lambda: every[self.root][mine],
            "allgather": lambda: np.concatenate(every), "gather": lambda: np.concatenate(every),
            "alltoall": lambda: np.concatenate([one[mine] for one in every]),
        }.get(self.collective, lambda: None)  # fmt: skip
        return found()

    def call(self, comm, knobs):
        """The call as a function without arguments."""
        run, x, out = getattr(comm, self.collective), self.input, self.output
        if self.collective == "barrier":
            return lambda: run(**knobs)
        rooted = {} if self.collective not in ("reduce", "broadcast", "gather", "scatter") else {
            "root": self.root}
        if self.collective in IN_PLACE:
            return lambda: run(x, **rooted, **knobs)
        x = x if self.collective != "scatter" or self.rank == self.root else None
        out = out if self.collective != "gather" or self.rank == self.root else None
        return lambda: run(x, out, **rooted, **knobs)

    def check(self):
        """Raises InternalError if the result is wrong."""
        if self.expected is None or np.array_equal(self.output, self.expected):
            return
        first = int(np.flatnonzero(self.output != self.expected)[0])
        raise paceline.InternalError(
            f"{self.collective}: rank {self.rank} holds {self.output[first]} at {first}, where "
            f"{self.expected[first]} is due. This is a bug in Paceline; please report it.")


def agreed_start(comm, oversubscribed):
    """A moment of time.monotonic_ns(), the same on all ranks, soon after all have called this."""
    comm.barrier()
    ahead = AHEAD_OVERSUBSCRIBED_NS if oversubscribed else AHEAD_NS
    moment = np.array([time.monotonic_ns() + ahead])
    return int(comm.broadcast(moment, 0)[0])


def wait_until(moment_ns, spin):
    """Sleeps until shortly before the moment, then spins if the rank has a core of its own."""
    left = moment_ns - time.monotonic_ns() - (SPIN_NS if spin else 0)
    time.sleep(max(0, left) / 1e9)
    while spin and time.monotonic_ns() < moment_ns:
        pass


def times(collective, sizes, ranks):
    """Seconds of the fastest call at each size (bytes), of calls in a row. Raises what ranks raise.
    """
    with tempfile.TemporaryDirectory(prefix="paceline-trial-") as folder:
        spec = {"collective": collective, "sizes": sizes, "calls": TIMED, "folder": folder}
        every = on_ranks.run_module("paceline.trial", spec, ranks, folder, told_by="doctor")
    return [min(max(call["exit"] - call["arrival"] for call in calls)
                for calls in zip(*(rank[place] for rank in every)))
            for place in range(len(sizes))]


def record(world, size, arrivals):
    """The trace of `world` (a _core.World) on this machine; `arrivals` in seconds by rank."""
    names = ("collective", "algorithm", "ranks", "root", *ASKED)
    spec = {"calls": RECORDED, **{name: getattr(world, name) for name in names}}
    with tempfile.TemporaryDirectory(prefix="paceline-trial-") as folder:
        spec |= {"sizes": [size], "arrivals": arrivals, "folder": folder}
        every = on_ranks.run_module("paceline.trial", spec, world.ranks, folder, told_by="draw")
    return merged([calls for (calls,) in every], spec, size)


def merged(ranks, spec, size):
    """One trace from those of all ranks, each a list over the recorded calls."""
    spans = [max(rank[i]["exit"] for rank in ranks) - min(rank[i]["arrival"] for rank in ranks)
             for i in range(RECORDED)]
    typical = sorted(range(RECORDED), key=spans.__getitem__)[RECORDED // 2]
    calls = [rank[typical] for rank in ranks]
    zero = min(call["arrival"] for call in calls)
    events = []
    for number, call in enumerate(calls):
        for event in call["events"]:
            begin, end = (max(event[key] - zero, 0.0) for key in ("begin_s", "end_s"))
            events.append(trace.Event(**{**event, "rank": number, "begin_s": begin,
                                         "end_s": max(begin, end)}))
    segments = f", {spec['segments']} segments, window {spec['window']}"
    return trace.checked(trace.Trace(
        title=f"{spec['collective']}/{spec['algorithm']}, {spec['ranks']} ranks, "
        f"{_core.human_bytes(size)}{segments if spec['segments'] > 1 else ''}",
        provenance=f"measured: {describe_machine()}, {datetime.now():%Y-%m-%d}, "
        f"the median of {RECORDED} calls",
        ranks=spec["ranks"], arrival_s=[call["arrival"] - zero for call in calls],
        exit_s=[call["exit"] - zero for call in calls], events=events))


def empty_for(comm, collective, algorithm):
    """The function that makes the buffers: shared ones if the algorithm needs them."""
    symmetric = any(row["access"] == "symmetric" for row in _core.algorithms()
                    if (row["collective"], row["name"]) == (collective, algorithm))
    return comm.empty if symmetric else np.empty


def calls_of(comm, spec, size):
    """Runs one size on this rank; returns arrival, exit and events of each call."""
    collective, algorithm = spec["collective"], spec.get("algorithm")
    case = Case(collective, unit_count(collective, comm.size, size), comm, spec.get("root", 0),
                empty_for(comm, collective, algorithm))
    knobs = {"algorithm": algorithm, **{name: spec.get(name) for name in ASKED}}
    call = case.call(comm, {name: value for name, value in knobs.items() if value})
    oversubscribed, found = comm.size > len(os.sched_getaffinity(0)), []
    for number in range(WARM_UP + spec["calls"]):
        case.input[:] = case.pattern
        if algorithm:
            moment = agreed_start(comm, oversubscribed)
            _core.start_trace(comm._core)
            wait_until(moment + int(spec["arrivals"][comm.rank] * 1e9), spin=not oversubscribed)
        arrival = time.monotonic()
        call()
        leave = time.monotonic()
        events = _core.take_trace(comm._core).events if algorithm else []
        if number >= WARM_UP:
            found.append({"arrival": arrival, "exit": leave, "events": [
                {name: getattr(event, name) for name in trace.FIELDS} for event in events]})
    case.check()
    return found


def main():
    """One rank: calls of every size, written to its file."""
    spec, comm = on_ranks.told(), paceline.init()
    on_ranks.tell(spec, comm.rank, [calls_of(comm, spec, size) for size in spec["sizes"]])
    paceline.finalize()


if __name__ == "__main__":
    main()
