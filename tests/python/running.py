"""Hooks of conftest.py: which long tests run, how long a test may take, why one may be skipped, and
that nothing is left after the last one."""

import collections
import os
import signal
import tempfile

import launched
import length
import naming
import pytest
from dev import skips, watching

LIMIT_S = 60  # of a test, its set-up and its end each
RANKS_LIMIT_S = 150  # more than launched.LIMIT_S: ranks that are ended have more to say
LONG_LIMIT_S = 600
# What a signal cannot end, since it waits in C or blocks it, is ended from outside (watching.py).


# Here, and not in a conftest.py: each of those would have one of its own, and the later one would
# look before what tests of the other folder share has ended.
@pytest.fixture(scope="session", autouse=True)
def nothing_outlives():
    """After the last test of a process no process of it is left, and nothing in shared memory."""
    yield
    left, outlived = launched.left(), launched.outlived()
    assert not left, left
    assert not outlived, outlived


def pytest_configure(config):
    config.addinivalue_line("markers", "long: runs with PACELINE_LONG=1")
    config.addinivalue_line("markers", "limit_s(seconds): ends the test when it has taken so long")
    config.addinivalue_line("markers", "ranks: starts ranks, which have limits of their own")
    heed_signals()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        watch(config)
    config.pluginmanager.register(Bounds(), "bounds")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") == "loadfile":
        from sharing import Sharing  # not everybody has xdist

        return Sharing(config, log)
    return None


def heed_signals():
    """As a program of a terminal does. A shell starts what it runs in the background with SIGINT
    ignored, and the tests' children inherit that."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for sign in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(sign) == signal.SIG_IGN:
            signal.signal(sign, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def environment_as_before():
    """A command line that runs in this process puts its flags into the environment, where its ranks
    look for them; the next test's must not."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def watch(config):
    """What hangs is ended by this process, and what fails is named by it at once."""
    folder = os.environ.get(watching.FOLDER)
    if not folder:
        kept = tempfile.TemporaryDirectory(prefix="paceline-tests-")
        config.add_cleanup(kept.cleanup)
        folder = os.environ[watching.FOLDER] = kept.name
        config.add_cleanup(lambda: os.environ.pop(watching.FOLDER, None))

    def say(text):
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter:
            if config.get_terminal_writer().width_of_current_line:
                reporter.write_line("")
            reporter.write_line(text)

    watcher = watching.Watcher(folder, say)
    watcher.start()
    config.add_cleanup(watcher.stop)
    config.pluginmanager.register(naming.Namer(say, watcher.ended), "namer")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("long") and not length.LONG:
            item.add_marker(pytest.mark.skip(reason=length.REASON))


def limit_of(item):
    return length.SLOWNESS * idle_limit_of(item)


def idle_limit_of(item):
    marker = item.get_closest_marker("limit_s")
    if marker:
        return marker.args[0]
    if length.LONG or item.get_closest_marker("long"):
        return LONG_LIMIT_S
    return RANKS_LIMIT_S if item.get_closest_marker("ranks") else LIMIT_S


class Bounds:
    """Each part of a test ends: here, if Python can be interrupted; else from outside."""

    def __init__(self):
        self.teller = watching.Teller()

    def bounded(self, item, when):
        """What a hook wrapper yields from: the test fails once it has taken as long as it may."""
        limit_s = limit_of(item)

        def end(*_):
            pytest.fail(f"no end after {limit_s} s")

        before = signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        try:
            with self.teller.telling(item.nodeid, when, limit_s):
                return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        return (yield from self.bounded(item, "setup"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        return (yield from self.bounded(item, "call"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item):
        return (yield from self.bounded(item, "teardown"))


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
