"""Files of `paceline train replay --json` as one CSV, which has a row for each launch of a way.

The lines on top begin with `# `; each is the head of one file as JSON: its series, which is the
file's name, date, machine, MPI, versions, command, and the plan without the networks' layers.
"""

import csv
import io
import json

from paceline.files import read_text

from paceline_bench.measure import campaign
from paceline_bench.train import replay

COLUMNS = ("series", "model", "way", "launch", "step_s", "perfect_s", "simulated_s")
HEAD = ("machine", "date", "command", "mpi", "versions")
PLAN = ("ranks", "steps_in_a_row", "machine", "slow", "jitter", "ratio", "images")


def is_replay(content):
    """True for the content of a file of `paceline train replay --json`."""
    return isinstance(content, dict) and all(
        key in content for key in ("plan", "bounds", "simulated", "launches"))


def rows_of(name, content):
    """Rows of a file: times, and the way's time with perfect links and in the simulator."""
    for number, launch in enumerate(content["launches"], 1):
        for model, times in launch["times"].items():
            for way, took in times.items():
                yield {"series": name, "model": model, "way": way, "launch": number,
                       "step_s": took, "perfect_s": content["bounds"][model][way],
                       "simulated_s": content["simulated"][model].get(way)}


def read(file):
    """{series: content}; contents as in the files, but for layers and refused ways. Raises
    UsageError that names the file."""
    return read_text(file, "campaign of replayed steps", parsed)


def parsed(text):
    """Parses the text of such a file. Raises ValueError."""
    lines = text.splitlines(keepends=True)
    heads = [json.loads(line[2:]) for line in lines if line.startswith("# ")]
    rows = csv.DictReader(io.StringIO("".join(line for line in lines if line[:1] != "#")))
    if tuple(rows.fieldnames or ()) != COLUMNS:
        raise ValueError(f"its columns are not {', '.join(COLUMNS)}")
    found = {head.pop("series"): {**head, "bounds": {}, "simulated": {}, "launches": []}
             for head in heads}
    for row in rows:
        try:
            add_row(found[row["series"]], row)
        except (KeyError, TypeError) as error:
            raise ValueError(f"line {rows.line_num} of its rows: {error}") from None
    for content in found.values():
        content["summary"] = replay.summary(content)
    return found


def add_row(content, row):
    """Puts a row where a file has it."""
    model, way, number = row["model"], row["way"], int(row["launch"])
    content["bounds"].setdefault(model, {})[way] = float(row["perfect_s"])
    simulated = content["simulated"].setdefault(model, {})
    if row["simulated_s"]:
        simulated[way] = float(row["simulated_s"])
    launches = content["launches"]
    while len(launches) < number:
        launches.append({"times": {}})
    launches[number - 1]["times"].setdefault(model, {})[way] = float(row["step_s"])


def text_of(series):
    """The file's text; `series`: {name: content}."""
    out = io.StringIO()
    for name, content in series.items():
        head = {key: content[key] for key in HEAD if content.get(key)}
        head["command"] = campaign.without_folders(head["command"])
        plan = {key: content["plan"][key] for key in PLAN if key in content["plan"]}
        out.write("# " + json.dumps({"series": name, **head, "plan": plan}) + "\n")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for name, content in series.items():
        writer.writerows({key: campaign.shown(value) for key, value in row.items()}
                         for row in rows_of(name, content))
    return out.getvalue()


def add(file, series, hide=""):
    """Adds series to a file as campaign.add() does."""
    return campaign.put(file, series, hide, read, text_of)
