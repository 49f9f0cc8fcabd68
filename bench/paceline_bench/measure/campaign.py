"""A campaign: many runs of `paceline bench` for one question, as one CSV with verdicts.

A row is one variant at one size in one run: medians, intervals and verdicts, and no repetitions.
The lines on top begin with `# `; each is the head of one run as JSON: its series (which table of
the campaign it belongs to), the MPI's setting, date, machine, versions and command.
"""

import csv
import io
import json
import re
from pathlib import Path

from paceline.errors import UsageError
from paceline.files import read_text

COLUMNS = ("series", "setting", "collective", "ranks", "bytes", "variant", "library", "algorithm",
           "segments", "segment_bytes", "combines", "chosen", "cold", "dtype", "op", "launches",
           "time_us", "low_us", "high_us", "bound_us", "messages", "rounds", "ratio", "ratio_low",
           "ratio_high", "verdict")
WHOLE = ("ranks", "bytes", "segments", "segment_bytes", "launches", "late_from_call")
NUMBERS = ("time_us", "low_us", "high_us", "bound_us", "messages", "rounds", "ratio", "ratio_low",
           "ratio_high", "message_us", "in_call_us_mean", "imbalance_us_median")
TRUTHS = ("combines", "chosen", "cold")
# Columns of runs with arrival patterns: time_us is from last arrival to last exit. Other files
# lack these.
ARRIVALS = ("arrival", "predict", "message_us", "in_call_us_mean", "imbalance_us_median",
            "late_from_call")
HEAD = ("machine", "date", "command", "mpi", "versions", "paceline_machine", "notes")


def row_of(series, setting, record):
    """A row, from a record of `paceline bench --json`."""
    interval, peer = record.get("interval") or {}, record.get("peer") or {}
    verdict = peer.get("verdict") or {}
    row = {name: record.get(name) for name in (*COLUMNS, *ARRIVALS)}
    row |= {"series": series, "setting": setting, "time_us": record["time_us_median"],
            "low_us": interval.get("low_us"), "high_us": interval.get("high_us"),
            "combines": record.get("combines", True),
            "cold": record.get("cold") or None,  # the few that are; empty else
            "ratio": peer.get("time_ratio_median"),
            "ratio_low": verdict.get("low"), "ratio_high": verdict.get("high"),
            "verdict": verdict.get("word")}
    return row


def record_of(row):
    """The record of a row, as far as the row has it."""
    low, high = row["low_us"], row["high_us"]
    record = {name: row[name] for name in row if name not in ("series", "setting")}
    verdict = row["verdict"] and {"word": row["verdict"], "low": row["ratio_low"],
                                  "high": row["ratio_high"]}
    record |= {"time_us_median": row["time_us"],
               "interval": None if low is None else {"low_us": low, "high_us": high},
               "peer": None if row["ratio"] is None else {
                   "time_ratio_median": row["ratio"], "verdict": verdict}}
    return record


