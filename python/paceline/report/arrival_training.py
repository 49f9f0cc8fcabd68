"""Figures 9 and 10 of the publication, simulated: images/s of training whose nodes differ in speed.

A step computes as long as on the publication's GPUs; of each node and step it takes longer by a
drawn share. Gradients are recorded ones, in buffers of 64 MiB, exchanged one after the other as
they become ready. A rank enters an allreduce when its gradients are there and it has left the one
before. With a phase inside nodes that follows arrival an allreduce is three collectives here, each
of which begins on a rank when that rank has left the one before; beside it is the same without.
"""

import functools
import json
import random
from importlib import resources

from paceline import _core
from paceline.cli.common import unit_count
from paceline.report.lines import Figure, Line, Model, Panel, Point
from paceline.report.simulated import ELEMENT
from paceline.report.verdicts import Claim, judged
from paceline.train import perfect

PER_NODE, IMAGES, STEPS = 4, 32, 3
BUFFER = 64 << 20   # Horovod's
SLOWER = 0.3        # of a step's computing, at most
COMPUTE_S = {"resnet50": 0.110, "vgg11": 0.150}   # a V100 on 32 images, forward and backward
NODE_COUNTS, NODES_10 = (2, 4, 8, 16, 32), 16
INSIDE, ACROSS = "shm", "edr-100g"
NETWORK = Model("EDR, 4 ranks a node", f"edr-100g,ranks_per_node={PER_NODE}")
FLAT = "Def-MVAPICH: flat RSA"
HIERARCHICAL = "Hierarchical-RSA"
PHASES = "the same, in three phases"
LARGE = "+Large-PAP-aware: the first by arrival"
BLOCK = 512 << 10   # that passes through shared memory at a time


def simulated(collective, algorithm, nbytes, machine, arrivals, **more):
    """When each rank leaves."""
    world = _core.World(collective, algorithm, len(arrivals), fused=True, arrivals=list(arrivals),
                        **more)
    count = unit_count(collective, len(arrivals), nbytes)
    return list(world.simulate(count, ELEMENT, machine, list(arrivals)).exit_s)


def flat(nbytes, arrivals):
    """All ranks at once."""
    return simulated("allreduce", "rabenseifner", nbytes, NETWORK.machine, arrivals)


def hierarchical(nbytes, arrivals):
    """Inside nodes, between them and inside, in one schedule."""
    return simulated("allreduce", "hierarchical_rsa", nbytes, NETWORK.machine, arrivals,
                     group=PER_NODE)


def phases(inside, nbytes, arrivals):
    """Reduce inside nodes, RSA between their first ranks, broadcast inside."""
    exits, nodes = [], range(0, len(arrivals), PER_NODE)
    blocks = max(1, nbytes // BLOCK)
    for first in nodes:
        exits += simulated("reduce", inside, nbytes, INSIDE, arrivals[first : first + PER_NODE],
                           blocks=blocks)
    leaders = simulated("allreduce", "rabenseifner", nbytes, ACROSS,
                        [exits[first] for first in nodes])
    for first, at in zip(nodes, leaders):
        exits[first] = at
    done = []
    for first in nodes:
        done += simulated("broadcast", "staged", nbytes, INSIDE, exits[first : first + PER_NODE],
                          blocks=blocks)
    return done


WAYS = {FLAT: flat, HIERARCHICAL: hierarchical, PHASES: functools.partial(phases, "staged"),
        LARGE: functools.partial(phases, "arrival_chain")}


@functools.cache
def step_of(model):
    """A recorded step, scaled to what a GPU takes."""
    file = resources.files("paceline.train") / "recorded" / f"{model}.json"
    return perfect.step_of(json.loads(file.read_text(encoding="utf-8")), COMPUTE_S[model])


def images_per_s(model, nodes, way):
    """Of a rank, with that many nodes; the same draws for all ways."""
    step, draw = step_of(model), random.Random(f"{model} {nodes}")
    buffers = perfect.buckets(step, BUFFER, BUFFER)
    begin = [0.0] * (nodes * PER_NODE)
    for _ in range(STEPS):
        slow = [1 + draw.uniform(0, SLOWER) for _ in range(nodes)]
        left = begin
        for keys in buffers:
            ready_s = step.forward_s + max(step.ready_s[key] for key in keys)
            arrivals = [max(begin[rank] + slow[rank // PER_NODE] * ready_s, left[rank])
                        for rank in range(len(begin))]
            left = WAYS[way](sum(step.bytes[key] for key in keys), arrivals)
        begin = [max(left[rank], begin[rank] + slow[rank // PER_NODE] * step.compute_s)
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
    rows = [(model, *(f"{images_per_s(model, NODES_10, way):.1f}" for way in WAYS))
            for model in COMPUTE_S]
    return [
        Figure("figure 9", "images/s over ranks, simulated",
               f"Training of recorded networks; each node computes up to {100 * SLOWER:.0f} % "
               "longer, drawn for each step. Means of "
               f"{STEPS} steps in a row.", tuple(over_nodes(model) for model in COMPUTE_S),
               drawn="ratios"),
        Figure("figure 10", f"images/s of a rank, {NODES_10} nodes of {PER_NODE}, simulated",
               "The same, with the phase inside nodes along the order of arrival, too. The "
               "publication's form for short messages is left out: it found nothing to gain by "
               "it with four ranks a node.", (), table=(("", *WAYS), *rows))]


def claims(named):
    """The Claims about these figures; `named`: {name: Figure}."""
    ratios = []
    for panel in named["figure 9"].panels:
        plain, other = (line.points for line in panel.lines)
        ratios += [b.seconds / a.seconds for a, b in zip(plain, other)]
    rows = [[float(cell) for cell in row[1:]] for row in named["figure 10"].table[1:]]
    chain = [row[3] / row[2] for row in rows]
    return [
        Claim("figure 9", "With the hierarchical algorithm training is up to 17 % faster "
              "(ResNet-50), 9 % (DenseNet201); VGG16, which is balanced, is not.",
              (judged("simulated", f"{min(ratios):.3f} to {max(ratios):.3f} times as many images/s",
                      max(ratios) > 1.05, "the model has no contention that a flat algorithm "
                      "would add"),)),
        Claim("figure 10", "With the chain by arrival inside nodes training is faster still.",
              (judged("simulated", ", ".join(f"{one:.3f}" for one in chain) + " times as many "
                      "images/s as without it", min(chain) > 1.01,
                      "ranks of a node come together here"),))]
