"""The pipeline of devices whose messages go through the host: `paceline bench --device staged`.

Ranks on this machine, each with a device: CUDA's if there is one, else emulated. For each size
the median call, and the share of the calls' time in which each stage was at work.
"""

import statistics

from paceline_bench.measure.device_ranks import one_rank, run as run_ranks, slowest, timed_calls

STAGES = ("register", "copy out", "send", "receive", "reduce", "copy in")


def measure(spec, comm, devices):
    """On one rank: for each size seconds of every call, and of the stages in them."""
    import numpy
    from paceline import device

    mine = comm.rank % devices.count
    link = device.Link(comm, devices, mine)
    found = []
    for nbytes in spec["sizes"]:
        values = numpy.full(max(1, nbytes // 4), comm.rank, "float32")
        array = device.Array(devices, mine, values.size).put(values) \
            if devices.kind == "cuda" else values
        before = link.stages()
        times = timed_calls(comm, link, spec, array)
        after = link.stages()
        busy = {name: after["seconds"][name] - before["seconds"][name] for name in STAGES}
        found.append({"bytes": nbytes, "times": times, "busy": busy, "kind": devices.kind,
                      "calls_s": after["calls_s"] - before["calls_s"],
                      "pinned_bytes": after["pinned_bytes"]})
    return found


def rows_of(by_size):
    """Per size: the slowest rank's median and first call in seconds, and the shares of the stages
    in the calls' time, as means over ranks."""
    rows = []
    for ranks in by_size:
        share = {name: statistics.mean(one["busy"][name] / one["calls_s"] for one in ranks)
                 for name in STAGES}
        rows.append({"bytes": ranks[0]["bytes"], **slowest(ranks), "share": share,
                     "kind": ranks[0]["kind"],
                     "pinned_bytes": max(one["pinned_bytes"] for one in ranks)})
    return rows


def run(collective, sizes, ranks, options):
    """Starts the ranks; rows."""
    return rows_of(run_ranks("paceline_bench.measure.stages", collective, sizes, ranks, options))


def table(rows, collective, ranks):
    """The table for the terminal."""
    from paceline import _core
    from paceline.units import human_time

    from paceline_bench.measure.devices import grid

    out = grid(f"{collective} between {ranks} ranks with {rows[0]['kind']} devices",
               "size", "median", "first", *STAGES, "pinned")
    for row in rows:
        out.add_row(_core.human_bytes(row["bytes"]), human_time(row["seconds"]),
                    human_time(row["first_s"]),
                    *(f"{100 * row['share'][name]:.0f} %" for name in STAGES),
                    _core.human_bytes(row["pinned_bytes"]))
    return out


def record(row, collective, ranks):
    """A record of `paceline bench --json`."""
    return {"collective": collective, "bytes": row["bytes"], "ranks": ranks, "algorithm": None,
            "variant": "staged", "library": "paceline", "segments": None, "segment_bytes": None,
            "combines": True, "device": row["kind"], "chosen": True, "interval": None,
            "time_us_median": 1e6 * row["seconds"], "time_us_first": 1e6 * row["first_s"],
            "share": row["share"], "pinned_bytes": row["pinned_bytes"]}


if __name__ == "__main__":
    one_rank(measure)
