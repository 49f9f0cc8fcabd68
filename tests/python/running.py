"""Hooks of conftest.py: which long tests run, how long a test may take, why one may be skipped."""

import collections
import os
import signal
import time
import zlib

import length
import pytest
import skips

LIMIT_S = 300  # of a test, its set-up and its end each; a machine under load is slow
LONG_LIMIT_S = 600
# What a signal cannot end, since it waits in C, pyproject.toml's faulthandler_timeout ends.

BEGUN = time.monotonic()


def pytest_configure(config):
    config.addinivalue_line("markers", "long: runs with PACELINE_LONG=1, and in its slice")
    config.addinivalue_line("markers", "limit_s(seconds): ends the test when it has taken so long")


def in_slice(name):
    """Whether this test is one of every n that PACELINE_SLICE=k/n chooses, by its name."""
    if not length.SLICE:
        return False
    which, of = map(int, length.SLICE.split("/"))
    return zlib.crc32(name.encode()) % of == which


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("long") and not (length.LONG or in_slice(item.nodeid)):
            item.add_marker(pytest.mark.skip(reason=length.REASON))


def limit_of(item):
    marker = item.get_closest_marker("limit_s")
    if marker:
        return marker.args[0]
    return LONG_LIMIT_S if length.LONG or item.get_closest_marker("long") else LIMIT_S


def bounded(item):
    """What a hook wrapper yields from: the test fails once it has taken as long as it may."""
    limit_s = limit_of(item)

    def end(*_):
        pytest.fail(f"no end after {limit_s} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    left_s = float(os.environ.get("PACELINE_SLICE_S", "inf"))
    if time.monotonic() - BEGUN > left_s and not length.LONG:
        pytest.skip(f"the slice's {left_s:g} s are over")
    return (yield from bounded(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from bounded(item))


def reasons(reporter):
    """Reason -> how many tests have been skipped for it."""
    skipped = [report.longrepr for report in reporter.stats.get("skipped", [])]
    return collections.Counter(
        one[2].removeprefix("Skipped: ") for one in skipped if isinstance(one, tuple)
    )  # fmt: skip


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and not session.exitstatus and not all(map(skips.is_known, reasons(reporter))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    for reason, count in reasons(terminalreporter).most_common():
        terminalreporter.write_line(f"skipped {count}: {' '.join(reason.split())}")
        if not skips.is_known(reason):
            terminalreporter.write_line(
                f"FAILED: not a reason that is known: a new one needs a row in {skips.__file__}")
