"""Figures 9 and 10 of the publication, simulated: images/s of training whose nodes differ in speed.

A step computes as long as on the publication's GPUs; of each node and step it takes longer by a
drawn share, in figure 10 also of each rank. Gradients are recorded ones, in buffers of 64 MiB,
exchanged one after the other as they become ready. A rank enters an allreduce when its gradients
are there and it has left the one before.
"""

import random

from paceline import _core
from paceline.schedules import unit_count

from paceline_bench.report import arrival_parts, gpu
from paceline_bench.report.lines import Figure, Line, Model, Panel, Point
from paceline_bench.report.simulated import ELEMENT
from paceline_bench.report.verdicts import Cell
from paceline_bench.train import perfect

PER_NODE, IMAGES, STEPS = 4, 32, 3
BUFFER = 64 << 20   # Horovod's
SLOWER = 0.3        # of a step's computing, at most
# The same of each rank: long messages of a node's ranks then come 0.3 times as far apart as those
# of all ranks, as in the publication's tables 1 and 2 (1.84 and 5.85).
SLOWER_INSIDE = 0.25
NETWORKS = "resnet50", "densenet201", "vgg16"
NODE_COUNTS, NODES_10 = (2, 4, 8, 16, 32), 16
NETWORK = Model("EDR, 4 ranks a node", f"edr-100g,ranks_per_node={PER_NODE}")
FLAT = "Def-MVAPICH: flat RSA"
HIERARCHICAL = "Hierarchical-RSA"
SMALL = "+Small-PAP-aware"
LARGE = "+Large-PAP-aware"
PARTS = {HIERARCHICAL: arrival_parts.PLAIN, SMALL: arrival_parts.SMALL,
         LARGE: arrival_parts.LARGE}
WAYS = (FLAT, *PARTS)


def exits(way, nbytes, arrivals):
    """Times at which ranks leave an allreduce."""
    if way in PARTS:
        return arrival_parts.exits(PARTS[way], nbytes, NETWORK.machine, list(arrivals), PER_NODE)
    world = _core.World("allreduce", "rabenseifner", len(arrivals), fused=True)
    count = unit_count("allreduce", len(arrivals), nbytes)
    return list(world.simulate(count, ELEMENT, NETWORK.machine, list(arrivals)).exit_s)


def images_per_s(model, nodes, way, inside=0.0):
    """Images/s of a rank, with that many nodes; the same draws for all ways. `inside`: the share by
    which ranks of a node differ at most."""
    step, draw = gpu.step_of(model, IMAGES), random.Random(f"{model} {nodes}")
    buffers = perfect.buckets(step, BUFFER, BUFFER)
    begin = [0.0] * (nodes * PER_NODE)
    for _ in range(STEPS):
        of_nodes = [1 + draw.uniform(0, SLOWER) for _ in range(nodes)]
        slow = [of_node + draw.uniform(0, inside) for of_node in of_nodes for _ in range(PER_NODE)]
        left = begin
        for keys in buffers:
            ready_s = step.forward_s + max(step.ready_s[key] for key in keys)
            arrivals = [max(begin[rank] + slow[rank] * ready_s, left[rank])
                        for rank in range(len(begin))]
            left = exits(way, sum(step.bytes[key] for key in keys), arrivals)
        begin = [max(left[rank], begin[rank] + slow[rank] * step.compute_s)
                 for rank in range(len(begin))]
    return IMAGES * STEPS / max(begin)


def over_nodes(model):
    """A Panel of figure 9."""
    lines = tuple(
        Line(way, NETWORK, tuple(Point(nodes * PER_NODE, 0, images_per_s(model, nodes, way))
                                 for nodes in NODE_COUNTS)) for way in (FLAT, HIERARCHICAL))
    return Panel(model, "allreduce", lines, {}, "ranks", value="images/s of a rank")


def figures(files):
    """The Figures of this part; nothing of it is measured."""
    rows = [(model, *(f"{images_per_s(model, NODES_10, way, SLOWER_INSIDE):.1f}"
                      for way in WAYS)) for model in NETWORKS]
    computing = ", ".join(f"{1e3 * gpu.compute_s(model, IMAGES):.0f} ms ({model})"
                             for model in NETWORKS)
    return [
        Figure("figure 9", "images/s over ranks, simulated",
               f"Training of recorded networks with {IMAGES} images a step. A V100 computes them "
               f"in {computing}, at the rates of a public benchmark. Each node computes up to "
               f"{100 * SLOWER:.0f} % longer, drawn for each step. Means of {STEPS} steps in a "
               "row. Hierarchical algorithms are simulated part by part, with the nodes' sums and "
               "copies through shared memory.", tuple(over_nodes(model) for model in NETWORKS),
               drawn="ratios"),
        Figure("figure 10", f"images/s of a rank, {NODES_10} nodes of {PER_NODE}, simulated",
               "The same, also with nodes that sum in the order in which their ranks enter: with a "
               "dynamic leader, or along a chain. Ranks of a node differ, too: each computes up to "
               f"{100 * SLOWER_INSIDE:.0f} % longer.", (), table=(("", *WAYS), *rows))]


def cells(named):
    """{claim: its Cells}; `named`: {name: Figure}."""
    found = {}
    for panel in named["figure 9"].panels:
        flat, other = (line.points for line in panel.lines)
        found[f"figure 9: {panel.title}"] = [
            Cell("simulated", f"{b.ranks} ranks", b.seconds / a.seconds)
            for a, b in zip(flat, other)]
    for name, way in (("small", SMALL), ("large", LARGE)):
        at = named["figure 10"].table[0].index(way)
        plain = named["figure 10"].table[0].index(HIERARCHICAL)
        found[f"figure 10: {name}"] = [Cell("simulated", row[0], float(row[at]) / float(row[plain]))
                                       for row in named["figure 10"].table[1:]]
    return found
