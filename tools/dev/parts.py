"""The parts of `./dev test --long`, of at most an hour each, and the time when each last ran.

`tests/long` has a line for each part: its name, the commit, the day, and how it ended. A part is
due that has never been green, or not for OLD commits.
"""

import datetime

from dev import base
from dev.process import ROOT

FILE = ROOT / "tests/long"
OLD = 30  # commits
NAMES = ("ctest", "pytest", "fuzz", "asan", "tsan", "aarch64", "torch")


def ages():
    """Part -> commits since it was green; None if it was not, or git does not know."""
    lines = map(str.split, FILE.read_text().splitlines() if FILE.exists() else ())
    green = {name: commit for name, commit, _, result in lines if result == "green"}
    return {name: commits_since(green.get(name)) for name in NAMES}


def commits_since(commit):
    counted = commit and base.git("rev-list", "--count", f"{commit}..HEAD")
    return int(counted) if counted else None


def oldest():
    """The part that `./dev test --due` runs."""
    found = ages()
    return max(NAMES, key=lambda name: float("inf") if found[name] is None else found[name])


def described():
    """The parts that are due, on a line; empty if none is."""
    due = [f"{name} ({'never green' if age is None else f'{age} commits'})"
           for name, age in ages().items() if age is None or age > OLD]  # fmt: skip
    return f"due of --long: {', '.join(due)}; ./dev test --due runs the oldest" if due else ""


def note(name, commit, green):
    """Writes down how a part ended, unless what ran is no commit."""
    if base.changed_since(commit) not in ([], ["tests/long"]):
        print(f"tests/long: nothing is written down, since the tree differs from {commit[:10]}")
        return
    kept = FILE.read_text().splitlines() if FILE.exists() else []
    row = f"{name:<8} {commit} {datetime.date.today()} {'green' if green else 'red'}"
    lines = [line for line in kept if line.split()[0] != name]
    FILE.write_text("\n".join(sorted([*lines, row])) + "\n")
