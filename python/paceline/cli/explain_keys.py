"""`paceline explain --keys`: the plan of a KVStore of type auto, without starting ranks."""

import os
import re
from dataclasses import dataclass

from paceline import _core
from paceline.errors import UsageError


@dataclass(frozen=True)
class Key:
    """Facts about a key that a plan needs."""

    key: str
    number: int  # in the order of the forward pass
    nbytes: int
    dtype: str = "float32"


def keys_of(words, compute_s):
    """Keys, the times at which their gradients are ready (s, by number), and a sentence about them.
    `words`: a recorded network, a file of `paceline train record`, or sizes. Raises UsageError."""
    from paceline.kvstore import records

    if not words[:1].isdigit():
        record = records.read(words)
        compute_s = compute_s or record["forward_s"] + record["backward_s"]
        keys = [Key(row[0], number, 4 * row[1]) for number, row in enumerate(record["keys"])]
        return keys, dict(enumerate(records.ready_s(record, compute_s))), (
            f"gradients become ready as recorded, forward and backward in {compute_s:.3g} s")
    keys = [Key(f"key {number}", number, nbytes) for number, nbytes in enumerate(sizes(words))]
    ready_s = {key.number: compute_s * (len(keys) - key.number) / len(keys) for key in keys}
    return keys, ready_s, (
        f"gradients become ready one after the other, the last key's first, in {compute_s:.3g} s"
        if compute_s else "all gradients are ready at once")


def sizes(words):
    """160x1KiB,25MiB -> 1024, 160 times, and 26214400."""
    found = []
    for part in words.split(","):
        match = re.fullmatch(r"(?:(\d+)x)?(\d.*)", part.strip())
        try:
            nbytes = _core.parse_bytes(match[2]) if match else 0
        except ValueError:
            nbytes = 0
        count = int(match[1] or 1) if match else 0
        if not nbytes or not count:
            raise UsageError(f"explain: '{part}' in --keys is no size; write 64KiB, or 160x1KiB "
                             "for 160 keys of 1 KiB, or the name of a recorded network.")
        found += [nbytes] * count
    return found


def plan_text(words, ranks, machine, compute_s, cores, threads, every_call):
    """The plan that rank 0 of such a job shows."""
    from paceline.kvstore.auto import OUTSTANDING, _is_against
    from paceline.kvstore.cores import Cores
    from paceline.kvstore.described import describe
    from paceline.kvstore.plan import Plan
    from paceline.kvstore.prices import Prices

    keys, ready_s, how = keys_of(words, compute_s)
    nodes = nodes_of(machine, ranks)
    prices = Prices.of(machine, ranks, nodes)
    cores = Cores(cores or len(os.sched_getaffinity(0)), ranks * threads) if nodes == 1 else None
    plan = Plan.make(keys, _is_against([ready_s[key.number] for key in keys]), prices, cores)
    order = plan.order(ready_s, prices)
    return how, describe(plan, prices, ready_s, order, OUTSTANDING, every_call)


def nodes_of(machine, ranks):
    """Number of nodes that `ranks` ranks take."""
    settings = dict(part.split("=") for part in _core.machine_settings(machine).split(","))
    return -(-ranks // int(float(settings["ranks_per_node"])))
