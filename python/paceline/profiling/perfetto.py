"""A profile as a trace that Perfetto (ui.perfetto.dev) and Chrome open: a row for each rank.

The format is Chrome's Trace Event Format: complete events ("X") with times in microseconds.
"""

import json

import numpy as np

from paceline.profiling.summary import class_of


def events(calls):
    """The events: each call of each rank, and within it the time until the last rank came."""
    found = []
    for rank, node in sorted(calls.nodes.items()):
        found.append({"ph": "M", "name": "process_name", "pid": rank,
                      "args": {"name": f"rank {rank} ({node})"}})
        found.append({"ph": "M", "name": "process_sort_index", "pid": rank,
                      "args": {"sort_index": rank}})
    for place, group in enumerate(calls.groups):
        last = np.nanmax(group.enter, axis=1)
        for row, kind in enumerate(group.collective):
            about = {"bytes": int(group.bytes[row]), "sizes": class_of(group.bytes[row]),
                     "ranks": len(group.members), "call": int(group.number[row]),
                     "communicator": place, "where": group.site[row],
                     "by": group.source}
            for column, rank in enumerate(group.members):
                found += of_rank(group, row, column, rank, kind, last[row], about)
    return found


def of_rank(group, row, column, rank, kind, last_s, about):
    """One rank's part of one call; a call that it never left has no length."""
    enter, leave = group.enter[row, column], group.leave[row, column]
    if np.isnan(enter):
        return []
    over = enter if np.isnan(leave) else leave
    later = bool(group.nonblocking[row])
    common = {"ph": "X", "pid": rank, "tid": 1 if later else 0}
    # A non-blocking call may last while others begin: rows of one name must not overlap so.
    call = {**common, "name": f"{kind} {int(group.bytes[row])} B", "cat": "collective",
            "ts": 1e6 * enter, "dur": 1e6 * max(over - enter, 0.0),
            "args": {**about, "unfinished": bool(np.isnan(leave))}}
    waiting = min(last_s, over) - enter
    if later:
        call["ph"] = "b"
        call["id"] = f"{rank}.{about['communicator']}.{row}"
        end = {name: call[name] for name in ("name", "cat", "pid", "tid", "id")}
        return [{name: value for name, value in call.items() if name != "dur"},
                {**end, "ph": "e", "ts": 1e6 * over}]
    if not waiting > 0:
        return [call]
    return [call, {**common, "name": "waiting for the last to come", "cat": "waiting",
                   "ts": 1e6 * enter, "dur": 1e6 * waiting}]


def write(calls, file):
    """Writes the trace."""
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"traceEvents": events(calls), "displayTimeUnit": "ns"}, out)
