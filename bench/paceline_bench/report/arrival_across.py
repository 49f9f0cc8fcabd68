"""Across nodes: what is left to do after the last entry, simulated."""

import functools
import random

from paceline import _core
from paceline.schedules import unit_count

from paceline_bench.report import arrival_parts
from paceline_bench.report.lines import Figure, Line, Model, Panel, Point
from paceline_bench.report.simulated import ELEMENT
from paceline_bench.report.verdicts import Cell

LONG = 64 << 20
PER_NODE = 4
ALPHA_S, BETA_S = 5e-6, 8e-10  # 10 Gbit/s
FLAT = Model("10 Gbit/s, no sums", "alpha_us=5,gbit_per_s=10,reduce_gbyte_per_s=0")
NODES = Model("EDR, 4 ranks a node", f"edr-100g,ranks_per_node={PER_NODE}")
RANKS = (8, 16, 32, 64, 128, 256)
NODE_COUNTS = (2, 4, 8, 16, 32)
SIZES = tuple(1 << k for k in range(16, 27, 2))  # 64 KiB to 64 MiB
MIF_ACROSS, MIF_INSIDE = 5.85, 2  # the publication's: cluster-wide, of long messages; on a node
MOST_STEPS = 6000  # of a rank's schedule in the picture
SMALL_PAP, LARGE_PAP = "hierarchical_rsa, Small-PAP inside", "hierarchical_rsa, Large-PAP inside"
PARTS = {"hierarchical_rsa": arrival_parts.PLAIN, SMALL_PAP: arrival_parts.SMALL,
         LARGE_PAP: arrival_parts.LARGE}
