"""Figures of README.md and docs/guide: each has a source beside it, and those of the README's table
follow from the rows of bench/results.

A figure is a number with a unit of time or of a rate, a percentage, or a number of `times`. Sizes
("25 MiB") and plain counts are none. A passage is a paragraph, a list item, a row of a table or a
block of output. It names its source: a file of bench/results, a test, or a command that prints the
figure (`paceline ...`, `./dev ...`, `python bench/...`). A block of commands just before or after
it will do. A limit is not measured: it names its option `PACELINE_..._MS` or its constant `kName`.
"""

import csv
import re
from pathlib import Path
from statistics import geometric_mean, median

import pytest

from paceline import _core

ROOT = Path(__file__).parents[2]
PAGES = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
         for path in (ROOT / "README.md", *ROOT.glob("docs/guide/*.md"))}
FIGURE = re.compile(r"\d ?(?:%|(?:ns|us|µs|ms|s|minutes|hours|[KMGT]i?B/s|[KMG]bit/s|images/s"
                    r"|times)\b)")
COMMAND = re.compile(r"(?:^|[ `=(/])(?:paceline [a-z]+|\./dev [a-z]+|python bench/\w)", re.M)
TABLE = PAGES["README.md"].partition("## How fast it is")[2].partition("\n## ")[0]


def passages(page):
    """(kind, text): a fenced block is of its language or `output`, everything else `prose`."""
    for number, part in enumerate(re.split(r"^(```.*?^```)$", page, flags=re.M | re.S)):
        if number % 2:
            yield re.match(r"```(\w*)", part)[1] or "output", part
        else:
            yield from (("prose", text) for text in
                        re.split(r"\n\s*\n|\n(?=\| |- |\d+\. )", part) if text.strip())


def in_code(name):
    return any(re.search(rf"\b{name}\b", path.read_text(encoding="utf-8"))
               for path in ROOT.glob("src/**/*.?pp"))


def is_source(text):
    """True if prose names a file, a command, or what sets a limit."""
    files = re.findall(r"`((?:bench/results|tests)/[\w./]+)`", text)
    options = {row["variable"] for row in _core.options()}
    return (any((ROOT / file).is_file() for file in files)
            or any(COMMAND.search(words) for words in re.findall(r"`[^`]+`", text))
            or bool(options & set(re.findall(r"PACELINE_\w+_MS", text)))
            or any(map(in_code, re.findall(r"`(k[A-Z]\w+)`", text))))


def without_source(page):
    """The passages with figures that have no source."""
    found, stands = list(passages(page)), []
    for kind, text in found:
        if kind == "output":                   # printed by what stands before it
            stands.append(bool(stands) and stands[-1])
        else:
            stands.append(is_source(text) if kind == "prose" else bool(COMMAND.search(text)))
    blocks = {number for number, (kind, _) in enumerate(found) if kind != "prose"}
    return [text for number, (kind, text) in enumerate(found)
            if kind in ("prose", "output") and FIGURE.search(text) and not stands[number]
            and not any(near in blocks and stands[near] for near in (number - 1, number + 1))]


@pytest.mark.parametrize("name", PAGES)
def test_figures_have_sources(name):
    assert without_source(PAGES[name]) == []


def test_figures_without_sources_are_found():
    wrong = ["It takes 3 ms.", "| `paceline hello` | 3 ms |\n| b | 1.2 times |", "```\n5 s\n```",
             "- `./dev gpu`\n- 5 % less", "1 us (`bench/results/gone.csv`)", "1 GB/s (`kNowhere`)",
             "1 s (`PACELINE_GONE_MS`)", "`paceline hello`.\n\n7 minutes on 2 cores"]
    right = ["25 MiB in 4 steps", "`./dev gpu`: 3 ms.", "```sh\npaceline hello\n```\n```\n5 s\n```",
             "10 ms (`bench/results/gpu.csv`)", "1 s (`PACELINE_STOPPED_MS`)", "5 % (`kMargin`)",
             "```sh\npaceline hello\n```\n\nprints 5 s"]
    assert [len(without_source(text)) for text in wrong] == [1] * len(wrong)
    assert [without_source(text) for text in right] == [[]] * len(right)


def rows(name, **columns):
    lines = (ROOT / f"bench/results/{name}.csv").read_text(encoding="utf-8").splitlines()
    found = [row for row in csv.DictReader(line for line in lines if line[0] != "#")
             if all(row[column] in value for column, value in columns.items())]
    assert found, (name, columns)
    return found


def faster(name, **columns):
    """The factor by which Paceline beats its peer: the mean of a campaign's ratios."""
    return geometric_mean(1 / float(row["ratio"]) for row in rows(name, **columns))


def replayed(name, series, way, other):
    """The same for steps, by the medians of their launches."""
    took = [median(float(row["step_s"]) for row in rows(name, series=[series], way=[each]))
            for each in (way, other)]
    return took[1] / took[0]


def left(series, nbytes, variant):
    """Time from the last entry on, in times of the message."""
    [row] = rows("late", series=[series], bytes=[str(nbytes)], variant=[variant])
    return float(row["time_us"]) / float(row["message_us"])


GLOO = {"series": ["allreduce-2-ranks-float32"], "variant": ["torch paceline"]}
MPI = {"setting": ["default"], "variant": ["paceline"]}
NUMBERS = {
    "{:.0f} to {:.0f} times as fast from 1 to 64 KiB, {:.0f} times at 1 MiB, {:.1f} times at 64":
        [faster("torch", bytes=[str(kib << 10)], **GLOO) for kib in (64, 1, 1 << 10, 64 << 10)],
    "{:.1f}, {:.1f} and {:.1f} times as fast (geometric means":
        [faster("node", series=[f"node-{mpi}-allreduce"], **MPI)
         for mpi in ("openmpi5", "mpich5", "impi")],
    "{:.2f}, {:.2f}, {:.2f} and {:.2f} times as fast":
        [replayed("replay", f"resnet50-1-{mpi}", "auto:ready", way)
         for mpi, way in (("mpich5", "ddp:gloo"), ("mpich5", "ddp:mpi"), ("impi", "ddp:mpi"),
                          ("openmpi5", "ddp:mpi"))],
    "{:.2f} and {:.2f} times as fast":
        [replayed("horovod", f"{model}-8-openmpi5", "ddp:paceline", "ddp:mpi")
         for model in ("resnet110", "resnet50")],
    "MPICH {:.2f} (`bench/results/late.csv`)": [left("8x1-late-by-1-stable", 4 << 20, "mpi")],
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_follow_from_the_rows(text):
    assert text.format(*NUMBERS[text]) in TABLE
