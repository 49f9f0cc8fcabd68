"""Cells of the pipelining page: rates at the longest message of each panel."""

import re

from paceline_bench.report.claims import PIPELINING
from paceline_bench.report.verdicts import Cell

RIVALS = ("rabenseifner", "recursive_doubling", "binomial")  # those of the publication's MPIs
BLOCKING, NON_BLOCKING = "the MPI, blocking", "the MPI, non-blocking"


def rates(figure, kind):
    """(place, {label: MB/s}) of each panel, whose parts are one."""
    found = {}
    for panel in figure.of(kind):
        _, _, place = panel.title.partition(", part ")[0].partition(", ")
        points = found.setdefault(place, {})
        for line in panel.lines:
            for point in line.points:
                points.setdefault(point.bytes, {})[line.label] = point.mb_per_s
    return [(place, points[max(points)]) for place, points in found.items()]


def best(rate, label):
    """The rate of the best cut of a line, in segments of a number or a size; 0: not cut."""
    cut = re.compile(rf"{re.escape(label)} (x \d+|by .*B)")
    return max((value for name, value in rate.items() if cut.fullmatch(name)), default=0)


def cut(figure, label, kinds=("simulated", "measured"), added=False):
    """Cells of the best cut by the whole, or of the MB/s that it adds."""
    return [Cell(kind, place, best(rate, label) - rate[label] if added
                 else best(rate, label) / rate[label])
            for kind in kinds for place, rate in rates(figure, kind)
            if label in rate and best(rate, label)]


def ring(figure):
    """Figure 1: the ring by the best of the publication's other algorithms."""
    for kind in ("simulated", "measured"):
        for place, rate in rates(figure, kind):
            rivals = [rate[name] for name in RIVALS if name in rate]
            if "ring" in rate and rivals:
                yield Cell(kind, place, rate["ring"] / max(rivals))


def sums(figure):
    """Figure 4: the share that goes without sums, of the whole ring and in four segments, if the
    whole has the published share."""
    whole, four = [], []
    for kind in ("simulated", "measured"):
        for place, rate in rates(figure, kind):
            shares = [1 - rate[name] / rate[f"{name}, no reduce"] for name in ("ring", "ring x 4")
                      if name in rate and f"{name}, no reduce" in rate]
            whole += [Cell(kind, place, share) for share in shares[:1]]
            if len(shares) == 2 and round(shares[0], 2) >= PIPELINING["figure 4: whole"].low:
                four.append(Cell(kind, place, shares[1]))
    return whole, four


def of_mpis(figure, *names):
    """Figures 11 and 12: several calls at once by the faster of both forms of one."""
    for place, rate in rates(figure, "measured"):
        whole = [rate[name] for name in (BLOCKING, NON_BLOCKING) if name in rate]
        if any(name in place for name in names) and whole and best(rate, NON_BLOCKING):
            yield Cell("measured", place, best(rate, NON_BLOCKING) / max(whole))


def four(figure):
    """Figures 13 and 14: four segments by the whole, of both algorithms."""
    return [Cell("simulated", f"{name}, {place}", rate[f"{name} x 4"] / rate[name])
            for name in ("ring", "rabenseifner") for place, rate in rates(figure, "simulated")
            if f"{name} x 4" in rate]


def cells(figures):
    """{claim: its Cells}."""
    named = {figure.name: figure for figure in figures}
    whole, left = sums(named["figure 4"])
    return {
        "figure 1": list(ring(named["figure 1"])),
        "figure 2": cut(named["figure 2"], "ring"), "figure 3": cut(named["figure 3"], "ring"),
        "figure 4: whole": whole, "figure 4: four": left,
        "figure 5": cut(named["figure 5"], "linear"), "figure 6": cut(named["figure 6"], "chain"),
        "figure 7": cut(named["figure 7"], "ring", added=True),
        "figure 11": list(of_mpis(named["figure 11"], "MPICH", "Intel")),
        "figure 12": list(of_mpis(named["figure 12"], "Open MPI v4")),
        "figure 13": four(named["figure 13"]), "figure 14": four(named["figure 14"])}