BY_NODES = (*PARTS, "multilane")
STATIC = "without a prediction"
TAILS = ("tail_direct", "tail_as_ring")
CHAIN, MOST_CHAINED, CHAIN_BLOCKS = "sorted_chain", 64, 512  # ranks of a chain; for one late rank
LATE = {"one late": lambda ranks: 1, "an eighth late": lambda ranks: ranks // 8,
        "a quarter late": lambda ranks: ranks // 4}


def residual_s(world, nbytes, model, arrivals):
    """Seconds from the last entry to the last exit."""
    count = unit_count("allreduce", world.ranks, nbytes)
    trace = world.simulate(count, ELEMENT, model.machine, arrivals)
    return max(trace.exit_s) - max(arrivals)


def bound(ranks, late):
    """Bound of what is left, in n beta: the late ranks' parts still have to flow, and all sums."""
    return max(1, (ranks - 1 + late) / ranks)


def passes(ranks):
    """Number of passes of a tail among `ranks` ranks, at a fair length of its schedule."""
    return max(2, min(32, MOST_STEPS // (3 * ranks)))


def late_ranks(ranks, count):
    """A fixed random sample of `count` ranks."""
    return random.Random(ranks).sample(range(ranks), count)


def ways(ranks, late):
    """{label: World} of the forms, and of the choice without a prediction."""
    choice = _core.choose("allreduce", ranks, LONG, machine=FLAT.machine)
    found = {STATIC: _core.World("allreduce", choice["algorithm"], ranks, fused=True,
                                 segments=choice["segments"], window=choice["window"])}
    for name in TAILS:
        found[name] = _core.World("allreduce", name, ranks, fused=True, blocks=passes(ranks),
                                  late=late)
    if len(late) == 1 and ranks <= MOST_CHAINED:
        found[CHAIN] = _core.World("allreduce", CHAIN, ranks, fused=True, blocks=CHAIN_BLOCKS,
                                   late=late)
    return found


def of_late(name, count_of, model=FLAT):
    """The Panel of one share of late ranks: what is left, over the bound."""
    points = {}
    for ranks in RANKS:
        late = late_ranks(ranks, count_of(ranks))
        wire_s = LONG * BETA_S
        arrivals = [3 * wire_s if rank in late else 0.0 for rank in range(ranks)]
        for label, world in ways(ranks, late).items():
            took = residual_s(world, LONG, model, arrivals) / wire_s / bound(ranks, len(late))
            points.setdefault(label, []).append(Point(ranks, LONG, took))
    lines = tuple(Line(label, model, tuple(line)) for label, line in points.items())
    return Panel(f"{name}, 64 MiB", "allreduce", lines, {}, "ranks")


def by_node(ranks, nbytes, seed):
    """Entry times: nodes apart by MIF_ACROSS messages' times at most, their ranks by MIF_INSIDE."""
    draw = random.Random(seed)
    message_s = _core.bound_s("broadcast", 2 * PER_NODE, nbytes, NODES.machine)
    nodes = [draw.uniform(0, MIF_ACROSS * message_s) for _ in range(ranks // PER_NODE)]
    return [nodes[rank // PER_NODE] + draw.uniform(0, MIF_INSIDE * message_s)
            for rank in range(ranks)]


def by_nodes_s(name, ranks, nbytes, arrivals):
    """Seconds left after the last entry, of one of BY_NODES."""
    if name in PARTS:
        exits = arrival_parts.exits(PARTS[name], nbytes, NODES.machine, arrivals, PER_NODE)
        return max(exits) - max(arrivals)
    return residual_s(world_of(name, ranks), nbytes, NODES, arrivals)


@functools.cache
def world_of(name, ranks):
    """The World of an algorithm on nodes of PER_NODE ranks."""
    return _core.World("allreduce", name, ranks, fused=True, group=PER_NODE)


def hierarchical():
    """The Panel of table 3: the flat algorithm's time as a multiple, mean over sizes."""
    points = {name: [] for name in BY_NODES}
    for nodes in NODE_COUNTS:
        ranks = nodes * PER_NODE
        ratios = {name: [] for name in BY_NODES}
        for nbytes in SIZES:
            arrivals = by_node(ranks, nbytes, nodes)
            flat = residual_s(world_of("rabenseifner", ranks), nbytes, NODES, arrivals)
            for name, found in ratios.items():
                found.append(flat / by_nodes_s(name, ranks, nbytes, arrivals))
        for name, found in ratios.items():
            points[name].append(Point(ranks, SIZES[-1], sum(found) / len(found)))
    lines = tuple(Line(name, NODES, tuple(line)) for name, line in points.items())
    return Panel("64 KiB to 64 MiB, mean of ratios", "allreduce", lines, {}, "ranks",
                 value="speed, by flat rabenseifner's")


def figures(files):
    """The Figures of this part; nothing of it is measured."""
    return [
        Figure("left after the last entry", "simulated, over the bound",
               "Seconds from the last entry to the last exit, over max(1, (p-1+k)/p) n beta for k "
               "late ranks of p, which enter three message times after the others. A call that "
               "knows them takes a tail_* algorithm: the other ranks sum first, and the inputs of "
               "the late ranks go round in passes, in a number that keeps the schedule at some "
               "thousand steps. For one late rank among few it takes sorted_chain, in 512 blocks.",
               tuple(of_late(name, count) for name, count in LATE.items()), drawn="ratios"),
        Figure("table 3", "hierarchical and flat, simulated",
               "Time of the flat algorithm from the last entry to the last exit, over that of each "
               "form. Nodes enter at different times and the ranks of a node nearly together, as "
               "the publication reports of training. hierarchical_rsa is the publication's form, "
               "also with its Small-PAP-aware and Large-PAP-aware algorithms inside nodes; it is "
               "simulated part by part, with the nodes' sums and copies through shared memory. In "
               "multilane every rank sends to other nodes.",
               (hierarchical(),), drawn="ratios")]


def cells(named):
    """{claim: its Cells}; `named`: {name: Figure}."""
    [panel] = named["table 3"].panels
    return {"table 3": [Cell("simulated", f"{point.ranks} ranks", point.seconds)
                        for line in panel.lines if line.label == BY_NODES[0]
                        for point in line.points]}
