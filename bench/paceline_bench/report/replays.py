"""Measured lines of `paceline report training`: Horovod's loop and DDP's buckets, replayed between
nodes, over us and over an MPI. From files of `paceline train replay --json`, CSVs of those, and
bench/results/training.csv."""

from dataclasses import dataclass
from pathlib import Path

from paceline.errors import UsageError
from paceline.files import read_json, read_text

from paceline_bench.measure import campaign
from paceline_bench.report import paired
from paceline_bench.report.lines import Line, Panel, Point, Records
from paceline_bench.report.measured import network_of
from paceline_bench.train import perfect, replay_campaign

LABELS = {"mpi": "the MPI, blocking", "mpi-nonblocking": "the MPI, non-blocking",
          "mpi non-blocking": "the MPI, non-blocking",
          "mpi-parts": "the MPI, non-blocking in four parts",
          "mpi-ring": "the MPI's ring, blocking",
          "mpi-ring-parts": "the MPI's ring, non-blocking in four parts",
          "paceline": "paceline", "gloo": "gloo"}
LOOPS = {"horovod": "Horovod's loop", "ddp": "DDP's buckets"}
OVER_MPI, NON_BLOCKING, IN_PARTS, OURS = "mpi", "mpi-nonblocking", "mpi-parts", "paceline"
RING, RING_PARTS = "mpi-ring", "mpi-ring-parts"
PAIRS = ((NON_BLOCKING, OVER_MPI), (IN_PARTS, OVER_MPI), (IN_PARTS, NON_BLOCKING),
         (RING, OVER_MPI), (RING_PARTS, OVER_MPI), (OURS, OVER_MPI), (OURS, NON_BLOCKING),
         (OURS, IN_PARTS), (OURS, RING_PARTS), (OURS, "gloo"))


@dataclass(frozen=True)
class Replayed:
    """One file, or a series of one. `rows`: (model, way, launches, seconds, low, high)."""

    origin: Records
    ranks: int
    rows: tuple
    compared: tuple = ()  # of paired.Compared; none where a file has medians alone

    def panels(self):
        """A Panel for each model and loop of which the MPI's blocking call was measured, too."""
        made = []
        for loop in LOOPS:
            for model in dict.fromkeys(row[0] for row in self.rows):
                mine = [row for row in self.rows
                        if row[0] == model and row[1].partition(":")[0] == loop]
                auto = [row[3] for row in mine if row[1] == f"{loop}:{OVER_MPI}"]
                if auto:
                    made.append(self.panel(model, loop, mine, auto[0]))
        return made

    def panel(self, model, loop, rows, auto_s):
        """The Panel of these rows; labels give the speed as a multiple of the blocking call's."""
        lines = tuple(
            Line(f"{LABELS[way.partition(':')[2]]}: {auto_s / took:.3f}", self.origin,
                 (Point(self.ranks, 0, took, low, high),))
            for _, way, _, took, low, high in rows)
        launches = min(row[2] for row in rows)
        many = f"{launches} launch{'es' if launches > 1 else ''}"
        peer = self.origin.peer.split(",")[0]
        return Panel(f"{model}, {LOOPS[loop]}, {self.ranks} ranks, {self.origin.network}, {peer}, "
                     f"{many}", "", lines, {})


def origin_of(name, head):
    """The origin of numbers."""
    machine, mpi = head["machine"], head.get("mpi") or {}
    about = f"{machine['processor']}, {machine['cores_allowed']} cores, {machine['system']}"
    return Records(name, network_of(mpi.get("cluster")), mpi.get("version", ""), head["date"][:10],
                   about, head["command"])


def read(file):
    """The Replayed of a file. Raises UsageError if it is none."""
    try:
        return of_campaign(file) if Path(file).suffix == ".csv" else of_replay(file)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"report: {Path(file).name} is no file of `paceline train replay --json`, and no "
            f"campaign as bench/results/training.csv ({type(error).__name__}: {error}).") from None


def of_replay(file):
    """`paceline train replay --json`."""
    content = read_json(file, "file of replayed steps", lambda value: value)
    return [of_content(Path(file).name, content)]


def of_content(name, content):
    """The Replayed of one file's content."""
    rows = []
    for model, ways in content["summary"].items():
        for way, row in ways.items():
            if way.partition(":")[0] in perfect.BY_LIBRARY and "step_s" in row:
                rows.append((model, way, row["launches"], row["step_s"], row.get("low_s"),
                             row.get("high_s")))
    origin = origin_of(name, content)
    pairs = [tuple(f"{loop}:{library}" for library in pair) for loop in LOOPS for pair in PAIRS]
    found = tuple(paired.compared(content, origin.network, origin.peer, pairs))
    return Replayed(origin, content["plan"]["ranks"], tuple(rows), found)


def of_campaign(file):
    """Heads of series as JSON, and rows: of launches, or of medians as they were kept before."""
    heads, rows = read_text(file, "campaign", campaign.parts_of)
    if tuple(rows.fieldnames or ()) == replay_campaign.COLUMNS:
        return [of_content(f"{Path(file).name}, {series}", content)
                for series, content in replay_campaign.read(file).items()]
    found, rows = [], list(rows)
    for head in heads:
        mine = [(row["model"], f"ddp:{row['library']}", int(row["launches"]), float(row["step_s"]),
                 None, None) for row in rows if row["series"] == head["series"]]
        ranks = head["plan"]["ranks"]
        found.append(Replayed(origin_of(f"{Path(file).name}, {head['series']}", head), ranks,
                              tuple(mine)))
    if not found:
        raise ValueError("it has no series")
    return found
