"""How long each test took: kept in out/durations.json, so that the next run here can say what grew.
"""

import json

from dev.process import ROOT

FILE = ROOT / "out/durations.json"
SLOWEST = 10
GROWN = 2.0, 5.0  # times, and by seconds


class Durations:
    """Of this run, beside those of the run before on this machine."""

    def __init__(self, file=FILE):
        self.file, self.now = file, {}
        try:
            self.before = json.loads(file.read_text())
        except (OSError, ValueError):
            self.before = {}

    def add(self, seconds):
        self.now.update(seconds)

    def keep(self):
        """Tests that were not run this time keep their time."""
        if self.now:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.before | self.now, indent=0, sort_keys=True))

    def grown(self):
        """(test, seconds before, now) of those that take much longer than the last time."""
        times, by_s = GROWN
        found = [(name, self.before[name], now) for name, now in self.now.items()
                 if name in self.before and now > times * self.before[name]
                 and now > self.before[name] + by_s]  # fmt: skip
        return sorted(found, key=lambda row: row[1] - row[2])

    def lines(self):
        slowest = sorted(self.now.items(), key=lambda row: -row[1])[:SLOWEST]
        text = [f"  {seconds:7.1f} s  {name}" for name, seconds in slowest]
        text = ["slowest tests:", *text] if text else []
        grown = [f"  {before:5.1f} to {now:5.1f} s  {name}" for name, before, now in self.grown()]
        return [*text, *(["grown since the last run here:", *grown[:SLOWEST]] if grown else [])]
