"""Late ranks as they were measured between nodes: files of `paceline bench --arrival`, and of calls
without a late rank, beside them."""

import re
from dataclasses import dataclass

from paceline import _core

from paceline_bench.report.lines import Figure
from paceline_bench.report.verdicts import Cell

NAME = "late ranks, measured"
SHARED = re.compile(r"lab of 4 nodes, 2 ranks each,")  # the network of the goals about late ranks
OFF = ", predict off"  # ends the label of a call without a prediction
FROM = 1 << 20   # goals are of longer messages
HEADINGS = ("network, MPI", "numbers", "arrival", "size", "", "after the last", "in the call",
            "late form from call")
LAB = (("4", "2", "3"), ("8", "1", "1"))   # nodes, ranks of each, the late rank
SIZES = "1MiB,4MiB"
FOLDER = "build/late"


@dataclass(frozen=True)
class OfFiles(Figure):
    """A Figure that remembers what it was made of."""

    files: tuple = ()


def asked(file, option, usual):
    """The value of an option in the command that made a file."""
    found = re.search(rf"--{option}[ =](\S+)", file.origin.command)
    return found[1] if found else usual


def is_late(row):
    """True for calls to which the same ranks come late each time."""
    return (row.get("arrival") or "").startswith(("late:", "trace:"))


def rows_of(file):
    """Rows below HEADINGS, of one file with late ranks."""
    place = f"{file.origin.network}, {file.origin.peer.split(',')[0]}"
    for row in file.records:
        if is_late(row):
            message, call = row["message_us"], row.get("late_from_call")
            arrival = re.sub(r":/\S*/", ":", row["arrival"])
            yield (place, asked(file, "numbers", "stable"), arrival,
                   _core.human_bytes(row["bytes"]), row["variant"],
                   f"{row['time_us_median'] / message:.2f}",
                   f"{row['in_call_us_mean'] / message:.2f}", str(call) if call else "")


def figures(files):
    """The Figure of this part; none without files that have late ranks."""
    table = [row for file in files for row in rows_of(file)]
    if not table:
        return []
    return [OfFiles(
        NAME, "left after the last entry, measured",
        "Times over n/rate of a node's link, medians of calls one at a time: from the last entry "
        "to the last exit, and from entry to exit as the mean of all ranks, so that waiting is in "
        "it. Ranks come late from the first call on; the last column says which call was the first "
        "to take a form for late ranks.",
        (), table=(HEADINGS, *table), files=tuple(files))]


def late(file, numbers):
    """Cells of what is left after the last entry, of chosen calls that may predict."""
    if asked(file, "numbers", "stable") != numbers or not SHARED.match(file.origin.network):
        return []
    return [Cell("measured", f"{_core.human_bytes(row['bytes'])}, {row['arrival']}",
                 row["time_us_median"] / row["message_us"], group=file.origin.network)
            for row in file.records if is_late(row) and row["bytes"] >= FROM
            and row["chosen"] and not row["variant"].endswith(OFF)]


def together(file, named):
    """Cells of calls without a late rank, by those that may not predict. `named`: a rank was
    named late all the same."""
    if asked(file, "predict", "nodes").startswith("static:") != named:
        return []
    times = {(row["variant"], row["bytes"]): row["time_us_median"] for row in file.records
             if row.get("arrival") in ("together", None) and row["chosen"]}
    place = f"{file.origin.network}, numbers={asked(file, 'numbers', 'stable')}"
    return [Cell("measured", _core.human_bytes(nbytes), took / times[label + OFF, nbytes],
                 group=place)
            for (label, nbytes), took in times.items()
            if nbytes >= FROM and (label + OFF, nbytes) in times]


def cells(named):
    """{claim: its Cells}."""
    files = named[NAME].files if NAME in named else ()
    return {
        **{f"goal: late, {numbers}": [cell for file in files for cell in late(file, numbers)]
           for numbers in ("fast", "stable")},
        "goal: named, in time": [cell for file in files for cell in together(file, True)],
        "goal: none late": [cell for file in files for cell in together(file, False)]}


def commands():
    """The commands that make the files, in the lab."""
    yield f"mkdir -p {FOLDER}"
    for nodes, ranks, rank in LAB:
        yield f"./dev lab up {nodes} --ppn {ranks} --rate 200mbit"
        bench = f"./dev lab bench allreduce --mpi mpich5 --no-predict --sizes {SIZES}"
        for name, more in (("late-by-1", f"--repeats 5 --arrival late:{rank}:1"),
                           ("none-late", "--repeats 7"),
                           ("in-time", f"--repeats 7 --predict static:{rank}")):
            yield f"{bench} {more} --json {FOLDER}/{nodes}x{ranks}-{name}-stable.json"
        yield "./dev lab down"
