"""A collective run for real on this machine, every step recorded: `paceline draw --measured`.

As a module it is one rank: `python -m paceline.bench.recording SPEC`.
"""

import json
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import paceline
from paceline import _core, trace
from paceline.bench.cases import Case
from paceline.bench.launching import run_module
from paceline.bench.meeting import Meeting, wait_until
from paceline.provenance import describe_machine
from paceline.bench.variants import OfPaceline, Variant
from paceline.calls import ASKED

WARM_UP = 5  # the first calls fill caches, pools and page tables: that is another picture
RECORDED = 7  # the one that took the median time is drawn


def record(world, size, arrivals):
    """The trace of `world` (a _core.World) on this machine; `arrivals` in seconds by rank."""
    names = ("collective", "algorithm", "ranks", "root", *ASKED)
    spec = {name: getattr(world, name) for name in names}
    with tempfile.TemporaryDirectory(prefix="paceline-draw-") as folder:
        spec |= {"size": size, "arrivals": arrivals, "folder": folder}
        return merged(run_module("paceline.bench.recording", spec, world.ranks, folder), spec)


def merged(ranks, spec):
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
        f"{_core.human_bytes(spec['size'])}{segments if spec['segments'] > 1 else ''}",
        provenance=f"measured: {describe_machine()}, {datetime.now():%Y-%m-%d}, "
        f"the median of {RECORDED} calls",
        ranks=spec["ranks"], arrival_s=[call["arrival"] - zero for call in calls],
        exit_s=[call["exit"] - zero for call in calls], events=events))


def main():
    """One rank: warms up, records a few calls, writes them to its file."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    communicator = paceline.init()
    rank, ranks = communicator.rank, communicator.size
    meeting = Meeting(Path(spec["folder"]) / "meeting", rank, ranks)
    case = Case(spec["collective"], spec["size"], ranks, rank, root=spec["root"])
    if any(row["access"] == "symmetric" for row in _core.algorithms()
           if (row["collective"], row["name"]) == (spec["collective"], spec["algorithm"])):
        case.take(communicator.empty)
    knobs = {name: spec[name] for name in ASKED}
    variant = Variant("paceline", spec["algorithm"], **knobs)
    call = OfPaceline(communicator).bind(variant, case)
    calls = []
    for number in range(WARM_UP + RECORDED):
        case.rewrite()
        _core.start_trace(communicator._core)
        late_ns = int(spec["arrivals"][rank] * 1e9)
        wait_until(meeting.start() + late_ns, spin=not meeting.oversubscribed)
        arrival = time.monotonic()
        call()
        leave = time.monotonic()
        found = _core.take_trace(communicator._core)
        if number >= WARM_UP:
            events = [{name: getattr(event, name) for name in trace.FIELDS}
                      for event in found.events]
            calls.append({"arrival": arrival, "exit": leave, "events": events})
    fault = case.fault()
    if fault:
        raise paceline.InternalError(f"draw: wrong result: {fault}")
    file = Path(spec["folder"]) / f"rank{rank}.json"
    file.write_text(json.dumps(calls), encoding="utf-8")
    meeting.barrier()
    paceline.finalize()


if __name__ == "__main__":
    main()
