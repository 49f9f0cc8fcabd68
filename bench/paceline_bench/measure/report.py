"""Makes tables and records from the files of the ranks."""

from dataclasses import asdict, dataclass

import numpy as np
from paceline import _core
from rich.table import Table
from rich.text import Text

from paceline_bench.measure import ceiling, modes, statistics, wire_check

WIDE = 5  # a median so many times the fastest repetition: others were using the machine
COLOURS = {"faster": "bold green", "not slower": "green", "slower": "bold red", "undecided": ""}


@dataclass
class Row:
    """One variant at one size."""

    variant: object
    bytes: int
    launches: list  # per launch the times of the slowest rank (s)
    ceilings: list | None  # per launch, as a time (s)
    ratios: list | None  # per launch our median over the peer's; None without a peer
    batch: int = 1  # calls between two looks at the clock, the median of the launches
    comparable: bool = True  # the launches, with each other
    choice: str = ""  # between nodes: what was chosen, in words
    machine: str = ""  # for which machine
    idle: float | None = None  # and the share of the machine that was left
    transfers: list | None = None  # per launch the share of its time that transfers alone take
    messages: float | None = None  # of a short call between nodes
    rounds: float | None = None

    @property
    def summary(self):
        """Median and spread."""
        return statistics.summarize(self.launches)

    @property
    def fraction(self):
        """Ratio to the ceiling of the same launch, the median of all; None if there is none."""
        if not self.ceilings:
            return None
        return float(np.median([limit / np.median(times)
                                for limit, times in zip(self.ceilings, self.launches)]))

    @property
    def exposed(self):
        """The share of the time that is arithmetic which no transfer hides; None: not measured."""
        return 1 - float(np.median(self.transfers)) if self.transfers else None

    @property
    def interval(self):
        """(source, low, high) of the median; None from too few: launches are independent of each
        other, the calls of one hardly are."""
        if len(self.launches) >= statistics.LEAST_LAUNCHES:
            of, values = "launches", [float(np.median(times)) for times in self.launches]
        else:
            of, values = "calls", [time for times in self.launches for time in times]
        found = statistics.median_interval(values)
        return (of, *found) if found else None

    @property
    def verdict(self):
        """The verdict against the peer; None without one, or from too few launches of one mode."""
        enough = self.ratios is not None and len(self.ratios) >= statistics.LEAST_LAUNCHES
        return statistics.judge(self.ratios) if enough and self.comparable else None


def modes_in(launches):
    """The Modes of the ranks' files."""
    return modes.modes_of([launch[0]["round_trip_ns"] for launch in launches])


def merge(launches, plan):
    """(rows, notes) from `launches[launch][rank]`, the ranks' files; `plan` is a Plan.

    Launches in another mode than most are left out."""
    mode = modes_in(launches)
    launches = [launches[number] for number in mode.kept] or launches
    rows, notes = [], [mode.sentence] if mode.dropped else []
    for place in range(len(plan.sizes)):
        found = [[rank["cases"][place] for rank in launch] for launch in launches]
        nbytes = found[0][0]["bytes"]
        notes += notes_of(found, nbytes)
        limits = ceilings_of(found, nbytes, plan)
        times = {}
        for variant in plan.variants:
            if all(variant.label in rank["times"] for launch in found for rank in launch):
                times[variant.label] = [
                    statistics.slowest([rank["times"][variant.label] for rank in launch])
                    for launch in found
                ]
        for variant in plan.variants:
            why = wire_check.refusal(variant, launches, found, times, plan)
            if why:
                notes.append(wire_check.refused(variant, nbytes, why))
            elif variant.label in times:
                rows.append(Row(variant, nbytes, times[variant.label], limits,
                                against(variant, times, plan.peer),
                                batch_of(variant.label, found), bool(mode.kept),
                                *wire_check.known(variant, found), alone(variant, times),
                                *wire_check.counted(variant, launches, found, plan)))
    return rows, list(dict.fromkeys(notes + [note for row in rows if (note := scatter(row))]))


def against(variant, times, peer):
    """The ratios to the peer; None if there is nothing to compare."""
    if peer not in times or peer == variant.label or not variant.combines:
        return None
    return statistics.ratios(times[variant.label], times[peer])


def alone(variant, times):
    """The ratios of its transfers alone to all of it; None if they were not measured."""
    twin = variant.without_arithmetic().label
    if twin == variant.label or twin not in times:
        return None
    return statistics.ratios(times[twin], times[variant.label])


def scatter(row):
    """A warning if the times of a row say more about the machine than about the library."""
    times = row.summary
    if times.median < WIDE * times.least:
        return ""
    return (f"{row.variant.label} at {_core.human_bytes(row.bytes)}: the median is "
            f"{times.median / times.least:.0f} times the fastest call; its threads waited for a "
            "core. Repeat on an idle machine before quoting it.")


def notes_of(found, nbytes):
    """Reasons why variants are missing, in sentences."""
    for launch in found:
        for rank in launch:
            for label, why in rank["notes"].items():
                yield f"{label} at {_core.human_bytes(nbytes)}: {why}"


def batch_of(label, found):
    """Number of calls in its batches."""
    return int(np.median([launch[0]["batches"].get(label, 1) for launch in found]))


