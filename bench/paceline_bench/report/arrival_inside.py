"""Inside a node, ranks that come at different times: the published figures 7 and 8, simulated.

Ranks come at random times, uniform between 0 and MIF times what one message of the call's size
takes (the worst imbalance factor of P. Alizadeh et al., EuroMPI/USA 2022). The same times serve all
algorithms. The results are the time from the last one's entry to the last one's exit, and the mean
time of a rank in the call.

Nothing is sent inside a node by algorithms that share memory, so a model of messages alone would
call them free: they pay for what they copy and add, at the rate of the machine's memory.
"""

import random
from dataclasses import dataclass

from paceline import _core
from paceline.schedules import unit_count

from paceline_bench.report.lines import Figure, Line, Model, Panel, Point
from paceline_bench.report.simulated import ELEMENT
from paceline_bench.report.verdicts import Cell

NODE = Model("one node", "shm")
FACTORS = (10, 20, 50)
TRIALS = 5
SEED = 2022
MOST_BLOCKS = 64
BLOCK_BYTES = 64 << 10


@dataclass(frozen=True)
class Case:
    """An allreduce as one algorithm does it, or as one collective after another."""

    label: str
    parts: tuple[tuple[str, str], ...]  # collective and algorithm
    static: bool = True  # it does nothing in the order of arrival
    meets: bool = False  # its ranks begin when the last one has come

    @property
    def is_ours(self):
        """True for cases that were not published."""
        return self.label.startswith("ours")


@dataclass(frozen=True)
class Comparison:
    """One imbalance factor: for each case and size, seconds, averages of the trials."""

    ranks: int
    factor: int
    sizes: tuple[int, ...]
    after_s: dict[str, tuple[float, ...]]  # last arrival to last exit
    inside_s: dict[str, tuple[float, ...]]  # from a rank's entry to its exit, on average


def whole(label, algorithm, static=True):
    """An allreduce that is one algorithm."""
    return Case(label, (("allreduce", algorithm),), static)


SMALL = (
    # It sums when all have come: as a dynamic leader does whose ranks come together.
    Case("shmem-MVAPICH: static leader", (("allreduce", "dynamic_leader"),), meets=True),
    whole("Def-MVAPICH above 1 KiB: recursive doubling", "recursive_doubling"),
    whole("Small-PAP-aware: dynamic leader", "dynamic_leader", False),
    whole("ours: arrival leader", "arrival_leader", False),
    whole("ours, static: slices", "two_shot"),
)
LARGE = (
    whole("Def-MVAPICH: RSA", "rabenseifner"),
    Case("BT+Bcast", (("reduce", "binomial"), ("broadcast", "binomial"))),
    Case("RSG+Bcast", (("reduce", "scatter_gather"), ("broadcast", "binomial"))),
    whole("Large-PAP-aware: arrival chain", "arrival_chain", False),
    whole("ours, static: slices", "two_shot"),
)


