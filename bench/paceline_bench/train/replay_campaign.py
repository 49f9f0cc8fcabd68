"""Files of `paceline train replay --json` as one CSV, which has a row for each launch of a way.

The lines on top begin with `# `; each is the head of one file as JSON: its series, which is the
file's name, date, machine, MPI, versions, command, and the plan without the networks' layers.
"""

from paceline.files import read_text

from paceline_bench.measure import campaign
from paceline_bench.train import replay

COLUMNS = ("series", "model", "way", "launch", "step_s", "perfect_s", "simulated_s")
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
    found = campaign.series_of(
        text, COLUMNS, lambda head: {**head, "bounds": {}, "simulated": {}, "launches": []},
        add_row)
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
    return campaign.written(series, COLUMNS, head_of, rows_of)


def head_of(name, content):
    """The head of a file, with the parts of its plan in PLAN."""
    plan = {key: content["plan"][key] for key in PLAN if key in content["plan"]}
    return {"series": name, **campaign.head_of(content), "plan": plan}


def add(file, series, hide=""):
    """Adds series to a file as campaign.add() does."""
    return campaign.put(file, series, hide, read, text_of)
