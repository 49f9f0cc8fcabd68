"""Table 1 and theorem 3.1 of arXiv 1611.04255: costs of linear pipelines (LP), minimal spanning
trees (MST) and bidirectional exchange (BE), by the document's formulas and by the simulator."""

import math
from functools import lru_cache

from paceline import _core

from paceline_bench.report.device import MACHINE, SIMULATED
from paceline_bench.report.lines import Figure, Line, Panel, Point
from paceline_bench.report.simulated import Way, bound_s, seconds
from paceline_bench.report.verdicts import Claim, beyond, judged

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
NEAR = 1.05


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
               f"{_core.human_bytes(BYTES)} in blocks of 64 KiB for LP, between ranks that all "
               "have a PCIe x16 link of their own: MST grows with log p, LP and BE hardly do.",
               tuple(map(over_ranks, COLLECTIVES)), drawn="times", table=tuple(table())),
        Figure("theorem 3.1", "how many times as long as LP",
               "With a start-up of next to nothing and long messages LP is log p times as fast as "
               "MST, and up to twice as fast as BE. An allreduce by BE sends as little as can be, "
               "so that LP gains nothing over it.",
               tuple(map(ratios, COLLECTIVES)), drawn="ratios")]


def claims():
    """The Claims about both. A pair that allreduces along a chain sends both ways at once, which
    the formulas do not have: it stands apart."""
    many = RANKS[1:]
    off = max(abs(simulated_s(method, collective, ranks) / formula_s(method, collective, ranks) - 1)
              for method in METHODS for collective in COLLECTIVES for ranks in many)
    pair = simulated_s("LP", "allreduce", 2) / formula_s("LP", "allreduce", 2)
    trees = {ranks: [ratio("MST", collective, ranks) for collective in COLLECTIVES]
             for ranks in many}
    exchange = [ratio("BE", collective, ranks) for collective in COLLECTIVES for ranks in many]
    holds = (max(exchange) <= 2 * NEAR and all(
        max(found) <= NEAR * math.log2(ranks) for ranks, found in trees.items()))
    return [
        Claim("table 1", "The costs of LP, MST and BE.", (
            judged("simulated", f"on 4 to 64 ranks within {100 * off:.1f} % of the formulas",
                   off <= NEAR - 1, "the schedules are others"),
            beyond("simulated", f"2 ranks allreduce along a chain in {pair:.2f} of it"))),
        Claim("theorem 3.1", "LP is up to log p times as fast as MST, and up to twice as fast as "
              "BE.", (judged(
                  "simulated", f"MST / LP: {max(trees[4]):.2f} with 4 ranks, {max(trees[64]):.2f} "
                  f"with 64; BE / LP: {min(exchange):.2f} to {max(exchange):.2f}", holds,
                  "the ratios are larger"),))]
