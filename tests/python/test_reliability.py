"""docs/reliability.md: its commands name tests that there are, and try what their rows claim."""

import fnmatch
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reliability.md"
LONG = "PACELINE_LONG=1"


def commands(text):
    """Each command of the table: what is between backticks in the second column, word by word."""
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    for row in rows:
        for quoted in re.findall(r"`([^`]+)`", row[1]):
            for command in re.split(r"; (?:do )?|&& ", quoted):
                words = shlex.split(command)
                if any("/" in word for word in words):
                    yield words


def flaws(words):
    """Why this command does not try what a reader would expect."""
    if "pytest" in words:
        yield from flaws_of_pytest(words)
    for word in words:
        if word.startswith("--source-file="):
            for glob in word.partition("=")[2].split(","):
                if not fnmatch.filter(map(str, (ROOT / "tests").rglob("*.cpp")), glob):
                    yield f"no source file is {glob}"
        if word.startswith("--test-case="):
            cases = re.findall(r'TEST_CASE\(\s*"([^"]+)"', sources())
            if not fnmatch.filter(cases, word.partition("=")[2]):
                yield f"no test case is {word}"
        if re.fullmatch(r"build/\w+/tests/\w+", word):
            if not (ROOT / "tests" / Path(word).name).is_dir():
                yield f"there is no {word}"
    if words[:2] == ["./dev", "fuzz"] and not {"--seed", "--programs"} <= set(words):
        yield "random programs without a seed and a number are others each time"


def flaws_of_pytest(words):
    for word in words:
        if word.startswith("tests/") and not (ROOT / word).exists():
            yield f"there is no {word}"
    chosen = words[words.index("-k") + 1] if "-k" in words else ""
    for word in words:
        if word.endswith(".py") and (ROOT / word).exists() and LONG not in words and not chosen:
            text = (ROOT / word).read_text()
            if re.search(r"^@?(in_long|.*\b(each|param)\(|.*\bLONG\b)", text, re.MULTILINE):
                yield f"{word} has long tests, and {LONG} is missing"
    if chosen and "/" in words[-1]:
        yield f"-k {chosen} is no expression"


def sources():
    return "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*_test.cpp"))


def test_commands_try_what_they_claim():
    found = {shlex.join(words): [*flaws(words)] for words in commands(PAGE.read_text())}
    assert len(found) > 40
    assert {command: why for command, why in found.items() if why} == {}


@pytest.mark.parametrize("command", [
    ".venv/bin/python -m pytest tests/python/test_fork.py",  # its loaders of torch are long
    ".venv/bin/python -m pytest tests/python/test_no_such.py",
    "build/release/tests/unit --source-file='*no_such_test*'",
    "build/release/tests/process --test-case='*no such case*'",
    "build/release/tests/no_such",
    "./dev fuzz --on loop --programs 3000",
])  # fmt: skip
def test_a_command_that_does_not_is_found(command):
    (words,) = commands(f"| what | command | last |\n| a | `{command} tests/` | b |")
    assert [*flaws(words[:-1])], command
