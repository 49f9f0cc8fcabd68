"""Figures as pictures: SVG by matplotlib. Lines differ by marker and dash as well as by colour."""

import functools
import itertools
import math
import textwrap

from paceline import _core
from paceline.profiling.pictures import COLOURS, drawn
from paceline.units import unit_of

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
HATCHES = ("", "//", "..", "xx", "\\\\", "oo")
BOUND = {"color": "#555555", "linestyle": (0, (6, 3)), "linewidth": 1.2, "zorder": 1}
MARKED = (BOUND["linestyle"], ":", "-.")  # several marks of a panel
PANEL_INCHES = (6.0, 4.0)  # two fit beside each other: page.html
TITLE_COLUMNS = 60


def styles():
    """A style for each line of a panel, all different. Markers are hollow, the first ones large: of
    lines that lie on each other all are seen."""
    for number in itertools.count():
        yield {"color": COLOURS[number % len(COLOURS)],
               "marker": MARKERS[(number + number // len(COLOURS)) % len(MARKERS)],
               "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.3,
               "markersize": max(9 - number, 3), "markerfacecolor": "none", "zorder": 3}


def ticks_of(values):
    """At most eleven of the values, with both ends if possible."""
    step = math.ceil(len(values) / 11)
    return values[::step]


def limits(point):
    """(below, above) of the error bar, in MB/s; NaN: none."""
    if point.low_s is None:
        return math.nan, math.nan
    rates = (point.bytes / point.high_s / 1e6, point.bytes / point.low_s / 1e6)
    return max(point.mb_per_s - rates[0], 0.0), max(rates[1] - point.mb_per_s, 0.0)


def set_sizes(axes, sizes):
    """An axis of bytes."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks_of(sizes), [_core.human_bytes(at) for at in ticks_of(sizes)],
                    rotation=35, ha="right")
    axes.minorticks_off()


def draw_lines(axes, panel):
    """Rates over sizes or ranks, with the bound."""
    across = sorted({panel.across(point) for line in panel.lines for point in line.points})
    size = next(point.bytes for line in panel.lines for point in line.points)
    for line, style in zip(panel.lines, styles()):
        points = sorted(line.points, key=panel.across)
        at, rates = [panel.across(p) for p in points], [p.mb_per_s for p in points]
        axes.plot(at, rates, label=line.legend, **style)
        if any(p.low_s is not None for p in points):
            axes.errorbar(at, rates, yerr=list(zip(*map(limits, points))), fmt="none", capsize=2,
                          ecolor=style["color"], elinewidth=0.9)
    if panel.bounds:
        known = sorted(panel.bounds)
        rates = [(size if panel.over == "ranks" else at) / panel.bounds[at] / 1e6 for at in known]
        if len(known) == 1:
            axes.axhline(rates[0], label="bound", **BOUND)
        else:
            axes.plot(known, rates, label="bound", **BOUND)
    axes.set_xscale("log", base=2)
    words = str if panel.over == "ranks" else _core.human_bytes
    axes.set_xticks(ticks_of(across), [words(at) for at in ticks_of(across)], rotation=35,
                    ha="right")
    axes.minorticks_off()
    axes.set_xlabel("ranks" if panel.over == "ranks" else "message")
    axes.set_ylabel("message / time (MB/s)")
    axes.set_ylim(bottom=0)
    if axes.get_ylim()[1] > 1e5:
        axes.set_ylabel("message / time (GB/s)")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1e3:g}")


def draw_bars(axes, panel):
    """One time for each line, the shortest on top; whiskers are intervals."""
    unit, scale = unit_of(line_end(panel.lines))
    lines = sorted(panel.lines, key=lambda line: -line.points[0].seconds)
    hatches = itertools.cycle(HATCHES)
    for place, line in enumerate(lines):
        point = line.points[0]
        ends = None
        if point.low_s:
            ends = [[(point.seconds - point.low_s) / scale],
                    [(point.high_s - point.seconds) / scale]]
        axes.barh(place, point.seconds / scale, xerr=ends, height=0.6, capsize=4,
                  hatch=next(hatches), color=COLOURS[place % len(COLOURS)], alpha=0.75,
                  edgecolor="#222222")
    axes.set_yticks(range(len(lines)), [
        f"{line.label}\n{line.points[0].seconds / scale:.3g} {unit}, {line.kind}"
        for line in lines])
    for bound in panel.bounds.values():
        axes.axvline(bound / scale, label="bound", **{**BOUND, "zorder": 4})
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(f"time ({unit})")
    axes.set_xlim(0, 1.08 * line_end(lines) / scale)


def draw_ratios(axes, panel):
    """Plain numbers over ranks or sizes; the bound is what they approach."""
    for line, style in zip(panel.lines, styles()):
        axes.plot([panel.across(p) for p in line.points], [p.seconds for p in line.points],
                  label=line.legend, **style)
    for (words, value), dashes in zip(panel.marks, itertools.cycle(MARKED)):
        axes.axhline(value, label=words, **{**BOUND, "linestyle": dashes})
    across = sorted({panel.across(p) for line in panel.lines for p in line.points})
    if panel.over == "bytes":
        set_sizes(axes, across)
        axes.set_xlabel("message")
    else:
        axes.set_xticks(across)
        axes.set_xlabel("ranks")
    axes.set_ylabel(panel.value or "ratio")
    axes.set_ylim(0, 1.03 * axes.get_ylim()[1])   # markers at the top are whole


def draw_times(axes, panel):
    """Times over ranks, with the bound."""
    unit, scale = unit_of(max(p.seconds for line in panel.lines for p in line.points))
    for line, style in zip(panel.lines, styles()):
        axes.plot([p.ranks for p in line.points], [p.seconds / scale for p in line.points],
                  label=line.legend, **style)
    if panel.bounds:
        known = sorted(panel.bounds)
        axes.plot(known, [panel.bounds[at] / scale for at in known], label="bound", **BOUND)
    axes.set_xticks(sorted({p.ranks for line in panel.lines for p in line.points}))
    axes.set_xlabel("ranks")
    axes.set_ylabel(f"time ({unit})")
    axes.set_ylim(bottom=0)


def draw_curves(axes, panel):
    """Values over time."""
    for line, style in zip(panel.lines, styles()):
        plain = {**style, "marker": style["marker"] if len(line.points) < 12 else None}
        axes.plot([p.seconds for p in line.points], [p.value for p in line.points],
                  label=line.legend, **plain)
    axes.set_xlabel("time (s)")
    axes.set_ylabel(panel.value)
    axes.set_ylim(bottom=0)


def draw_counts(axes, panel):
    """Draws the number of values of each size."""
    for line, style in zip(panel.lines, styles()):
        axes.plot([p.bytes for p in line.points], [p.value for p in line.points],
                  label=line.legend, **style)
    across = sorted({p.bytes for line in panel.lines for p in line.points})
    set_sizes(axes, across)
    axes.set_xlabel("at most")
    axes.set_ylabel(panel.value)
    axes.set_ylim(bottom=0)


DRAWN = {"lines": draw_lines, "bars": draw_bars, "ratios": draw_ratios, "times": draw_times,
         "curves": draw_curves, "counts": draw_counts}


def line_end(lines):
    """The longest time, with its whisker."""
    return max(line.points[0].high_s or line.points[0].seconds for line in lines)


def draw(panel, kind, picture):
    """Draws the panel into a picture of matplotlib."""
    axes = picture.subplots()
    axes.set_title("\n".join(textwrap.wrap(panel.title, TITLE_COLUMNS)), loc="left")
    axes.grid(axis="x" if kind == "bars" else "y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    DRAWN[kind](axes, panel)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(fontsize=7.5, loc="upper center", ncols=2, frameon=False, handlelength=4,
                    bbox_to_anchor=(0.5, -0.16 if kind == "bars" else -0.28))


def to_svg(figure):
    """An SVG for each panel, so that a page shows as many beside each other as it has room for."""
    return "".join(drawn(functools.partial(draw, panel, figure.drawn), PANEL_INCHES)
                   for panel in figure.panels)
