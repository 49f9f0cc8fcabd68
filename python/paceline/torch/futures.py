"""Completes the futures of calls, which runs the callbacks that users attach to them.

A callback may wait for another future of Paceline. So one thread, the watcher, only looks for
complete calls. Runners complete the futures, in the order of the calls. One runner does all of it;
while a callback blocks it, another takes its place.
"""

import atexit
import math
import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.torch.work import Work

_LOOK_MS = 10  # longest sleep of the watcher before it looks at all calls
_PATIENCE_S = 0.01  # a callback that takes longer gets a second runner beside it


class _Runner:
    """A thread that completes futures."""

    def __init__(self) -> None:
        self.inside_since = math.inf  # monotonic time; infinite while it is in no callback
        self.thread: threading.Thread


class Completer:
    """Completes futures of works. Its threads start with the first work that is not complete."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # a thread may have held the lock

    def _begin(self) -> None:
        lock = threading.Lock()
        self._changed = threading.Condition(lock)  # there is something to watch
        self._called = threading.Condition(lock)  # an idle runner is wanted
        self._works: list[Work] = []  # under way
        self._complete: deque[tuple[Work, bool]] = deque()  # future yet to be; asked by a callback
        self._watcher: threading.Thread | None = None
        self._busy: set[_Runner] = set()
        self._idle: list[_Runner] = []  # at most one
        self._local = threading.local()
        self._stopped = False

    def add(self, work: "Work") -> None:
        """Completes work._base when `work` has ended."""
        if work.is_completed():  # no callback is attached yet
            work._base.set_result(None)
            return
        work._is_nested = getattr(self._local, "is_runner", False)
        with self._changed:
            self._works.append(work)
            if self._watcher is None:
                self._watcher = self._start(self._watch, "paceline-futures")
            self._changed.notify()

    def _start(self, what, name: str, *arguments) -> threading.Thread:
        thread = threading.Thread(target=what, args=arguments, name=name, daemon=True)
        thread.start()
        # A thread that comes back from C++ while the interpreter ends, ends the process.
        atexit.unregister(self._stop)
        atexit.register(self._stop)
        return thread

    def _watch(self) -> None:
        while True:
            with self._changed:
                while not self._works and not self._stopped:
                    self._changed.wait(_PATIENCE_S if self._complete else None)
                    self._call_runner()
                if self._stopped:
                    return
                request = self._works[0]._request
            try:
                if request is not None:
                    request.sleep_for(_LOOK_MS)
            except Exception:
                pass  # is_completed() meets it again, and keeps it for the waiting thread
            self._look()

    def _look(self) -> None:
        """Hands the complete calls over to a runner."""
        with self._changed:
            works = list(self._works)
        over = [work for work in works if work.is_completed()]
        with self._changed:
            for work in over:
                self._works.remove(work)
                # A callback that asked for it may keep a runner until it has it.
                if work._is_nested:
                    self._complete.appendleft((work, True))
                else:
                    self._complete.append((work, False))
            self._call_runner()

    def _call_runner(self) -> None:
        """Makes sure that a runner completes what is complete. The caller holds the lock."""
        if not self._complete:
            return
        is_nested = self._complete[0][1]
        latest = time.monotonic() - (0 if is_nested else _PATIENCE_S)
        if any(runner.inside_since > latest for runner in self._busy):
            return  # it probably comes back soon
        if self._idle:
            self._busy.add(self._idle.pop())
            self._called.notify()
            return
        runner = _Runner()
        self._busy.add(runner)
        runner.thread = self._start(self._run, "paceline-callbacks", runner)

    def _run(self, runner: _Runner) -> None:
        self._local.is_runner = True
        while True:
            with self._called:
                runner.inside_since = math.inf
                if not self._complete and not self._stopped:
                    self._busy.remove(runner)
                    if self._idle:
                        return
                    self._idle.append(runner)
                    while runner in self._idle and not self._stopped:
                        self._called.wait()
                if self._stopped:
                    return
                if not self._complete:
                    continue
                work, _ = self._complete.popleft()
                runner.inside_since = time.monotonic()
            work._base.set_result(None)
            del work  # or its tensors would live until the next one is complete

    def _stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
            self._called.notify()
            threads = [runner.thread for runner in (*self._busy, *self._idle)]
            if self._watcher is not None:
                threads.append(self._watcher)
        end = time.monotonic() + 1  # a callback may wait for ever
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))


completer = Completer()
