"""How long each test and each phase took: kept in out/durations.json, so that the next run here
can say what grew, and knows what a phase takes on this machine."""

import json

from dev import slowness
from dev.process import ROOT

FILE = ROOT / "out/durations.json"
SLOWEST = 10
HANGS = 4  # times the usual
GROWN = 2.0, 5.0  # times, and by seconds


class Durations:
    """Of this run, beside those of the run before on this machine."""

    def __init__(self, file=FILE):
        self.file, self.now, self.phases = file, {}, {}
        try:
            kept = json.loads(file.read_text())
            self.before, self.usual = numbers(kept["tests"]), numbers(kept["phases"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self.before, self.usual = {}, {}

    def add(self, seconds):
        self.now.update(seconds)

    def keep(self):
        """What was not run this time keeps its time."""
        if self.now or self.phases:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            kept = {"tests": self.before | self.now, "phases": self.usual | self.phases}
            self.file.write_text(json.dumps(kept, indent=0, sort_keys=True))

    def phase(self, name, seconds):
        """A phase that came to its end, rightly."""
        self.phases[name] = seconds

    def limit_of(self, phase, idle_s):
        """Seconds after which a phase hangs: four times what it takes on two idle cores, slow as
        this machine is now, or took the last time here where that was more."""
        return HANGS * max(idle_s * slowness.factor(), self.usual.get(phase, 0))

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


def numbers(kept):
    return {name: float(seconds) for name, seconds in kept.items()}
