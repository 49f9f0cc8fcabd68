"""Cells of the ring page: times by the library's, and first calls by their median."""

from paceline_bench.report.ring import CHOSEN, OWN, PLAIN
from paceline_bench.report.verdicts import Cell


def slower(panels, name):
    """Time of `name`, by the library's own choice."""
    for panel in panels:
        times = {line.label.split(":")[0]: line.points[0].seconds for line in panel.lines}
        if name in times and CHOSEN in times:
            yield Cell(panel.lines[0].kind, place_of(panel), times[name] / times[CHOSEN])


def place_of(panel):
    """The title, without the message and the collective."""
    return panel.title.partition(" ranks, ")[2]


def first(panels, name):
    """The slowest of ten calls, by their median."""
    return [Cell("measured", place_of(panel), line.points[0].high_s / line.points[0].seconds)
            for panel in panels for line in panel.lines if line.label == name]


def cells(figures):
    """{claim: its Cells}."""
    simulated, measured, cold = (figure.panels for figure in figures)
    own = [cell for cell in slower(measured, OWN) if "Open MPI" in cell.where]
    return {"figure 6: plain ring": [*slower(simulated, PLAIN), *slower(measured, PLAIN)],
            "figure 6: Open MPI": own, "variance: plain ring": first(cold, PLAIN),
            "variance: library": first(cold, CHOSEN)}
