"""Reads messages for receives that no thread waits for."""

import atexit
import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.torch.p2p import PointToPoint

LOOK_S = 0.0002
_LONGEST_S = 0.002  # between two looks, when no message has come for long
_IDLE_S = 0.1  # after so long without receives it sleeps until woken


class Watcher:
    """A thread that reads messages for receives without a waiting thread. It polls while there are
    such receives, and shortly after, so that new receives seldom have to wake it."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._p2p: set[PointToPoint] = set()  # with receives that are posted
        self._thread: threading.Thread | None = None
        self._is_asleep = self._is_ending = False

    def add(self, p2p: "PointToPoint") -> None:
        with self._changed:
            self._p2p.add(p2p)
            if self._thread is None:
                self._start()
            elif self._is_asleep:
                self._changed.notify()

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="paceline-receives", daemon=True)
        self._thread.start()
        # A thread that comes back from C++ while the interpreter ends, ends the process.
        atexit.unregister(self._stop)
        atexit.register(self._stop)

    def _run(self) -> None:
        pause, idle_s = LOOK_S, 0.0
        while not self._is_ending:
            time.sleep(pause)
            is_moving = any([self._look(p2p) for p2p in list(self._p2p)])
            pause = LOOK_S if is_moving else min(_LONGEST_S, 1.1 * pause)
            idle_s = 0.0 if self._p2p else idle_s + pause
            if idle_s > _IDLE_S:
                with self._changed:
                    self._is_asleep = True
                    while not self._p2p and not self._is_ending:
                        self._changed.wait()
                    self._is_asleep = False
                idle_s = 0.0

    def _look(self, p2p: "PointToPoint") -> bool:
        """True if a receive has found its message."""
        with p2p._p2p_lock:
            before = len(p2p._posted)
            try:
                p2p._look()
            except Exception as error:  # this thread looks for the receives of all groups
                p2p._give_up(error)
            if not p2p._posted:
                self._p2p.discard(p2p)
            return len(p2p._posted) != before

    def _stop(self) -> None:
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(1)


watcher = Watcher()
