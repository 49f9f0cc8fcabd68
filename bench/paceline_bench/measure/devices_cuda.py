"""Collectives between CUDA devices, measured: `paceline bench --device cuda`.

Times a linear pipeline (LP), a minimal spanning tree (MST), a bidirectional exchange (BE), and the
library's choice, beside the bound of the machine's copies and sums, which are measured in the same
process, and NCCL, if torch has it and every participant a device of its own. With fewer devices
than participants these share them: then all that is moved passes through one memory.
"""

from paceline import _core, device, topology
from paceline.device_rates import LONG, REPEATS, arrays_on, call_s, machine_of, median_s, rates
from paceline.schedules import unit_count

from paceline_bench.measure.devices import BLOCK, CHOSEN, WAYS, Row, grid, human_time, options_of

NCCL = "NCCL"
BEST_BLOCK, AS_GRAPH = "LP, best block", "LP, graph"
FEW, BATCH = 3, 8


def positions_on(devices, participants):
    """The device of each participant, near ones beside each other."""
    order = topology.near_order(devices)
    return [order[at % len(order)] for at in range(participants)]


def graph_s(group, collective, arrays, repeats=REPEATS, **options):
    """Seconds of one start of a plan, which is a graph of the driver, of BATCH one behind the
    other."""
    plan = group.plan(collective, arrays, **options)

    def action():
        for _ in range(BATCH):
            plan.start()
        group.synchronize()

    return median_s(action, repeats) / BATCH


def bound_s(collective, positions, nbytes, copies, sums):
    """Seconds to move and add what must be moved and added, at the measured rates.

    On devices of their own each receives and sends the message once, an allreduce twice. On one
    device every message passes through the same memory: (d-1) n of a broadcast or reduce, 2 (d-1) n
    of an allreduce, and the sums besides.
    """
    hops = len(positions) - 1 if len(set(positions)) == 1 else 1
    way = {"broadcast": 1, "reduce": 1, "allreduce": 2}[collective] if len(positions) > 1 else 0
    summed = 0 if collective == "broadcast" or len(positions) == 1 else hops * nbytes / sums
    moved = way * hops * nbytes / copies
    return moved + summed if len(set(positions)) == 1 else max(moved, summed)


def nccl_s(collective, positions, nbytes):
    """Seconds by torch's NCCL in one process; None if it cannot run."""
    if len(set(positions)) < len(positions) or len(positions) < 2:
        return None
    try:
        import torch
        from torch.cuda import nccl
    except ImportError:
        return None
    if not torch.cuda.is_available() or torch.cuda.device_count() < len(positions):
        return None
    tensors = [torch.ones(nbytes // 4, device=f"cuda:{where}") for where in positions]
    call = {"broadcast": nccl.broadcast, "reduce": nccl.reduce, "allreduce": nccl.all_reduce}

    def action():
        call[collective](tensors)
        for where in positions:
            torch.cuda.synchronize(where)

    return median_s(action)


def measure(collective, sizes, participants, machine, block=BLOCK, devices=None):
    """A Row for each size and way, and the number of devices. machine: None: measured."""
    devices = devices or device.cuda()
    positions = positions_on(devices, participants)
    found = rates(devices, positions, max(*sizes, LONG))
    copies, sums, _ = found
    group = device.Group(devices, positions, machine or machine_of(found, positions))
    rows = []
    for nbytes in sizes:
        bound = bound_s(collective, positions, nbytes, copies, sums)
        arrays = arrays_on(devices, positions, unit_count(collective, participants, nbytes))
        for way, algorithm in {**WAYS[collective], CHOSEN: ""}.items():
            options = options_of(way, nbytes, block)
            if algorithm:
                options = {**options, "algorithm": algorithm}
            took = call_s(group, collective, arrays, **options)
            rows.append(Row(collective, way, algorithm, participants, nbytes, took, bound))
        for way, timed in ((BEST_BLOCK, call_s), (AS_GRAPH, graph_s)):
            took, best = best_block(timed, group, collective, arrays, nbytes)
            rows.append(Row(collective, way, "chain", participants, nbytes, took, bound, best))
        took = nccl_s(collective, positions, nbytes)
        if took is not None:
            rows.append(Row(collective, NCCL, "", participants, nbytes, took, bound))
    return rows, len(set(positions))


def best_block(timed, group, collective, arrays, nbytes):
    """(Seconds, bytes of a block) of the linear pipeline that takes least, with blocks from 64 KiB
    on, four times as long each, up to the whole message. timed: call_s or graph_s."""
    blocks, block = [], BLOCK
    while block < nbytes:
        blocks.append(block)
        block *= 4
    return min((timed(group, collective, arrays, FEW, algorithm="chain",
                      **options_of("LP", nbytes, block)), block)
               for block in (*blocks, max(nbytes, 1)))


def about(devices, count):
    """Facts about the devices for records: the name of the first, and how many were used."""
    return {"gpu": devices.describe(0)["name"], "devices": count}


def table(rows, devices):
    """The table for the terminal."""
    first = rows[0]
    ways = list(dict.fromkeys(row.way for row in rows))
    shared = "" if devices == first.devices else f" that share {devices}"
    out = grid(f"{first.collective} between {first.devices} participants{shared}, CUDA devices",
               "size", *ways, "copy bound", "bound / best")
    for nbytes in dict.fromkeys(row.bytes for row in rows):
        some = {row.way: row for row in rows if row.bytes == nbytes}
        ours = min(row.seconds for way, row in some.items() if way != NCCL)
        bound = next(iter(some.values())).bound_s
        out.add_row(_core.human_bytes(nbytes),
                    *(human_time(some[way].seconds) if way in some else "-" for way in ways),
                    human_time(bound), f"{bound / ours:.2f}")
    return out
