"""Pictures of a profile, as SVG by matplotlib: figures 2 to 4 of the document, and late ranks.

Each takes a Summary and returns the SVG's text; `paceline report arrival` draws the same.
"""

import io
from collections import defaultdict

import numpy as np

from paceline.profiling.summary import CLASSES, class_of

# Okabe and Ito's colours, which eyes that do not tell red from green keep apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D00")
SETTINGS = {
    "font.family": ["DejaVu Sans", "sans-serif"], "font.size": 9, "axes.titlesize": 9,
    "svg.fonttype": "none", "svg.hashsalt": "paceline",
    "axes.spines.top": False, "axes.spines.right": False,
}
MOST_KINDS = 8
MOST_MARKS = 4000   # of a picture: more say no more, and make it slow
MOST_RANKS = 40


def drawn(draw, inches):
    """The SVG that `draw(figure)` makes."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    svg = out.getvalue()
    return svg[svg.index("<svg"):]


def shares(found):
    """Figure 2: each collective's share of the calls, and of the time in them."""
    rows = [row for row in found.rows if row.sizes == "all"][:MOST_KINDS]
    total_s = sum(row.time_s for row in found.rows if row.sizes == "all") or 1.0
    return pairs([row.collective for row in rows],
                 [100 * row.share_of_calls for row in rows],
                 [100 * row.time_s / total_s for row in rows], "of all collectives (%)")


def sizes(found, collective="allreduce"):
    """Figure 3: each message class's share of one collective's calls, and of its time."""
    rows = {row.sizes: row for row in found.rows if row.collective == collective}
    whole = rows.get("all")
    if whole is None:
        return ""
    names = [name for name, _ in CLASSES]
    part = [rows.get(name) for name in names]
    return pairs(names, [100 * row.calls / whole.calls if row else 0 for row in part],
                 [100 * row.time_s / (whole.time_s or 1) if row else 0 for row in part],
                 f"of {collective} (%)")


def pairs(names, calls, times, label):
    """Two bars for each name: frequency and run time."""

    def draw(figure):
        axes = figure.add_subplot()
        at = np.arange(len(names))
        for shift, values, what, colour, hatch in (
                (-0.2, calls, "calls", COLOURS[0], ""), (0.2, times, "time", COLOURS[1], "//")):
            bars = axes.bar(at + shift, values, 0.38, label=what, color=colour, hatch=hatch,
                            edgecolor="white", linewidth=0)
            axes.bar_label(bars, [f"{value:.1f}" for value in values], fontsize=7, padding=1)
        axes.set_xticks(at, names, rotation=20 if len(names) > 4 else 0)
        axes.set_ylim(0, 1.12 * max([*calls, *times, 1]))
        axes.set_ylabel(label)
        axes.legend(frameon=False)

    return drawn(draw, (6.2, 3.2))


def thinned(some):
    """At most MOST_MARKS of them: the one with the largest imbalance of each stretch."""
    if len(some) <= MOST_MARKS:
        return list(range(len(some)))
    parts = np.array_split(np.arange(len(some)), MOST_MARKS)
    return [max(part.tolist(), key=lambda place: some[place].worst_s) for part in parts]


def invocations(found, collective="allreduce"):
    """Figure 4: worst and average imbalance factor of each call, in the order of the program."""
    some = [one for one in found.invocations if one.collective == collective
            and np.isfinite(one.factor_of)]
    if not some:
        return ""
    places = thinned(some)

    def draw(figure):
        panels = [name for name, _ in CLASSES if any(class_of(one.bytes) == name for one in some)]
        rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, name in zip(rows, panels):
            chosen = [place for place in places if class_of(some[place].bytes) == name]
            for what, colour, mark in (("worst", COLOURS[1], "^"), ("average", COLOURS[0], "o")):
                axes.plot(chosen, [max(getattr(some[place], what), 1e-4) for place in chosen],
                          mark, color=colour, markersize=3.5, label=what, alpha=0.7,
                          markeredgewidth=0)
            axes.set_yscale("log")
            axes.set_title(f"{collective}, {name} messages", loc="left")
            axes.set_ylabel("factor")
            axes.minorticks_off()
        figure.legend(*rows[0].get_legend_handles_labels(), frameon=False, ncols=2,
                      loc="outside upper right")
        rows[-1].set_xlabel("call")

    panels = len({class_of(one.bytes) for one in some})
    return drawn(draw, (9.5, 1.0 + 1.9 * panels))


