"""Measured lines of training: from files of `paceline train --json` and `paceline train replay`."""

import re
from pathlib import Path

from paceline.errors import UsageError
from paceline.files import read_json, read_text

from paceline_bench.measure import campaign
from paceline_bench.report.lines import Line, Panel, Point, Records, split
from paceline_bench.report.measured import network_of
from paceline_bench.train import replay_campaign, run_campaign

REPLAY = ("bounds", "summary", "plan")


class Trained:
    """One file."""

    def __init__(self, file, content):
        lacking = [key for key in ("machine", "date", "command") if key not in content]
        self.is_replay = all(key in content for key in REPLAY)
        if lacking or not (self.is_replay or run_campaign.is_run(content)):
            raise UsageError(f"report: {Path(file).name} is not a file of `paceline train --json` "
                             "or `paceline train replay --json`.")
        mpi, machine = content.get("mpi") or {}, content["machine"]
        about = f"{machine['processor']}, {machine['cores_allowed']} cores, {machine['system']}"
        self.content, self.plan = content, content["plan"]
        self.network = network_of(mpi.get("cluster"))
        self.origin = Records(Path(file).name, self.network, mpi.get("version", ""),
                              content["date"][:10], about, content["command"])

    @property
    def is_bsp(self):
        """True for training by BSP-SGD."""
        return not self.is_replay and run_campaign.is_bsp(self.plan)

    @property
    def first(self):
        """Rank 0's result."""
        return self.content["ranks"][0]

    @property
    def workers(self):
        """Ranks."""
        return len(self.content["ranks"])

    @property
    def label(self):
        """The way, in words."""
        plan = self.plan
        found = re.fullmatch(r"bsp(\d)(-overlap)?", plan["way"])
        words = plan["way"]
        if found:
            method = (plan["collectives"] or "chosen").upper()
            words = f"{method} {'overlapped ' if found[2] else ''}Algorithm {found[1]}"
        return words if plan["over"] == "paceline" else f"{words} over {plan['over']}"

    @property
    def title(self):
        """Network and data."""
        return f"{self.plan['model']}, {self.first['data']}"


def read(file):
    """The Trained of a file, or of each series of a CSV. Raises UsageError."""
    if Path(file).suffix == ".csv":
        _, rows = read_text(file, "campaign of training", campaign.parts_of)
        is_runs = tuple(rows.fieldnames or ()) == run_campaign.COLUMNS
        return [Trained(f"{Path(file).name}, {series}", content) for series, content in
                (run_campaign if is_runs else replay_campaign).read(file).items()]
    content = read_json(file, "file of training", lambda value: value)
    if not isinstance(content, dict):
        raise UsageError(f"report: {Path(file).name} is not a file of `paceline train --json`.")
    return [Trained(file, content)]


class Lines:
    """Panels of all files."""

    def __init__(self, files):
        self.trained = [file for file in files if not file.is_replay and file.first["epochs"]]
        self.replayed = [file for file in files if file.is_replay]

    def grouped(self, title_of):
        """{title: [Trained]}."""
        found = {}
        for file in self.trained:
            found.setdefault(title_of(file), []).append(file)
        return found

    def epochs(self):
        """Epoch time over workers; the shortest epoch of each file."""
        made = []
        for title, files in self.grouped(lambda file: file.title).items():
            by_label = {}
            for file in files:
                took = min(row["seconds"] for row in file.first["epochs"])
                by_label.setdefault(file.label, []).append((file, took))
            lines = tuple(
                Line(label, found[0][0].origin, tuple(
                    Point(file.workers, 0, took)
                    for file, took in sorted(found, key=lambda one: one[0].workers)))
                for label, found in by_label.items())
            made += split(Panel(f"{title}, one machine", "", lines, {}, "ranks"))
        return made

    def curves(self, value, points_of):
        """A Panel for each network and number of workers."""
        made = []
        for title, files in self.grouped(lambda f: f"{f.title}, {f.workers} workers").items():
            lines = tuple(Line(file.label, file.origin, tuple(points_of(file))) for file in files)
            made += split(Panel(title, "", lines, {}, value=value))
        return made

    def accuracies(self):
        """Panels of the accuracy after each epoch."""
        return self.curves("validation accuracy", lambda file: [
            Point(file.workers, 0, row["time_s"], value=row["accuracy"])
            for row in file.first["epochs"]])

    def losses(self):
        """Loss of rank 0's batches, of BSP-SGD, over time."""
        return Lines([file for file in self.trained if file.is_bsp]).curves("loss", lambda file: [
            Point(file.workers, 0, time_s, value=loss)
            for time_s, loss in run_campaign.means(file.first["losses"])])

    def profiles(self):
        """Table 2: the exchange of an iteration alone."""
        made = []
        # Training that ended before its time has none.
        bsp = Lines([file for file in self.trained if file.is_bsp and file.first.get("profile")])
        for title, files in bsp.grouped(lambda f: f"{f.title}, {f.workers} workers").items():
            lines = tuple(Line(file.label, file.origin, (
                Point(file.workers, 0, file.first["profile"]["exchange_s"]),)) for file in files)
            made += split(Panel(f"{title}, exchange alone", "", lines, {}))
        return made

    def replays(self):
        """Steps in a row."""
        made = []
        for file in self.replayed:
            ranks, ratio = file.plan["ranks"], file.plan["ratio"]
            for model, rows in file.content["summary"].items():
                lines = tuple(
                    Line(way, file.origin, (Point(ranks, 0, row["step_s"], row.get("low_s"),
                                                  row.get("high_s")),))
                    for way, row in rows.items() if "step_s" in row)
                if not lines:
                    continue
                words = f", computing = {ratio:g} x communicating" if ratio else ""
                least = min(file.content["bounds"][model].values())
                made.append(Panel(f"{model}, {ranks} ranks, {file.network}{words}", "", lines,
                                  {0: least}))
        return made
