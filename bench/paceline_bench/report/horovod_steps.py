"""A step of training as Horovod takes it, under a model of the network.

How long an allreduce takes, and which gradients share one.
"""

from functools import lru_cache

from paceline import _core
from paceline.kvstore import records

from paceline_bench.report.networks import EDR
from paceline_bench.report.simulated import Way, seconds
from paceline_bench.train import perfect

AUTO, RING, PARTS, OURS = "AUTO (rabenseifner)", "RNG", "RNG in four parts", "ours, chosen"
CASES = ((8, 32), (9, 64))  # nodes, pictures of each and step: with more, it computes longer


@lru_cache(maxsize=None)
def record_of(name):
    """The recorded passes of a network."""
    return records.read(name)


@lru_cache(maxsize=None)
def call_s(label, ranks, nbytes):
    """An allreduce under EDR, by one of the four."""
    if label != OURS:
        way = Way("allreduce", "rabenseifner" if label == AUTO else "ring",
                  segments=4 if label == PARTS else 1)
        return seconds(way, ranks, nbytes, EDR)
    choice = _core.choose("allreduce", ranks, nbytes, machine=EDR.machine)
    from paceline.schedules import how, unit_count

    world = _core.World("allreduce", choice["algorithm"], ranks, fused=True, **how(choice))
    return world.simulate(unit_count("allreduce", ranks, nbytes), perfect.ELEMENT_BYTES,
                          EDR.machine).span_s


def step_of(name, pictures):
    """The perfect.Step of a network; the document does not say for how long one computes."""
    left, communicating = sum(perfect.ELEMENT_BYTES * row[1] for row in record_of(name)["keys"]), 0
    while left > 0:
        communicating += call_s(AUTO, CASES[0][0], min(left, perfect.FUSED_BYTES))
        left -= perfect.FUSED_BYTES
    return perfect.step_of(record_of(name), communicating * pictures / CASES[0][1])


def speeds(name, ranks, pictures):
    """{way: seconds of a step}."""
    step = step_of(name, pictures)
    return {label: perfect.fused(step, lambda nbytes, label=label: call_s(label, ranks, nbytes))[0]
            for label in (AUTO, RING, PARTS, OURS)}
