"""A table of the files of `paceline bench --against mpi`, one for each setting of an MPI."""

from rich.table import Table
from rich.text import Text

from paceline import _core
from paceline_bench.measure import report, statistics

OURS, SHARED, PEER = "paceline", "paceline shared", "mpi"


def by_size(content):
    """{bytes: {variant: record}} of one file."""
    sizes = {}
    for record in content["records"]:
        sizes.setdefault(record["bytes"], {})[record["variant"]] = record
    return sizes


def ratio(records, variant):
    """Our time divided by the peer's, median of the launches; None if it was not measured."""
    found = records.get(variant, {}).get("peer")
    return found["time_ratio_median"] if found else None


def verdict(records, variant):
    """The word of the verdict; empty if there is none."""
    found = (records.get(variant, {}).get("peer") or {}).get("verdict")
    return found["word"] if found else ""


def hardest(settings, nbytes, variant=OURS):
    """(name, records) of the setting that does best against us at this size; None if there is none.
    It is picked from the launches that are judged, which flatters the peer."""
    found = {name: by_size(content).get(nbytes, {}) for name, content in settings.items()}
    ratios = {name: ratio(records, variant) for name, records in found.items()}
    known = [name for name, value in ratios.items() if value is not None]
    if not known:
        return None
    name = max(known, key=ratios.get)
    return name, found[name]


def sizes_of(settings):
    """All sizes, ascending."""
    return sorted({nbytes for content in settings.values() for nbytes in by_size(content)})


def summary(settings):
    """Geometric means of the speed-up over all sizes, and counts of each verdict, against each
    setting and against the hardest at each size."""
    out = {}
    for name in (*settings, "hardest"):
        for variant in (OURS, SHARED):
            rows = [of_setting(settings, name, nbytes, variant) for nbytes in sizes_of(settings)]
            rows = [row for row in rows if row and ratio(row, variant) is not None]
            if not rows:
                continue
            words = [verdict(row, variant) or "none" for row in rows]
            out.setdefault(name, {})[variant] = {
                "speed_up": statistics.geometric_mean([1 / ratio(row, variant) for row in rows]),
                "sizes": len(rows),
                "verdicts": {word: words.count(word) for word in dict.fromkeys(words)},
            }
    return out


def of_setting(settings, name, nbytes, variant=OURS):
    """The records of a size against one setting, or against the hardest."""
    if name == "hardest":
        return (hardest(settings, nbytes, variant) or ("", {}))[1]
    return by_size(settings[name]).get(nbytes, {})


def share(record):
    """Fraction of the ceiling, as text."""
    found = record.get("fraction_of_bound")
    return f"{found:.2f}" if found else "-"


def time(record):
    """Median in us, as text."""
    return report.us(record["time_us_median"] / 1e6) if record else "-"


def compared(records, variant=OURS):
    """Two cells: speed-up and verdict."""
    value, word = ratio(records, variant), verdict(records, variant)
    speed_up = f"{1 / value:.2f}x" if value else "-"
    return speed_up, Text(word or "-", report.COLOURS.get(word, ""))


def table(title, settings):
    """A row for each size: ours, in shared buffers, the defaults, and the setting that is hardest
    to beat there."""
    out = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("size", "ours us", "of ceiling", "shared us", "of ceiling", "default us",
                    "speed-up"):
        out.add_column(heading, justify="right", no_wrap=True)
    for heading in ("verdict", "hardest", "us", "speed-up", "verdict"):
        out.add_column(heading, justify="right" if heading in ("us", "speed-up") else "left",
                       no_wrap=True)
    first = next(iter(settings))
    for nbytes in sizes_of(settings):
        records = of_setting(settings, first, nbytes)
        name, hard = hardest(settings, nbytes) or ("-", {})
        out.add_row(
            _core.human_bytes(nbytes), time(records.get(OURS)), share(records.get(OURS, {})),
            time(records.get(SHARED)), share(records.get(SHARED, {})), time(records.get(PEER)),
            *compared(records), name, time(hard.get(PEER)), *compared(hard))
    return out


def sentences(settings):
    """Geometric means, verdicts and dropped launches, a line each."""
    for name, variants in summary(settings).items():
        for variant, found in variants.items():
            words = ", ".join(f"{count} {word}" for word, count in found["verdicts"].items())
            yield (f"{variant} against {name}: {found['speed_up']:.2f} times as fast "
                   f"(geometric mean of {found['sizes']} sizes); verdicts: {words}")
    for name, content in settings.items():
        if content["round_trip_ns"]:
            yield (f"{name}: a flag took {content['round_trip_ns']:.0f} ns from core to core and "
                   f"back in the launches that count; {content['launches_dropped']} of "
                   f"{len(content['round_trips_ns'])} were dropped")
