"""The numbers of a report as CSV: one line per point, each says measured or simulated."""

import csv

COLUMNS = ("figure", "panel", "collective", "ranks", "line", "kind", "bytes", "seconds", "low_s",
           "high_s", "value", "mb_per_s", "bound_s", "fraction_of_bound", "origin")


def rows(figures):
    """Dicts with COLUMNS."""
    for figure in figures:
        for panel in figure.panels:
            for line in panel.lines:
                for point in line.points:
                    bound = panel.bounds.get(panel.across(point))
                    numbers = (
                        point.seconds, point.low_s, point.high_s, point.value,
                        point.mb_per_s if point.bytes else None, bound,
                        bound / point.seconds if bound else None)
                    if figure.drawn == "ratios":  # a ratio is no time, and has no rate
                        numbers = (None, None, None, point.seconds, None, None, None)
                    yield dict(zip(COLUMNS, (
                        figure.name, panel.title, panel.collective, point.ranks, line.label,
                        line.kind, point.bytes, *numbers, line.origin.words)))


def write(figures, file):
    """The file."""
    with open(file, "w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, COLUMNS)
        writer.writeheader()
        for row in rows(figures):
            writer.writerow({name: short(value) for name, value in row.items()})


def short(value):
    """Six digits that mean something; nothing for what is not known."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value
