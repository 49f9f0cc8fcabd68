"""Table 1 and theorem 3.1 of arXiv 1611.04255: costs of linear pipelines (LP), minimal spanning
trees (MST) and bidirectional exchange (BE), by the document's formulas and by the simulator."""

import math
from functools import lru_cache

from paceline import _core

from paceline_bench.report.device import MACHINE, SIMULATED
from paceline_bench.report.lines import Figure, Line, Panel, Point
from paceline_bench.report.simulated import Way, bound_s, seconds

COLLECTIVES = ("broadcast", "reduce", "allreduce")
METHODS = ("LP", "MST", "BE")
ALGORITHMS = {  # of broadcast, reduce, allreduce
    "LP": ("chain", "chain", "chain"), "MST": ("binomial", "binomial", "binomial"),
    "BE": ("scatter_allgather", "scatter_gather", "rabenseifner")}
RANKS = (2, 4, 8, 16, 32, 64)
BYTES, BLOCK = 64 << 20, 64 << 10
SHOWN = 4  # ranks in the table
# Seconds for n bytes in blocks of b between p ranks; gamma is 0, as the theorem's proof has it.
FORMULAS = {
    ("LP", "broadcast"): "(p-1+n/b) alpha + (b (p-1) + n) beta",
    ("LP", "reduce"): "(p-1+n/b) alpha + (b (p-1) + n) beta",
    ("LP", "allreduce"): "2 (p-1+n/b) alpha + 2 (b (p-1) + n) beta",
    ("MST", "broadcast"): "log p (alpha + n beta)",
    ("MST", "reduce"): "log p (alpha + n beta)",
    ("MST", "allreduce"): "2 log p (alpha + n beta)",
    ("BE", "broadcast"): "(log p + p - 1) alpha + 2 (p-1)/p n beta",
    ("BE", "reduce"): "2 log p alpha + 2 (p-1)/p n beta",
    ("BE", "allreduce"): "2 log p alpha + 2 (p-1)/p n beta"}


def formula_s(method, collective, p, n=BYTES, b=BLOCK):
    """Table 1, in seconds of the document's links."""
    machine = dict(part.split("=") for part in MACHINE.split(","))
    alpha, beta = float(machine["alpha_us"]) / 1e6, 8e-9 / float(machine["gbit_per_s"])
    twice = 2 if collective == "allreduce" else 1
    if method == "LP":
        return twice * ((p - 1 + n / b) * alpha + (b * (p - 1) + n) * beta)
    if method == "MST":
        return twice * math.log2(p) * (alpha + n * beta)
    rounds = math.log2(p) + p - 1 if collective == "broadcast" else 2 * math.log2(p)
    return rounds * alpha + 2 * (p - 1) / p * n * beta


def speed_up(method, p, n=BYTES, b=BLOCK):
    """Equations 2 and 3, of theorem 3.1: LP's speed by another method's."""
    limit = math.log2(p) if method == "MST" else 2 * (1 - 1 / p)
    return limit / (1 + (p - 1) * b / n)


@lru_cache(maxsize=None)
def simulated_s(method, collective, ranks):
    """The same by the schedules themselves."""
    algorithm = ALGORITHMS[method][COLLECTIVES.index(collective)]
    way = Way(collective, algorithm, segment_bytes=BLOCK if method == "LP" else 0)
    return seconds(way, ranks, BYTES, SIMULATED)


def over_ranks(collective):
    """Seconds over ranks."""
    lines = tuple(Line(method, SIMULATED, tuple(
        Point(ranks, BYTES, simulated_s(method, collective, ranks)) for ranks in RANKS))
        for method in METHODS)
    bounds = {ranks: bound_s(collective, ranks, BYTES, SIMULATED) for ranks in RANKS}
    return Panel(f"{collective} of {_core.human_bytes(BYTES)}, {SIMULATED.name}", collective, lines,
                 bounds, "ranks")


def ratio(method, collective, ranks):
    """Time as a multiple of LP's."""
    return simulated_s(method, collective, ranks) / simulated_s("LP", collective, ranks)


def ratios(collective):
    """The theorem: MST and BE by LP, and log2 p, which is the most for MST."""
    lines = [Line(f"{method} / LP", SIMULATED, tuple(
        Point(ranks, BYTES, ratio(method, collective, ranks)) for ranks in RANKS))
        for method in ("MST", "BE")]
    lines.append(Line("log2 p", SIMULATED, tuple(
        Point(ranks, BYTES, math.log2(ranks)) for ranks in RANKS)))
    return Panel(collective, collective, tuple(lines), {}, "ranks")


def table():
    """Headings, and a row for each method and collective."""
    yield ("collective", "method", "cost", f"{SHOWN} ranks, formula", "simulated", "by LP")
    for collective in COLLECTIVES:
        for method in METHODS:
            formula, found = formula_s(method, collective, SHOWN), simulated_s(
                method, collective, SHOWN)
            yield (collective, method, FORMULAS[method, collective], f"{1e3 * formula:.3f} ms",
                   f"{1e3 * found:.3f} ms", f"{ratio(method, collective, SHOWN):.2f}")


def figures():
    """The Figures of both."""
    return [
        Figure("table 1", "costs over 2 to 64 ranks",
               f"{_core.human_bytes(BYTES)} in blocks of 64 KiB for LP, between ranks that each "
               "have a PCIe x16 link: MST grows with log p, LP and BE hardly grow.",
               tuple(map(over_ranks, COLLECTIVES)), drawn="times", table=tuple(table())),
        Figure("theorem 3.1", "how many times as long as LP",
               "With almost no start-up and with long messages LP is log p times as fast as MST, "
               "and up to twice as fast as BE. An allreduce by BE sends as few bytes as possible, "
               "so LP gains nothing over it.",
               tuple(map(ratios, COLLECTIVES)), drawn="ratios")]
