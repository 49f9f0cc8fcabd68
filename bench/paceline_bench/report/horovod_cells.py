"""Cells of the training page."""

from dataclasses import replace
from importlib.util import find_spec

from paceline_bench.report import horovod_gpus, replays
from paceline_bench.report.horovod import NETWORKS, PUBLISHED
from paceline_bench.report.horovod_steps import AUTO, CASES, PARTS, RING, record_of, speeds
from paceline_bench.report.verdicts import Cell

LINKS = ("alexnet", "vgg11")  # networks that are bound by links
SHORTEST = "resnet110"  # the network whose longest gradient is the shortest


def faster(way, networks=PUBLISHED):
    """Speed of a way by AUTO's, of each network and number of nodes."""
    return [Cell("simulated", f"{name}, {nodes} nodes", times[AUTO] / times[way])
            for name in networks for nodes, pictures in CASES
            for times in [speeds(name, nodes, pictures)]]


def on_gpus(way, over, networks):
    """The same on GPUs, of each network and number of pictures."""
    return [Cell("simulated", f"{name}, {pictures} pictures", times[over] / times[way])
            for name in networks for pictures in horovod_gpus.PICTURES
            for times in [horovod_gpus.speeds(name, pictures)]]


def nearer():
    """NCCL's lead with many pictures, by its lead with few."""
    few, many = horovod_gpus.PICTURES
    lead = {(name, pictures): times[horovod_gpus.IN_PARTS] / times[horovod_gpus.STRAIGHT]
            for name in LINKS for pictures in horovod_gpus.PICTURES
            for times in [horovod_gpus.speeds(name, pictures)]}
    return [Cell("simulated", name, lead[name, many] / lead[name, few]) for name in LINKS]


def counted():
    """Table 2: (parameters, flops) by the published ones; flops if there is torch to count."""
    parameters = [Cell("counted", name, sum(row[1] for row in record_of(name)["keys"]) / known[0])
                  for name, known in PUBLISHED.items()]
    if not find_spec("torch"):
        return parameters, []
    from paceline_bench.networks import models

    return parameters, [Cell("counted", name, models.sizes_of(name)[1] / known[1])
                        for name, known in PUBLISHED.items()]


def longest(name):
    """Values of the longest gradient."""
    return max(row[1] for row in record_of(name)["keys"])


def measured(figure, way, other, networks=()):
    """Cells of figure 9 by what files compare, launch by launch, of each loop; of all networks
    unless some are named."""
    found = []
    for one in figure.compared:
        loop, _, library = one.way.partition(":")
        if (library, one.other) == (way, f"{loop}:{other}") and (
                not networks or one.model in networks):
            found.append(replace(one.cell, group=f"{replays.LOOPS[loop]}, {one.place}"))
    return found


def cells(figures):
    """{claim: its Cells}."""
    parameters, flops = counted()
    straight, blocking = horovod_gpus.STRAIGHT, horovod_gpus.BLOCKING
    figure, blocked = figures[1], replays.OVER_MPI
    return {
        "table 2: parameters": parameters, "table 2: flops": flops,
        "figure 8": [Cell("counted", name, longest(name) / longest(SHORTEST))
                     for name in NETWORKS if name != SHORTEST],
        "figure 9: ring": faster(RING) + measured(figure, replays.RING, blocked),
        **{f"figure 9: {name}": faster(PARTS, [name]) + measured(
            figure, replays.RING_PARTS, blocked, [name]) for name in PUBLISHED},
        "figure 9: non-blocking": measured(figure, replays.NON_BLOCKING, blocked),
        "figure 9: parts": measured(figure, replays.IN_PARTS, blocked),
        "figure 9: parts alone": measured(figure, replays.IN_PARTS, replays.NON_BLOCKING),
        "figure 9: ours": measured(figure, replays.OURS, replays.IN_PARTS),
        "figure 10: links": on_gpus(straight, blocking, LINKS),
        "figure 10: computing": on_gpus(straight, blocking, ("resnet50",)),
        "figure 10: parts": on_gpus(horovod_gpus.IN_PARTS, blocking, LINKS),
        "figure 10: near": nearer()}
