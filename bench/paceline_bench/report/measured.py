"""Measured lines: from files that `paceline bench --json` or `./dev lab bench --json` wrote, and
from campaigns of them (bench/results)."""

import csv
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import UsageError
from paceline.files import read_json

import paceline_bench
from paceline_bench.measure import campaign
from paceline_bench.report.lines import Line, Panel, Point, Records, split

PACKAGE = Path(paceline_bench.__file__).parent
RESULTS = PACKAGE / "results"  # of an installed wheel
if not RESULTS.is_dir():
    RESULTS = PACKAGE.parent / "results"  # of a source tree
NEEDED = ("machine", "date", "command", "records")


def nothing(page):
    """The text of a figure that no file measures."""
    return (f"No file has measurements of this figure. `paceline report {page} --lab` prints the "
            "commands that measure it, and --measured FILE reads their files.")


def rows_of(name):
    """The rows of a table of bench/results, below its command; empty where there is none."""
    if not (RESULTS / name).is_file():
        return []
    lines = (RESULTS / name).read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@dataclass(frozen=True)
class Measured:
    """One file."""

    origin: Records
    setting: str  # of the MPI
    kind: str  # of the MPI: Open MPI, MPICH, Intel MPI; empty: none
    records: tuple = field(hash=False)

    def of(self, collective):
        """Its records of a collective."""
        return [row for row in self.records if row["collective"] == collective]


def read(file):
    """The Measured of a file, one for each of its runs. Raises UsageError."""
    if Path(file).suffix == ".csv":
        return [measured(f"{Path(file).name}, {name}", part)
                for name, settings in campaign.read(file).items() for part in settings.values()]
    found = read_json(file, "file of measurements", lambda value: value)
    settings = found.get("settings") if isinstance(found, dict) else None
    parts = list(settings.values()) if isinstance(settings, dict) else [found]
    return [measured(Path(file).name, part) for part in parts]


def measured(name, found):
    """The Measured of a file of `paceline bench --json`. Raises UsageError."""
    lacking = [key for key in NEEDED if not isinstance(found, dict) or key not in found]
    if lacking:
        raise UsageError(f"report: {name} has no {', '.join(lacking)}; it takes a file that "
                         "paceline bench --json, ./dev lab bench --json or bench/lab/run.py wrote.")
    mpi = found.get("mpi") or {}
    machine = found["machine"]
    about = f"{machine['processor']}, {machine['cores_allowed']} cores, {machine['system']}"
    origin = Records(name, network_of(mpi.get("cluster")), mpi.get("version", ""),
                     found["date"][:10], about, found["command"])
    return Measured(origin, mpi.get("setting", "default"), mpi.get("kind", ""),
                    tuple(found["records"]))


def network_of(cluster):
    """The network of its ranks, in words."""
    if not cluster:
        return "one machine"
    per_node = cluster["ranks_per_node"]
    many = f", {per_node} ranks each" if per_node > 1 else ""
    return f"lab of {cluster['nodes']} nodes{many}, {cluster['rate']} each way"


def point(row):
    """The time of a record, and its limits."""
    limits = row.get("interval") or {}
    low, high = (limits[end] / 1e6 if limits else None for end in ("low_us", "high_us"))
    return Point(row["ranks"], row["bytes"], row["time_us_median"] / 1e6, low, high)


def short(version):
    """The name of an MPI, without the rest of its sentence."""
    return version.split(",")[0].replace("(R)", "").split(" Library")[0].strip()


def panels(files, collective, wanted):
    """A Panel for each network, MPI and number of ranks with records of a collective that `wanted`
    takes; it gets the Measured and the record. Files of the same ones share a panel."""
    made = {}
    for file in files:
        where = ", ".join(filter(None, (file.origin.network, short(file.origin.peer))))
        for row in file.of(collective):
            if not row["bytes"] or not wanted(file, row):
                continue
            title = f"{collective}, {row['ranks']} ranks, {where}"
            lines, bounds = made.setdefault(title, ({}, {}))
            lines.setdefault((row["variant"], file), []).append(point(row))
            if row["bound_us"]:
                bounds[row["bytes"]] = row["bound_us"] / 1e6
    return [part for title, (lines, bounds) in sorted(made.items())
            for part in split(Panel(title, collective, tuple(lines_of(lines)), bounds))]


def lines_of(points):
    """The Lines of a panel, from points by (label, Measured), this library's first. A setting other
    than the default, and the number of a second series, follow the label."""
    seen = Counter()
    for (label, file), found in sorted(points.items(), key=lambda one: one[0][0].startswith("mpi")):
        words = in_words(label) + (f", {file.setting}" if file.setting != "default" else "")
        seen[words] += 1
        again = f", series {seen[words]}" if seen[words] > 1 else ""
        yield Line(words + again, file.origin, tuple(found))


WORDS = {"paceline": "paceline, chosen", "mpi": "the MPI, blocking",
         "mpi non-blocking": "the MPI, non-blocking",
         "mpi ring of Sendrecv": "plain ring over Sendrecv"}


def in_words(variant):
    """A variant of `paceline bench` in the words of a legend."""
    if variant in WORDS:
        return WORDS[variant]
    words = variant.replace("mpi ", WORDS["mpi non-blocking"] + " ", 1)
    return re.sub(r" x 1(?!\d)", "", words)


def is_cold(row):
    """True for the first calls of new processes: `paceline bench --cold`."""
    return bool(row.get("cold"))


def is_ours(row):
    """True for this library's variants."""
    return row["library"] == "paceline"


def by_size(file, row):
    """True if cut into segments of a fixed length, and for what these are compared with."""
    return bool(row.get("segment_bytes")) or whole(file, row)


def by_number(file, row):
    """True if cut into a fixed number of segments, or chosen, and for what it is compared with."""
    return not row.get("segment_bytes") and row.get("combines", True)


def whole(file, row):
    """True if not cut: blocking, non-blocking, or the choice when nothing is named."""
    if not row.get("combines", True) or row.get("segment_bytes"):
        return False
    return row["segments"] in (None, 0, 1) or bool(row.get("chosen"))


def with_and_without(file, row):
    """True for variants that were measured with and without arithmetic."""
    twins = {(r["variant"].removesuffix(", no reduce"), r["bytes"]) for r in file.records
             if not r.get("combines", True)}
    return (row["variant"].removesuffix(", no reduce"), row["bytes"]) in twins


def of_mpi(*kinds):
    """Selects the MPI's own calls, in files of these MPIs."""
    return lambda file, row: row["library"] == "mpi" and file.kind in kinds
