"""Several ranks on each of several nodes, one of which is late: what is left, simulated.

A node's sum waits for the last of its ranks, so one late rank makes its node late. Every line uses
the library's choice for its numbers, and so it does not switch when the choice would not.
"""

import functools

from paceline import _core
from paceline.schedules import how, unit_count

from paceline_bench.report.lines import Figure, Line, Model, Panel, Point
from paceline_bench.report.simulated import ELEMENT
from paceline_bench.report.verdicts import Claim, beyond, judged

NAME = "ranks that share nodes"
NETWORK = Model("200 Mbit/s, 2 ranks a node", "lab-200mbit,ranks_per_node=2")
NODES = {"4 x 2": (2,) * 4, "8 x 2": (2,) * 8, "3 + 2 + 3 + 2": (3, 2, 3, 2)}
DRAWN = ("4 x 2", "8 x 2")
JUDGED = "4 x 2"
SIZES = tuple(1 << k for k in range(18, 25))   # 256 KiB to 16 MiB
TABLED = 4 << 20
FROM = 1 << 20   # shorter messages have a verdict of their own
LATE = 3         # the rank
AFTER = (0.5, 1, 2)   # times n/rate of a node's link
IN_TIME = 0
STATIC = "without a prediction"
WAYS = {STATIC: ("stable", False), "fast": ("fast", True), "stable": ("stable", True)}
GOALS = {"fast": 1.35, "stable": 1.45}   # for a rank that is late by n/rate or more
MOST_WRONG = 1.25   # of what the call takes without a prediction
MOST_GIVEN_UP = 1.03   # likewise, while no rank is late
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
        f"Seconds from the last entry to the last exit of an allreduce, over n/rate of a node's "
        f"link ({NETWORK.name}), by the choice without a prediction and, with numbers=fast and "
        f"stable, if rank {LATE} is named late. It enters after the others, or in time, which "
        "is a wrong guess. The bound: a late node's input still has to leave it. The table is "
        f"of {_core.human_bytes(TABLED)}. With fewer than four nodes no rank is named.")
    return [Figure(
        NAME, "left after the last entry, one of a node's ranks late, simulated", about,
        tuple(panel(name, after) for after in (*AFTER, IN_TIME) for name in DRAWN), drawn="ratios",
        table=(HEADINGS, *(row_of(name, way) for name in NODES for way in WAYS)))]


def is_long(nbytes):
    """True for messages of FROM and more."""
    return nbytes >= FROM


def is_short(nbytes):
    """True for shorter messages."""
    return not is_long(nbytes)


def values(figure, name, way, after, fits=is_long):
    """The time that is left, by size."""
    return [point.seconds for panel in figure.panels if panel.title == title_of(name, after)
            for line in panel.lines if line.label == way
            for point in line.points if fits(point.bytes)]


def late(figure, name, way, fits=is_long):
    """All times that are left if the rank is late by n/rate or more."""
    return [value for after in AFTER if after >= 1
            for value in values(figure, name, way, after, fits)]


def wrong(figure, name, way):
    """Cost of a wrong guess, as a multiple of the call without a prediction, by size."""
    own, static = (values(figure, name, one, IN_TIME) for one in (way, STATIC))
    return [a / b for a, b in zip(own, static)]


def given_up(name, way):
    """Cost of being ready to switch, while no rank is late; the same multiple."""
    return [left(NODES[name], nbytes, way, (), IN_TIME) /
            left(NODES[name], nbytes, STATIC, (), IN_TIME) for nbytes in filter(is_long, SIZES)]


def span(found):
    """The least and the most."""
    return f"{min(found):.2f} to {max(found):.2f}"


def goals_met(figure):
    """Outcomes: what is left, against the goals."""
    least = _core.human_bytes(FROM)
    for way, goal in GOALS.items():
        found = late(figure, JUDGED, way)
        yield judged("simulated", f"{way}: {span(found)} from {least} on", max(found) <= goal,
                     "its passes cost too many messages")
    short = {way: max(late(figure, JUDGED, way, is_short), default=0) for way in GOALS}
    said = ", ".join(f"{way} at most {value:.3f}" for way, value in short.items())
    if all(short.values()):
        yield judged("simulated", f"below {least}: {said}",
                     all(value <= GOALS[way] for way, value in short.items()),
                     "each pass sends messages, which take long to start")
    static = ", ".join(f"{span(late(figure, name, STATIC))} of {name}" for name in DRAWN)
    others = ", ".join(f"{way} {span(late(figure, DRAWN[1], way))}" for way in GOALS)
    yield beyond("simulated", f"without a prediction {static}")
    yield beyond("simulated", f"of {DRAWN[1]}: {others}")


def claims(named):
    """The Claims about this figure; `named`: {name: Figure}."""
    figure = named[NAME]
    return [
        Claim(NAME, f"In {JUDGED} ranks one that is late by n/rate of a node's link, or by two, "
              "leaves at most {fast} (fast) and {stable} (stable) n/rate.".format(**GOALS),
              tuple(goals_met(figure))),
        of_all(f"A rank that is named late and comes in time costs at most {MOST_WRONG} times what "
               "no prediction does.", MOST_WRONG, lambda way: wrong(figure, JUDGED, way),
               "the early ranks' exchange and the passes for the late one cross"),
        of_all("Calls that may switch take at most 3 % longer while no rank is late.",
               MOST_GIVEN_UP, lambda way: given_up(JUDGED, way),
               "the choice while no rank is late follows the ranks that may be late")]


def of_all(claim, most, found_of, why):
    """The Claim that ratios of both numbers are at most so large."""
    found = {way: found_of(way) for way in GOALS}
    return Claim(NAME, claim, tuple(
        judged("simulated", f"{way}: {min(each):.3f} to {max(each):.3f} times from "
               f"{_core.human_bytes(FROM)} on", max(each) <= most, why)
        for way, each in found.items()))