def shown(value):
    """The text of a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def value_of(name, cell):
    """The value of a cell. Raises ValueError."""
    if cell == "":
        return False if name in TRUTHS else None
    if name in TRUTHS:
        return {"yes": True, "no": False}[cell]
    if name in WHOLE:
        return int(cell)
    return float(cell) if name in NUMBERS else cell


def read(file):
    """{series: {setting: content}}; a content has what `paceline bench --json` writes, but for
    repetitions. Raises UsageError that names the file."""
    return read_text(file, "campaign of measurements", parsed)


def parsed(text):
    """Parses the text of such a file. Raises ValueError."""
    heads, rows = parts_of(text)
    if not rows.fieldnames or set(COLUMNS) - set(rows.fieldnames):
        lacking = sorted(set(COLUMNS) - set(rows.fieldnames or ()))
        raise ValueError(f"it has no column {', '.join(lacking)}")
    columns, found = [name for name in (*COLUMNS, *ARRIVALS) if name in rows.fieldnames], {}
    for head in heads:
        content = {name: value for name, value in head.items() if name not in ("series", "setting")}
        found.setdefault(head["series"], {})[head["setting"]] = {**content, "records": []}

    def add_row(row):
        values = {name: value_of(name, row[name]) for name in columns}
        found[values["series"]][values["setting"]]["records"].append(record_of(values))

    each_row(rows, add_row)
    return found


def parts_of(text):
    """The heads of any file of series, and a reader of its rows. Raises ValueError."""
    lines = text.splitlines(keepends=True)
    heads = [json.loads(line[2:]) for line in lines if line.startswith("# ")]
    return heads, csv.DictReader(io.StringIO("".join(line for line in lines if line[:1] != "#")))


def each_row(rows, add_row):
    """Calls add_row(row) for each row. Raises ValueError with the line of one that does not fit."""
    for row in rows:
        try:
            add_row(row)
        except (KeyError, TypeError) as error:
            raise ValueError(f"line {rows.line_num} of its rows: {error}") from None


def series_of(text, columns, start, add_row):
    """{series: content} of a file with one head for each series and exactly these columns.
    start(head) makes a content, add_row(content, row) fills it. Raises ValueError."""
    heads, rows = parts_of(text)
    if tuple(rows.fieldnames or ()) != columns:
        raise ValueError(f"its columns are not {', '.join(columns)}")
    try:
        found = {head.pop("series"): start(head) for head in heads}
    except KeyError as error:
        raise ValueError(f"a head has no {error}") from None
    each_row(rows, lambda row: add_row(found[row["series"]], row))
    return found


def without_folders(command):
    """A command whose files lost the folders of the machine that it ran on."""
    return re.sub(r"(?<![\w.~])/(?:[^\s/]+/)*(?=[^\s/])", "", command)


def head_of(content):
    """Returns the parts of a content that say where it comes from."""
    head = {key: content[key] for key in HEAD if content.get(key)}
    if "command" in head:
        head["command"] = without_folders(head["command"])
    return head


def text_of(series):
    """The file's text; `series` as read() returns them."""
    contents = {(name, setting): content for name, settings in series.items()
                for setting, content in settings.items()}
    apart = any(record.get("message_us") is not None for content in contents.values()
                for record in content["records"])
    return written(
        contents, (*COLUMNS, *ARRIVALS) if apart else COLUMNS,
        lambda names, content: {"series": names[0], "setting": names[1], **head_of(content)},
        lambda names, content: (row_of(*names, record) for record in content["records"]))


def written(series, columns, head, rows):
    """The text of any file of series. head(name, content) is the head of a series,
    rows(name, content) are its rows."""
    out = io.StringIO()
    for name, content in series.items():
        out.write("# " + json.dumps(head(name, content)) + "\n")
    writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for name, content in series.items():
        writer.writerows({key: shown(value) for key, value in row.items()}
                         for row in rows(name, content))
    return out.getvalue()


def add(file, series, hide=""):
    """Puts series into a file, in the place of those of the same names; `hide` is a path that the
    file must not show."""
    return put(file, series, hide, read, text_of)


def put(file, series, hide, read, text_of):
    """The same for any file of series; `read` and `text_of` are its reader and writer."""
    file = Path(file)
    before = read(file) if file.exists() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    text = text_of(dict(sorted({**before, **series}.items())))
    file.write_text(text.replace(f"{hide}/", "") if hide else text, encoding="utf-8")
    return file


def of_json(content, name):
    """{name: {setting: content}} of what `paceline bench --json` or an older tool has written.
    Raises UsageError."""
    if isinstance(content, dict) and isinstance(content.get("settings"), dict):
        return {name: content["settings"]}
    if not isinstance(content, dict) or "records" not in content:
        raise UsageError(f"campaign: {name} has no records; it takes what paceline bench --json "
                         "wrote.")
    return {name: {(content.get("mpi") or {}).get("setting", "default"): content}}
