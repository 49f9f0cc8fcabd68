#!/usr/bin/env python3
"""The house rules, checked on every file that git tracks or would: `./dev tidy`.

One line per finding: path:line rule message. Exit status 1 if there is any.
"""

import os
import subprocess
import sys
from pathlib import Path

from tidy_rules import RULES

ROOT = Path(__file__).resolve().parents[2]
TITLE, TITLES_SINCE = 60, "2026-11-25T00:00:00+00:00"
NOT_OURS = {".git", ".venv", "build", "out", "__pycache__", ".pytest_cache", ".ruff_cache"}


def paths():
    """Every file of the tree, relative to its root; without git, all but what builds leave."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists():
        names = subprocess.run(git, capture_output=True, check=True).stdout.decode().split("\0")
        return sorted({name for name in names if name and (ROOT / name).is_file()})
    names = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS]
        names += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files]
    return sorted(names)


def read_tree():
    tree = {}
    for name in paths():
        data = (ROOT / name).read_bytes()
        try:
            if b"\0" not in data:
                tree[name] = data.decode("utf-8")
        except UnicodeDecodeError:
            pass  # not text
    return tree


def findings(tree, rules=RULES):
    """(path, line, rule, message) of everything that breaks a rule."""
    for path, text in sorted(tree.items()):
        for rule in rules:
            for line, message in rule(path, text, tree):
                yield path, line, rule.__name__, message


def long_titles(log):
    """The commits, by "hash title" in lines, whose title is too long to be read in a list."""
    rows = (line.partition(" ") for line in log.splitlines())
    return [commit for commit, _, title in rows if len(title) > TITLE]


def log():
    """Titles from the day on which they are checked; none without git."""
    words = ["git", "-C", str(ROOT), "log", "--no-merges", f"--since={TITLES_SINCE}",
             "--format=%h %s"]
    return subprocess.run(words, capture_output=True, text=True).stdout


def main():
    tree = read_tree()
    count = 0
    for commit in long_titles(log()):
        print(f"{commit} title more than {TITLE} characters: say the rest in the body")
        count += 1
    for path, line, rule, message in findings(tree):
        print(f"{path}:{line} {rule} {message}")
        count += 1
    print(f"tidy: {len(tree)} files, {len(RULES)} rules, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