def ceilings_of(found, nbytes, plan):
    """The ceiling of each launch as a time, at the mean of its rates before and after; None if
    there is none."""
    if plan.cluster:
        limit = plan.cluster.bound_s(plan.collective, plan.ranks, nbytes)
        return [limit] * len(found) if limit else None
    limits = []
    for launch in found:
        if any(rates is None for rank in launch for rates in rank["rates"]):
            return None
        together = np.sum([np.mean(rank["rates"], axis=0) for rank in launch], axis=0)
        limits.append(ceiling.seconds(plan.collective, plan.ranks, nbytes, tuple(together)))
    return limits if all(limits) else None


def us(seconds):
    """Microseconds with three significant digits."""
    value = seconds * 1e6
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def rate(row):
    """GB/s with three significant digits, or three decimals if there are fewer."""
    value = row.bytes / row.summary.median / 1e9
    return f"{value:.3g}" if value >= 0.1 else f"{value:.3f}"


def times_table(rows, plan):
    """Size, variant, times, rate, share of the ceiling, speed-up."""
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    out.add_column("size", justify="right", no_wrap=True)
    out.add_column("variant", no_wrap=True)
    for heading in ("median us", "min", "max", "GB/s", "bound" if plan.cluster else "ceiling"):
        out.add_column(heading, justify="right", no_wrap=True)
    are_counted = any(row.messages is not None for row in rows)
    for heading in ("messages", "rounds") if are_counted else ():
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
        if are_counted:
            cells += ["" if n is None else f"{n:g}" for n in (row.messages, row.rounds)]
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
        found = row.verdict
        cells = [_core.human_bytes(row.bytes) if row.bytes != before else "", row.variant.label]
        if found:
            cells += [f"{found.ratio:.3f}", f"{found.low:.3f} - {found.high:.3f}",
                      Text(found.word, COLOURS[found.word])]
        else:
            cells += [f"{np.median(row.ratios):.3f}", "",
                      f"none: {len(row.ratios) if row.comparable else 'no'} launches of one mode"]
        out.add_row(*cells)
        before = row.bytes
    return out


def exposed_table(rows):
    """Size, variant, time, that of its transfers alone, share of the time not overlapped."""
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False,
                title="Without arithmetic", title_justify="left")
    out.add_column("size", justify="right", no_wrap=True)
    out.add_column("variant", no_wrap=True)
    for heading in ("median us", "transfers us", "not overlapped"):
        out.add_column(heading, justify="right", no_wrap=True)
    by_label = {(row.variant.label, row.bytes): row for row in rows}
    for row in rows:
        if row.transfers:
            twin = by_label[row.variant.without_arithmetic().label, row.bytes]
            out.add_row(_core.human_bytes(row.bytes), row.variant.label, us(row.summary.median),
                        us(twin.summary.median), f"{100 * row.exposed:.1f} %")
    return out


def speed_ups(rows):
    """{variant: geometric mean over the sizes of the peer's time by its own}."""
    by_label = {}
    for row in rows:
        if row.ratios:
            by_label.setdefault(row.variant.label, []).append(1 / float(np.median(row.ratios)))
    return {label: statistics.geometric_mean(found) for label, found in by_label.items()}


def record(row, plan):
    """One JSON record."""
    s, variant, interval = row.summary, row.variant, row.interval
    chosen = {"segments": variant.count(row.bytes)} if variant.form == "concurrent" else {}
    if variant.library == "paceline" and not variant.shared:
        chosen = wire_check.choice(variant, row.bytes, plan, row.machine)
    peer = None
    if row.ratios is not None:
        peer = {"name": plan.peer, "time_ratio_median": float(np.median(row.ratios)),
                "time_ratios": row.ratios}
        if row.verdict:
            peer["verdict"] = asdict(row.verdict)
    return {
        "collective": plan.collective, "bytes": row.bytes, "ranks": plan.ranks,
        **{name: chosen.get(name) or None
           for name in ("algorithm", "segments", "radix", "blocks")},
        "arrival": "together",
        "variant": variant.label, "library": variant.library,
        "form": variant.form or "blocking", "segment_bytes": variant.segment_bytes or None,
        "combines": variant.combines, "checked": variant.combines,
        "chosen": variant.library == "paceline" and not variant.algorithm,
        "shared_buffers": variant.shared, "separate_output": plan.separate,
        "dtype": plan.dtype, "op": plan.op,
        "time_us_median": s.median * 1e6, "time_us_min": s.least * 1e6,
        "time_us_max": s.most * 1e6, "repetitions": s.count, "launches": len(row.launches),
        "interval": {"of": interval[0], "low_us": interval[1] * 1e6, "high_us": interval[2] * 1e6,
                     "confidence": statistics.CONFIDENCE} if interval else None,
        "exposed_arithmetic": row.exposed,
        "batch": row.batch, "timed": "natively" if plan.native else "through Python",
        "bytes_per_s": row.bytes / s.median,
        "bound_us": float(np.median(row.ceilings)) * 1e6 if row.ceilings else None,
        "fraction_of_bound": row.fraction, "peer": peer,
        **({"choice": row.choice, "machine": row.machine, "idle_share": row.idle,
            "messages": row.messages, "rounds": row.rounds} if plan.cluster else {}),
    }
