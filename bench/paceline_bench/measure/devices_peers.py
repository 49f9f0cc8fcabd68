"""Processes that reach each other's devices: `paceline bench --device peers`.

Ranks on this machine, each with a device: CUDA's if there is one (of which several ranks may
share one, over CUDA IPC), else emulated. For each size the median call.
"""

from paceline_bench.measure.device_ranks import (
    follow_s,
    one_rank,
    run as run_ranks,
    slowest,
    timed_calls,
)


def algorithm_of(one, spec, array):
    """The algorithm of the calls."""
    return one.explain(spec["collective"], array, **spec["options"]).partition(",")[0]


def measure(spec, comm, devices):
    """On one rank: for each size seconds of every call, and the kind of device."""
    from paceline import device
    from paceline.schedules import unit_count

    mine = comm.rank % devices.count
    peers = device.Peers(comm, devices, mine)
    found = []
    for nbytes in spec["sizes"]:
        array = device.empty(devices, mine, unit_count(spec["collective"], comm.size, nbytes))
        found.append({"bytes": nbytes, "kind": devices.kind,
                      "times": timed_calls(comm, peers, spec, array),
                      "follow_s": follow_s(comm, peers, spec, array),
                      "algorithm": algorithm_of(peers, spec, array),
                      "devices": min(devices.count, comm.size),
                      "gpu": devices.describe(mine)["name"]})
        comm.barrier()
    return found


def run(collective, sizes, ranks, options):
    """Starts the ranks; per size the slowest rank's median and first call in seconds, with the
    facts of rank 0."""
    return [{**found[0], **slowest(found), "follow_s": max(one["follow_s"] for one in found)}
            for found in run_ranks("paceline_bench.measure.devices_peers", collective, sizes, ranks,
                                   options)]


def table(rows, collective, ranks):
    """The table for the terminal."""
    from paceline import _core
    from paceline.units import human_time

    from paceline_bench.measure.devices import grid

    kind, count = rows[0]["kind"], rows[0]["devices"]
    shared = f" that share {count}" if kind == "cuda" and count < ranks else ""
    out = grid(f"{collective} between {ranks} processes with {kind} devices{shared}",
               "size", "median", "first", "of 8", "MB/s", "algorithm")
    for row in rows:
        out.add_row(_core.human_bytes(row["bytes"]), human_time(row["seconds"]),
                    human_time(row["first_s"]), human_time(row["follow_s"]),
                    f"{row['bytes'] / row['follow_s'] / 1e6:.4g}",
                    row["algorithm"])
    return out


def record(row, collective, ranks):
    """A record of `paceline bench --json`."""
    return {"collective": collective, "bytes": row["bytes"], "ranks": ranks,
            "algorithm": row["algorithm"], "variant": "peers", "library": "paceline",
            "segments": None, "segment_bytes": None, "combines": True, "device": row["kind"],
            "chosen": True, "interval": None, "time_us_median": 1e6 * row["seconds"],
            "time_us_first": 1e6 * row["first_s"], "time_us_follow": 1e6 * row["follow_s"],
            "bound_us": 0, "gpu": row["gpu"],
            "devices": row["devices"]}


if __name__ == "__main__":
    one_rank(measure)
