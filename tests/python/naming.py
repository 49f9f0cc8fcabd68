"""Names a test that fails when it fails, on one line; keeps that in a file.

TESTS_RESULTS names that file: a line of JSON for each failure ("test", "failed": why, "again":
whether a second try can say more).
"""

import json
import os

import pytest
from dev import skips

FILE = "TESTS_RESULTS"
TAIL_LINES = 6
MOST = 1500  # characters of a line


def squeezed(text):
    return " ".join(str(text).split())


def reason_of(report):
    """Why it failed, and the last of what was written: by the test, or by its ranks."""
    crash = getattr(report.longrepr, "reprcrash", None)
    why = squeezed(crash.message if crash else report.longrepr)[: MOST // 2]
    written = [line for line in report.longreprtext.splitlines() if line.strip()]
    for _, text in report.sections:
        written += [line for line in text.splitlines() if line.strip()]
    tail = " | ".join(squeezed(line) for line in written[-TAIL_LINES:])
    return f"{why} ... {tail[-(MOST - len(why)):]}" if tail and tail != why else why


class Namer:
    """A plugin of the process that hands the tests out."""

    def __init__(self, say, ended):
        self.say, self.ended = say, ended
        self.named = set()
        self.file = open(os.environ[FILE], "a") if os.environ.get(FILE) else None

    def write(self, **row):
        if self.file:
            print(json.dumps(row), file=self.file, flush=True)

    def name(self, test, why, again=True):
        self.say(f"FAILED: {test}: {why}")
        self.write(test=test, failed=why, again=again)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        if report.failed:
            why = self.ended.get(report.nodeid) or reason_of(report)
            where = getattr(report, "worker_id", "main")
            self.name(report.nodeid, f"({where}, {report.when}) {why}")
        elif report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if not skips.is_known(reason):
                self.name(report.nodeid, f"skipped for a reason that nobody knows: {reason}; "
                          f"a new one needs a row in {skips.__file__}", again=False)  # fmt: skip

    def pytest_collectreport(self, report):
        if report.failed and report.nodeid not in self.named:  # each worker says it
            self.named.add(report.nodeid)
            self.name(report.nodeid, f"cannot be read: {reason_of(report)}", again=False)

    def pytest_sessionfinish(self):
        if self.file:
            self.file.close()
            self.file = None