def lateness(found, calls):
    """Each rank's arrival after the first one, call by call: shows which ranks are late when."""
    groups = [group for group in calls.groups if len(group.members) > 1]
    if not groups:
        return ""
    group = max(groups, key=lambda one: int(one.complete.sum()) * len(one.members))
    rows = np.flatnonzero(group.complete)
    if not len(rows):
        return ""
    order = rows[np.argsort(group.enter[rows].min(axis=1), kind="stable")]
    late = group.enter[order] - group.enter[order].min(axis=1, keepdims=True)
    parts = np.array_split(np.arange(len(order)), min(len(order), 400))
    cells = np.array([late[part].mean(axis=0) for part in parts]).T
    shown = min(len(group.members), MOST_RANKS)

    def draw(figure):
        from matplotlib.colors import LogNorm

        axes = figure.add_subplot()
        top = max(float(cells[:shown].max()), 2e-6)
        picture = axes.imshow(np.maximum(cells[:shown], 1e-6), aspect="auto", cmap="viridis",
                              interpolation="nearest", norm=LogNorm(1e-6, top),
                              extent=(0, len(order), shown - 0.5, -0.5))
        step = max(1, shown // 16)
        axes.set_yticks(range(0, shown, step),
                        [f"rank {rank}" for rank in group.members[:shown:step]])
        axes.set_xlabel("call of the communicator with the most calls")
        figure.colorbar(picture, label="after the first arrival (s)")

    return drawn(draw, (9.5, 1.6 + 0.28 * shown))


def waiting(found, calls):
    """Each rank's time in collectives: waiting for the last one, and transfer."""
    spent, waits = defaultdict(float), {row.rank: row.waits_s for row in found.late}
    for group in calls.groups:
        for column, rank in enumerate(group.members):
            spent[rank] += float(np.nansum(group.spent[:, column]))
    ranks = [rank for rank in sorted(spent)][:MOST_RANKS]
    if not ranks:
        return ""

    def draw(figure):
        axes = figure.add_subplot()
        waited = np.array([min(waits.get(rank, 0.0), spent[rank]) for rank in ranks])
        moved = np.array([spent[rank] for rank in ranks]) - waited
        at = np.arange(len(ranks))
        axes.barh(at, waited, color=COLOURS[4], hatch="//", edgecolor="white", linewidth=0,
                  label="waiting for the last to come")
        axes.barh(at, moved, left=waited, color=COLOURS[0], label="transfer")
        axes.set_yticks(at, [f"rank {rank}" for rank in ranks])
        axes.invert_yaxis()
        axes.set_xlabel("time in collectives (s)")
        figure.legend(frameon=False, loc="outside upper left", ncols=2)
        axes.set_xlim(0, 1.02 * float((waited + moved).max() or 1))

    return drawn(draw, (9.5, 1.5 + 0.28 * len(ranks)))


def all_of(found, calls):
    """[(heading, explanation, SVG)] of all pictures for which there is data."""
    collective = main_collective(found)
    parts = [
        ("Collectives", "Share of each collective in all calls, and in the time that they take "
         "(figure 2 of Alizadeh et al., 2022).", shares(found)),
        (f"Messages of {collective}", "Share of each range of sizes in its calls and its time: "
         "small up to 1 KiB, medium up to 64 KiB (figure 3 there).", sizes(found, collective)),
        (f"Imbalance of {collective}, call by call", "Worst and average imbalance factor of each "
         "call, in the order of the program (figure 4 there). With very many calls, a mark stands "
         "for the worst of several calls.", invocations(found, collective)),
        ("Late ranks over time", "Arrival of each rank after the first one. With very "
         "many calls, a column is the mean of several calls.", lateness(found, calls)),
        ("Waiting apart from transfer", "Each rank's time in collectives: waiting for "
         "the last rank to come, and the rest.", waiting(found, calls)),
    ]
    return [part for part in parts if part[2]]


def main_collective(found):
    """The collective that takes most time, of those that move data."""
    whole = [row for row in found.rows if row.sizes == "all"]
    moving = [row for row in whole if row.collective != "barrier"] or whole
    return moving[0].collective if moving else "allreduce"
