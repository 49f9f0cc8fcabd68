"""Losses of algorithms by arrival: points of figures 7 and 8 at which a static one is faster."""

from paceline import _core

from paceline_bench.report.lines import Figure

HEADINGS = ("figure", "ranks and factor", "algorithm", "slower at", "least", "mean of all sizes")


def figure(figures, cases):
    """The Figure; `cases`: {name of a Figure: its Cases}."""
    rows = [row for one in figures if one.name in cases
            for panel in one.panels for row in losses(one.name, panel, cases[one.name])]
    return Figure(
        "where it loses", "points at which the best static algorithm is faster, simulated",
        "Time of the best published static algorithm over that of an algorithm by arrival: below 1 "
        "the latter loses. The table lists each line of figures 7 and 8 that loses at some point.",
        (), table=(HEADINGS, *rows))


def losses(name, panel, cases):
    """Rows of a panel."""
    seconds = {line.label: [point.seconds for point in line.points] for line in panel.lines}
    sizes = [point.bytes for point in panel.lines[0].points]
    static = [case.label for case in cases if case.static and not case.is_ours]
    best = [min(times) for times in zip(*(seconds[label] for label in static))]
    for case in cases:
        if case.static:
            continue
        ratios = [b / own for b, own in zip(best, seconds[case.label])]
        lost = [nbytes for nbytes, ratio in zip(sizes, ratios) if ratio < 1]
        if lost:
            yield (name, panel.title, case.label,
                   f"{len(lost)} of {len(sizes)} sizes, {_core.human_bytes(min(lost))} to "
                   f"{_core.human_bytes(max(lost))}", f"{min(ratios):.2f}",
                   f"{sum(ratios) / len(ratios):.2f}")
