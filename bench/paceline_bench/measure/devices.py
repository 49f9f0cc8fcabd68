"""Collectives between devices, in model time: `paceline bench --device emulated`.

Times a linear pipeline (LP, in blocks of 64 KiB or of a length of its own), a minimal spanning tree
(MST) and a bidirectional exchange (BE) on devices with a copy engine each way, beside the bound of
links and copy engines. Nothing is moved and nothing is measured: the same machine always
gives the same table.
"""

from dataclasses import dataclass

import numpy
from paceline import _core, device
from paceline.schedules import unit_count

BLOCK = 64 << 10  # bytes, of a linear pipeline
MOST_BLOCKS, WINDOW = 1024, 64
OWN_BLOCK, CHOSEN = "LP, own block", "chosen"
EXCHANGES = {"broadcast": "scatter_allgather", "reduce": "scatter_gather",
             "allreduce": "rabenseifner"}
WAYS = {collective: {"LP": "chain", OWN_BLOCK: "chain", "MST": "binomial", "BE": exchange}
        for collective, exchange in EXCHANGES.items()}


@dataclass(frozen=True)
class Row:
    """One way at one size."""

    collective: str
    way: str  # LP, MST, BE or CHOSEN
    algorithm: str  # empty: chosen
    devices: int
    bytes: int
    seconds: float
    bound_s: float
    block: int = 0  # bytes, of a pipeline whose block was found by trying; else 0


def options_of(way, nbytes, block):
    """Options that cut a way's message."""
    if way != "LP":
        return {} if way in (OWN_BLOCK, CHOSEN) else {"segments": 1}
    blocks = max(1, min(-(-nbytes // block), MOST_BLOCKS))
    return {"segments": blocks, "window": min(blocks, WINDOW)}


def seconds(collective, algorithm, devices, nbytes, machine, options):
    """Seconds from the first start to the last end of a plan, in model time."""
    emulated = device.timed(devices, moves=False)
    group = device.Group(emulated, machine=machine)
    count = unit_count(collective, devices, nbytes)
    arrays = [numpy.empty(count, "float32") for _ in range(devices)]
    if algorithm:
        options = {**options, "algorithm": algorithm}
    group.plan(collective, arrays, **options).start()
    return max((end for _, end in emulated.spans(machine)), default=0.0)


def measure(collective, sizes, devices, machine, block=BLOCK):
    """A Row for each size and way."""
    rows = []
    for nbytes in sizes:
        bound = _core.bound_s(collective, devices, nbytes, machine)
        for way, algorithm in {**WAYS[collective], CHOSEN: ""}.items():
            took = seconds(collective, algorithm, devices, nbytes, machine,
                           options_of(way, nbytes, block))
            rows.append(Row(collective, way, algorithm, devices, nbytes, took, bound))
    return rows


def human_time(seconds):
    """A time as text; short ones are those of a model."""
    from paceline.units import human_time as longer

    return longer(seconds) if seconds >= 1e-6 or not seconds else f"{1e9 * seconds:.3g} ns"


def ratio(whole, part):
    """A ratio of times, with the digits that count."""
    if not part:
        return "-"
    times = whole / part
    return f"{times:.2f}" if times < 10 else f"{times:.0f}"


def grid(title, *names):
    """A Table of numbers that a terminal of 80 columns shows without breaking them."""
    from rich import box
    from rich.table import Table

    out = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False,
                padding=(0, 1 if len(names) <= 8 else 0, 0, 0))
    for name in names:
        out.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True, vertical="bottom")
    return out


def table(rows, machine):
    """The table for the terminal."""
    first = rows[0]
    out = grid(f"{first.collective} between {first.devices} emulated devices, {machine}",
               "size", *WAYS[first.collective], CHOSEN, "bound", "best / bound")
    for nbytes in dict.fromkeys(row.bytes for row in rows):
        some = [row for row in rows if row.bytes == nbytes]
        best = min(row.seconds for row in some)
        bound = some[0].bound_s
        out.add_row(_core.human_bytes(nbytes), *(human_time(row.seconds) for row in some),
                    human_time(bound), ratio(best, bound))
    return out


def record(row, kind="emulated", on=()):
    """A record of `paceline bench --json`. `on`: facts about the devices."""
    return {"collective": row.collective, "bytes": row.bytes, "ranks": row.devices,
            "algorithm": row.algorithm or None, "variant": row.way,
            "library": "nccl" if row.way == "NCCL" else "paceline",
            "segments": None, "segment_bytes": row.block or None, "combines": True, "device": kind,
            "chosen": row.way == CHOSEN, "time_us_median": 1e6 * row.seconds, "interval": None,
            "bound_us": 1e6 * row.bound_s, **dict(on)}
