"""Reports the phases of ./dev test: as a table, and as a row of docs/reliability.md."""

import datetime
import re
import resource
import sys
import time
import traceback

from dev.process import Failed


class Report:
    """The phases that ran, their times and ends; no phase goes on after `limit_s` in all. A run
    longer than `target_s` is reported, but does not fail."""

    def __init__(self, command, commit, limit_s=None, target_s=None):
        self.command, self.commit = command, commit
        self.limit_s, self.target_s = limit_s, target_s
        self.begun = time.monotonic()
        self.rows = []  # (phase, wall and processor seconds, failure or None, lines to keep)

    def phase(self, name, action, limit_s=600):
        """Run one phase: action(seconds that it may take); True if it was green. A failure is
        written down, and the next phase can still run."""
        print(f"\n=== {name} ===", flush=True)
        start, cpu_s, failure = time.monotonic(), processor_seconds(), None
        if self.limit_s is not None:
            limit_s = min(limit_s, self.limit_s - self.seconds())
        try:
            if limit_s <= 0:
                raise Failed(f"not begun: the {self.limit_s:g} s of {self.command} are over")
            lines = action(limit_s) or ""
        except Failed as caught:
            failure, lines = caught, caught.summary
            print(f"{name}: {caught}", file=sys.stderr, flush=True)
        except Exception as caught:  # the other phases have something to say as well
            failure, lines = Failed(f"{type(caught).__name__}: {caught}"), ""
            traceback.print_exc()
        took = time.monotonic() - start, processor_seconds() - cpu_s
        self.rows.append((name, *took, failure, lines))
        return failure is None

    def seconds(self):
        """Seconds so far."""
        return time.monotonic() - self.begun

    def finish(self):
        """Print the table, what ctest and pytest counted and skipped, and it all as one row."""
        print("\nphase              minutes  of processors")
        for name, seconds, cpu_s, failure, _ in self.rows:
            verdict = f"FAILED ({failure})" if failure else "ok"
            print(f"{name:<18} {seconds / 60:7.1f} {cpu_s / 60:14.1f}  {verdict}")
        total, cpu_s = self.seconds(), sum(row[2] for row in self.rows)
        print(f"{'total':<18} {total / 60:7.1f} {cpu_s / 60:14.1f}")
        if self.target_s:
            over_s = total - self.target_s
            print(f"{'target':<18} {self.target_s / 60:7.1f} {'':14}  "
                  + (f"missed by {over_s / 60:.1f} minutes" if over_s > 0 else "met"))
        for name, _, _, _, lines in self.rows:
            if lines:
                print(f"\n{name}:\n{lines}")
        print(f"\nFor docs/reliability.md:\n{self.row()}")
        return 1 if any(failure for *_, failure, _ in self.rows) else 0

    def flaky(self):
        """The tests that passed at their second try only: each is mended next, or has a row in
        tests/FLAKY.md."""
        return [line.split()[1].rstrip(":") for *_, lines in self.rows
                for line in (lines or "").splitlines() if line.startswith("FLAKY ")]  # fmt: skip

    def row(self):
        """A row for docs/reliability.md: commit, minutes, counts, why tests were skipped."""
        minutes = ", ".join(f"{name} {wall / 60:.1f}" for name, wall, *_ in self.rows)
        failed = [name for name, _, _, failure, _ in self.rows if failure]
        counts = "; ".join(f"{name}: {brief(lines)}" for name, *_, lines in self.rows if lines)
        verdict = f"FAILED: {', '.join(failed)}" if failed else "all right"
        verdict += f" (flaky: {', '.join(self.flaky())})" if self.flaky() else ""
        return (f"| all of it | `{self.command}` | {datetime.date.today()}, commit "
                f"{self.commit[:10]}: {verdict}; "
                f"{self.seconds() / 60:.0f} minutes ({minutes}). {counts} |")


def brief(lines):
    """The counts of a phase, on one line that a table can hold."""
    words = (re.sub(r"^=+ | =+$", "", line) for line in lines.splitlines()
             if not re.match(r"FAILED |FLAKY |[\d.]+s ", line))  # fmt: skip
    return ", ".join(words).replace("|", "/")


def processor_seconds():
    """Processor seconds of all descendants that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