def blocks_for(algorithm, nbytes):
    """Blocks of a message for algorithms that take it in several; 0: one that does not."""
    if algorithm not in ("two_shot", "arrival_chain"):
        return 0
    return max(1, min(MOST_BLOCKS, nbytes // BLOCK_BYTES))


def exits(case, ranks, nbytes, machine, arrivals):
    """Exit times of the ranks in seconds; a rank begins one part when it has left the last."""
    times = [max(arrivals)] * ranks if case.meets else list(arrivals)
    for collective, algorithm in case.parts:
        world = _core.World(collective, algorithm, ranks, fused=True, arrivals=times,
                            blocks=blocks_for(algorithm, nbytes))
        count = unit_count(collective, ranks, nbytes)
        times = world.simulate(count, ELEMENT, machine, times).exit_s
    return times


def message_s(nbytes, machine):
    """Seconds of one message of the size."""
    world = _core.World("broadcast", "binomial", 2)
    return world.simulate(unit_count("broadcast", 2, nbytes), ELEMENT, machine).span_s


def compare(cases, ranks, sizes, factor, machine="shm", trials=TRIALS):
    """A Comparison; `machine` is a model's name, or settings."""
    after = {case.label: [] for case in cases}
    inside = {case.label: [] for case in cases}
    for nbytes in sizes:
        chance = random.Random(f"{SEED} {ranks} {factor} {nbytes}")
        most_s = factor * message_s(nbytes, machine)
        drawn = [[chance.uniform(0, most_s) for _ in range(ranks)] for _ in range(trials)]
        for case in cases:
            left = [exits(case, ranks, nbytes, machine, times) for times in drawn]
            after[case.label].append(
                sum(max(e) - max(a) for e, a in zip(left, drawn)) / trials)
            inside[case.label].append(
                sum((sum(e) - sum(a)) / ranks for e, a in zip(left, drawn)) / trials)
    return Comparison(ranks, factor, tuple(sizes), {k: tuple(v) for k, v in after.items()},
                 {k: tuple(v) for k, v in inside.items()})


def sweep(cases, ranks, sizes, machine="shm", trials=TRIALS):
    """A Comparison for each imbalance factor."""
    return [compare(cases, ranks, sizes, factor, machine, trials) for factor in FACTORS]


def figure_7(machine="shm", trials=TRIALS):
    """32 ranks, 8 B to 64 KiB: a Comparison for each imbalance factor."""
    return sweep(SMALL, 32, [8 << (2 * k) for k in range(7)] + [64 << 10], machine, trials)


def figure_8(machine="shm", trials=TRIALS):
    """4 ranks, 64 KiB to 64 MiB: a Comparison for each imbalance factor."""
    return sweep(LARGE, 4, [64 << (10 + 2 * k) for k in range(6)], machine, trials)


def panels(comparisons, values):
    """Panels of the report; `values`: of a Comparison, which of its seconds."""
    found = []
    for one in comparisons:
        lines = tuple(
            Line(label, NODE, tuple(Point(one.ranks, n, s) for n, s in zip(one.sizes, seconds)))
            for label, seconds in values(one).items())
        found.append(Panel(f"{one.ranks} ranks, MIF {one.factor}", "allreduce", lines, {}))
    return tuple(found)


def figures(files):
    """The Figures of this part; nothing of it is measured."""
    about = ("Ranks of one node enter at random times, up to MIF times the time of one message; "
             f"MIF is the publication's maximum imbalance factor. Values are means of {TRIALS} "
             "draws, the same for all algorithms. Names are the publication's: RSA reduces by a "
             "reduce-scatter and an allgather; BT+Bcast reduces along a binomial tree, RSG+Bcast "
             "by a reduce-scatter and a gather, and both then broadcast; PAP is a process arrival "
             "pattern. In this model memory is as fast for all ranks together as for one.")
    found = []
    for name, comparisons in (("figure 7", figure_7()), ("figure 8", figure_8())):
        found += [
            Figure(name, "inside a node, message by mean time in the call, simulated", about,
                   panels(comparisons, lambda one: one.inside_s)),
            Figure(f"{name}: left",
                   "inside a node, message by time from last entry to last exit, simulated", about,
                   panels(comparisons, lambda one: one.after_s))]
    return found


def speeds(figure, label, cases):
    """Cells of a case by the best published static one: {imbalance factor: a Cell for each size}.
    """
    others = [case.label for case in cases if case.static and not case.is_ours]
    found = {}
    for panel in figure.panels:
        lines = {line.label: line.points for line in panel.lines}
        found[panel.title.rpartition(" ")[2]] = [
            Cell("simulated", _core.human_bytes(own.bytes),
                 min(other.seconds for other in rivals) / own.seconds)
            for own, *rivals in zip(lines[label], *(lines[other] for other in others))]
    return found


def cells(named):
    """{claim: its Cells}; `named`: {name: Figure}."""
    return {f"{name}: {factor}": found
            for name, label, cases in (("figure 7", SMALL[2].label, SMALL),
                                       ("figure 8", LARGE[3].label, LARGE))
            for factor, found in speeds(named[name], label, cases).items()}
