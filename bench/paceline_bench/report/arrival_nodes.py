"""Several ranks on each of several nodes, one of which is late: what is left, simulated.

A node's sum waits for the last of its ranks, so one late rank makes its node late. Every line uses
the library's choice for its numbers, and so it does not switch when the choice would not.
"""

import functools

from paceline import _core
from paceline.schedules import how, unit_count

from paceline_bench.report.claims import ARRIVAL
from paceline_bench.report.lines import Figure, Line, Model, Panel, Point
from paceline_bench.report.simulated import ELEMENT
from paceline_bench.report.verdicts import Cell

NAME = "ranks that share nodes"
NETWORK = Model("200 Mbit/s, 2 ranks a node", "lab-200mbit,ranks_per_node=2")
NODES = {"4 x 2": (2,) * 4, "8 x 2": (2,) * 8, "3 + 2 + 3 + 2": (3, 2, 3, 2)}
DRAWN = ("4 x 2", "8 x 2")
JUDGED = "4 x 2"
SIZES = tuple(1 << k for k in range(18, 25))   # 256 KiB to 16 MiB
TABLED = 4 << 20
FROM = 1 << 20   # goals about calls without a late rank are of longer messages
LATE = 3         # the rank
AFTER = (0.5, 1, 2)   # times n/rate of a node's link
IN_TIME = 0
STATIC = "without a prediction"
WAYS = {STATIC: ("stable", False), "fast": ("fast", True), "stable": ("stable", True)}
GOALS = {way: ARRIVAL[f"goal: late, {way}"].high for way in ("fast", "stable")}
HEADINGS = ("nodes of", "", "no rank late", "named, in time", *(f"late by {at:g}" for at in AFTER),
            f"its node, by {AFTER[-1]:g}")


def nodes_of(sizes):
    """The node of each rank."""
    return [node for node, ranks in enumerate(sizes) for _ in range(ranks)]


def node_mates(sizes):
    """The late rank and the others of its node."""
    nodes = nodes_of(sizes)
    return tuple(rank for rank, node in enumerate(nodes) if node == nodes[LATE])


@functools.cache
def world_of(sizes, nbytes, way, named):
    """The World of a call that knows these ranks to be late, if it may know."""
    numbers, knows = WAYS[way]
    nodes, late = nodes_of(sizes), list(named) if knows else []
    choice = _core.choose("allreduce", len(nodes), nbytes, machine=NETWORK.machine, nodes=nodes,
                          late=late, numbers=numbers)
    return _core.World("allreduce", choice["algorithm"], len(nodes), fused=True, nodes=nodes,
                       late=late, **how(choice))


def wire_s(nbytes):
    """n/rate of a node's link: the time of n bytes from one node to another."""
    return _core.bound_s("broadcast", 4, nbytes, NETWORK.machine)


def left(sizes, nbytes, way, named, after, late=(LATE,)):
    """Time from the last entry to the last exit, over n/rate; these ranks are late by `after`."""
    ranks = sum(sizes)
    arrivals = [after * wire_s(nbytes) if rank in late else 0.0 for rank in range(ranks)]
    trace = world_of(sizes, nbytes, way, named).simulate(
        unit_count("allreduce", ranks, nbytes), ELEMENT, NETWORK.machine, arrivals)
    return (max(trace.exit_s) - max(arrivals)) / wire_s(nbytes)


def panel(name, after):
    """The Panel of a rank that is named late, and comes so much after the others."""
    sizes = NODES[name]
    lines = tuple(
        Line(way, NETWORK, tuple(
            Point(sum(sizes), nbytes, left(sizes, nbytes, way, (LATE,), after))
            for nbytes in SIZES)) for way in WAYS)
    marks = [("bound", 1.0)]
    if name == JUDGED and after >= 1:
        marks += [(f"goal, {way}: {goal}", goal) for way, goal in GOALS.items()]
    return Panel(title_of(name, after), "allreduce", lines, {}, value="left, over n/rate",
                 marks=tuple(marks))


def title_of(name, after):
    """The title of a panel."""
    said = f"late by {after:g} n/rate" if after else "named late, in time"
    return f"{name} ranks, rank {LATE} {said}"


def row_of(name, way):
    """The row of TABLED: what is left, for one late rank, and for its whole node."""
    sizes = NODES[name]
    found = [left(sizes, TABLED, way, (), IN_TIME), left(sizes, TABLED, way, (LATE,), IN_TIME),
             *(left(sizes, TABLED, way, (LATE,), after) for after in AFTER),
             left(sizes, TABLED, way, node_mates(sizes), AFTER[-1], node_mates(sizes))]
    return (name, way, *(f"{value:.2f}" for value in found))


def figures(files):
    """The Figure of this part; nothing of it is measured."""
    about = (
        "Seconds from the last entry to the last exit of an allreduce, over n/rate of a node's "
        f"link ({NETWORK.name}): for the choice without a prediction and, with numbers=fast and "
        f"stable, for a call that predicts rank {LATE} to be late. The rank enters after the "
        "others, or in time, which is a wrong prediction. Bound: the input of a late node still "
        f"has to leave it. The table is for {_core.human_bytes(TABLED)}. With fewer than four "
        "nodes no rank is predicted.")
    return [Figure(
        NAME, "left after the last entry, one of a node's ranks late, simulated", about,
        tuple(panel(name, after) for after in (*AFTER, IN_TIME) for name in DRAWN), drawn="ratios",
        table=(HEADINGS, *(row_of(name, way) for name in NODES for way in WAYS)))]
def late(panel, way):
    """Cells of what is left if the rank is late."""
    return [Cell("simulated", f"{_core.human_bytes(point.bytes)}, {panel.title.partition(', ')[2]}",
                 point.seconds)
            for line in panel.lines if line.label == way for point in line.points]


def wrong(panel, way):
    """Cells of what a wrong guess costs, as a multiple of the call without a prediction."""
    static, own = ({point.bytes: point.seconds for line in panel.lines if line.label == one
                    for point in line.points} for one in (STATIC, way))
    return [Cell("simulated", _core.human_bytes(nbytes), took / static[nbytes], group=way)
            for nbytes, took in own.items() if nbytes >= FROM]


def given_up(way):
    """Cells of what it costs to be ready to switch, while no rank is late; the same multiple."""
    return [Cell("simulated", _core.human_bytes(nbytes),
                 left(NODES[JUDGED], nbytes, way, (), IN_TIME)
                 / left(NODES[JUDGED], nbytes, STATIC, (), IN_TIME), group=way)
            for nbytes in SIZES if nbytes >= FROM]


def cells(named):
    """{claim: its Cells}; `named`: {name: Figure}."""
    panels = {panel.title: panel for panel in named[NAME].panels}
    judged = [panels[title_of(JUDGED, after)] for after in AFTER if after >= 1]
    in_time = panels[title_of(JUDGED, IN_TIME)]
    return {
        **{f"goal: late, {way}": [cell for panel in judged for cell in late(panel, way)]
           for way in GOALS},
        "goal: named, in time": [cell for way in GOALS for cell in wrong(in_time, way)],
        "goal: none late": [cell for way in GOALS for cell in given_up(way)]}
