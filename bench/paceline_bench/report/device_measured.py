"""Measurements between devices, for `paceline report device`: files of `paceline bench
--device cuda --json` and `--device staged --json`, and bench/results/gpu.csv of `./dev gpu`."""

import csv
from pathlib import Path

from paceline import _core
from paceline.errors import UsageError

from paceline_bench.measure import devices, stages
from paceline_bench.report import measured
from paceline_bench.report.lines import Line, Panel, Records, split

COLUMNS = ("date", "gpu", "device", "collective", "bytes", "participants", "devices", "way",
           "time_us_median", "bound_us")


def read(file):
    """The Measured of a file. Raises UsageError."""
    if Path(file).suffix != ".csv":
        return measured.read(file)
    with Path(file).open(newline="", encoding="utf-8") as lines:
        found = csv.DictReader(lines)
        lacking = [name for name in COLUMNS if name not in (found.fieldnames or ())]
        if lacking:
            raise UsageError(f"report: {Path(file).name} has no column {', '.join(lacking)}; it "
                             "takes what ./dev gpu writes, or files of paceline bench --device.")
        rows = list(found)
    dates = sorted({row["date"] for row in rows})
    origin = Records(Path(file).name, "one machine", "", dates[-1] if dates else "",
                     ", ".join(sorted({row["gpu"] for row in rows})), "./dev gpu")
    return [measured.Measured(origin, "default", "", tuple(record_of(row) for row in rows))]


def record_of(row):
    """A record of `paceline bench --json`."""
    return {"collective": row["collective"], "bytes": int(row["bytes"]),
            "ranks": int(row["participants"]), "devices": int(row["devices"] or 0),
            "gpu": row["gpu"], "device": row["device"], "variant": row["way"],
            "time_us_median": float(row["time_us_median"]),
            "bound_us": float(row["bound_us"] or 0), "interval": None}


def of_cuda(files):
    """(origin, record) of all that ran on GPUs."""
    return [(file.origin, row) for file in files for row in file.records
            if row.get("device") == "cuda" and row["variant"] != "staged"]


def place(row):
    """The devices that it ran on: participants may share one."""
    gpu = row.get("gpu") or "CUDA device"
    return f"{row.get('devices') or row['ranks']} x {gpu}"


def made(groups, over):
    """Panels of {(collective, title): rows}, a line for each way and origin."""
    order = list(devices.WAYS)
    for (collective, title), some in sorted(
            groups.items(), key=lambda one: (order.index(one[0][0]), one[0][1])):
        lines, bounds = {}, {}
        for origin, row in some:
            lines.setdefault((row["variant"], origin), []).append(measured.point(row))
            if row["bound_us"]:
                bounds[row[over]] = row["bound_us"] / 1e6
        yield from split(Panel(title, collective, tuple(
            Line(way, origin, tuple(sorted(points, key=lambda p: (p.ranks, p.bytes))))
            for (way, origin), points in lines.items()), bounds, over))


def over_sizes(files):
    """Panels of figure 3: for each number of participants all ways, by size."""
    groups = {}
    for origin, row in of_cuda(files):
        title = f"{row['collective']}, {row['ranks']} participants on {place(row)}"
        groups.setdefault((row["collective"], title), []).append((origin, row))
    return tuple(made(groups, "bytes"))


def over_devices(files):
    """Panels of figure 4: the longest message that several numbers of participants have."""
    groups = {}
    rows = [(origin, row) for origin, row in of_cuda(files) if row["variant"] in
            ("LP", "MST", "BE")]
    for collective in devices.WAYS:
        some = [(origin, row) for origin, row in rows if row["collective"] == collective]
        counts = {}
        for _, row in some:
            counts.setdefault(row["bytes"], set()).add(row["ranks"])
        common = [nbytes for nbytes, ranks in counts.items() if len(ranks) > 1]
        if common:
            title = f"{collective} of {_core.human_bytes(max(common))}, measured"
            groups[collective, title] = [(o, row) for o, row in some
                                         if row["bytes"] == max(common)]
    return tuple(made(groups, "ranks"))


def of_stages(files):
    """(file, record) of the pipeline through the host."""
    return [(file, row) for file in files for row in file.records if row.get("share")]


def stage_panels(files):
    """The pipeline through the host, by size."""
    groups = {}
    for file, row in of_stages(files):
        title = f"{row['collective']}, {row['ranks']} ranks, {row['device']} devices"
        groups.setdefault((row["collective"], title), []).append(
            (file.origin, {**row, "variant": "through the host", "bound_us": 0}))
    return tuple(made(groups, "bytes"))


def stage_table(files):
    """Rows of words: the share of the calls' time in which each stage was at work."""
    some = of_stages(files)
    if not some:
        return ()
    return (("collective", "ranks", "devices", "message", "median", "first call", *stages.STAGES),
            *((row["collective"], str(row["ranks"]), row["device"],
               _core.human_bytes(row["bytes"]), devices.human_time(row["time_us_median"] / 1e6),
               devices.human_time(row["time_us_first"] / 1e6),
               *(f"{100 * row['share'][name]:.0f} %" for name in stages.STAGES))
              for _, row in some))
