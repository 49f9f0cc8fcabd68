"""From the files of the ranks to tables and records."""

from dataclasses import asdict, dataclass

import numpy as np
from rich.table import Table
from rich.text import Text

from paceline import _core
from paceline.bench import ceiling, statistics

WIDE = 5  # a median so many times the fastest repetition: others were using the machine
COLOURS = {"faster": "bold green", "not slower": "green", "slower": "bold red", "undecided": ""}


@dataclass
class Row:
    """One variant at one size."""

    variant: object
    bytes: int
    launches: list  # per launch the times of the slowest rank (s)
    ceiling_s: float | None
    ratios: list | None  # per launch our median over the peer's; None without a peer

    @property
    def summary(self):
        """Median and spread."""
        return statistics.summarize(self.launches)

    @property
    def fraction(self):
        """Of the ceiling; None where there is none."""
        return self.ceiling_s / self.summary.median if self.ceiling_s else None


def merge(launches, plan):
    """(rows, notes) from `launches[launch][rank][size]`, the ranks' files; `plan` is a Plan."""
    rows, notes = [], []
    for place in range(len(plan.sizes)):
        found = [[rank[place] for rank in launch] for launch in launches]
        nbytes = found[0][0]["bytes"]
        notes += notes_of(found, nbytes)
        limit = ceiling_of(found, nbytes, plan)
        times = {}
        for variant in plan.variants:
            if all(variant.label in rank["times"] for launch in found for rank in launch):
                times[variant.label] = [
                    statistics.slowest([rank["times"][variant.label] for rank in launch])
                    for launch in found
                ]
        for variant in plan.variants:
            if variant.label in times:
                ratios = None
                if plan.peer in times and plan.peer != variant.label:
                    ratios = statistics.ratios(times[variant.label], times[plan.peer])
                rows.append(Row(variant, nbytes, times[variant.label], limit, ratios))
    return rows, list(dict.fromkeys(notes + [note for row in rows if (note := scatter(row))]))


def scatter(row):
    """A warning where the times of a row say more about the machine than about the library."""
    times = row.summary
    if times.median < WIDE * times.least:
        return ""
    return (f"{row.variant.label} at {_core.human_bytes(row.bytes)}: the median is "
            f"{times.median / times.least:.0f} times the fastest call; its threads waited for a "
            "core. Repeat on an idle machine before quoting it.")


def notes_of(found, nbytes):
    """Why variants are missing, in sentences."""
    for launch in found:
        for rank in launch:
            for label, why in rank["notes"].items():
                yield f"{label} at {_core.human_bytes(nbytes)}: {why}"


def ceiling_of(found, nbytes, plan):
    """The ceiling as a time, from the rates of all launches; None where it says nothing."""
    rates = [[rank["rates"] for rank in launch] for launch in found]
    if any(rate is None for launch in rates for rate in launch):
        return None
    together = np.median([np.sum(launch, axis=0) for launch in rates], axis=0)
    return ceiling.seconds(plan.collective, plan.ranks, nbytes, tuple(together))


def us(seconds):
    """Microseconds with three digits that mean something."""
    value = seconds * 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def rate(row):
    """GB/s with three digits, or three decimals where there are none."""
    value = row.bytes / row.summary.median / 1e9
    return f"{value:.3g}" if value >= 0.1 else f"{value:.3f}"


def times_table(rows, plan):
    """Size, variant, times, rate, share of the ceiling, speed-up."""
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    out.add_column("size", justify="right", no_wrap=True)
    out.add_column("variant", no_wrap=True)
    for heading in ("median us", "min", "max", "GB/s", "ceiling"):
        out.add_column(heading, justify="right", no_wrap=True)
    peer_name = plan.peer.removeprefix("torch ") if plan.peer else ""
    if plan.peer:
        out.add_column(f"vs {peer_name}", justify="right", no_wrap=True)
    before = None
    for row in rows:
        s = row.summary
        cells = [
            _core.human_bytes(row.bytes) if row.bytes != before else "", row.variant.label,
            us(s.median), us(s.least), us(s.most),
            rate(row) if row.bytes else "-",
            f"{100 * row.fraction:.0f} %" if row.fraction else "-",
        ]
        if plan.peer:
            speed_up = 1 / float(np.median(row.ratios)) if row.ratios else None
            cells.append(f"{speed_up:.2f}x" if speed_up else "")
        out.add_row(*cells, end_section=False)
        before = row.bytes
    return out


def verdict_table(rows, plan):
    """Size, variant, ratio, interval, verdict."""
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False,
                title=f"Against {plan.peer}", title_justify="left")
    out.add_column("size", justify="right", no_wrap=True)
    out.add_column("variant", no_wrap=True)
    for heading in ("time ratio", "95 % interval"):
        out.add_column(heading, justify="right", no_wrap=True)
    out.add_column("verdict", no_wrap=True)
    before = None
    for row in rows:
        if row.ratios is None:
            continue
        found = statistics.judge(row.ratios)
        out.add_row(
            _core.human_bytes(row.bytes) if row.bytes != before else "", row.variant.label,
            f"{found.ratio:.3f}", f"{found.low:.3f} - {found.high:.3f}",
            Text(found.word, COLOURS[found.word]))
        before = row.bytes
    return out


def record(row, plan):
    """One JSON record."""
    s, variant = row.summary, row.variant
    chosen = {}
    if variant.library == "paceline":
        chosen = _core.choose(plan.collective, plan.ranks, row.bytes, **variant.wish())
    peer = None
    if row.ratios is not None:
        peer = {"name": plan.peer, "time_ratio_median": float(np.median(row.ratios)),
                "time_ratios": row.ratios}
        if len(row.ratios) >= statistics.LEAST_LAUNCHES:
            peer["verdict"] = asdict(statistics.judge(row.ratios))
    return {
        "collective": plan.collective, "bytes": row.bytes, "ranks": plan.ranks,
        **{name: chosen.get(name) or None
           for name in ("algorithm", "segments", "radix", "blocks")},
        "arrival": "together",
        "variant": variant.label, "library": variant.library,
        "chosen": variant.library == "paceline" and not variant.algorithm,
        "dtype": plan.dtype, "op": plan.op,
        "time_us_median": s.median * 1e6, "time_us_min": s.least * 1e6,
        "time_us_max": s.most * 1e6, "repetitions": s.count, "launches": len(row.launches),
        "bytes_per_s": row.bytes / s.median,
        "bound_us": row.ceiling_s * 1e6 if row.ceiling_s else None,
        "fraction_of_bound": row.fraction, "peer": peer,
    }
