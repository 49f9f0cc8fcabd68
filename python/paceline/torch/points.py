"""send and recv: a broadcast among two.

The core has collectives only. For each pair, direction and tag there is a communicator of two
ranks, made when it is first used and kept: messages of one source and tag match in the order in
which both sides name them, and neither other tags nor the other direction wait for them. Each keeps
its memory (2 MiB and more where messages are long) until the group goes: use few tags, again.

A receive from any source begins as soon as somebody sends, in the order in which such receives
were posted; a thread looks for that while there are some, so that nobody needs to wait.
"""

import atexit
import hashlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from paceline import calls
from paceline.communicator import Communicator
from paceline.errors import RefusalError, TimeoutError, UsageError
from paceline.torch.tensors import dense, moved, room
from paceline.torch.work import Work

_LOOK_S = 0.0002
_LONGEST_S = 0.002  # between two looks of the thread, when nobody has sent for long


class Points:
    """Mixed into the process group, beside Collectives."""

    _comm: Communicator
    _knobs: calls.Knobs
    _work: Callable[..., Work]

    def _begin_points(self) -> None:
        self._pairs: dict[tuple[int, int, int], Communicator] = {}
        # Receives that have yet to begin; of one tag each waits for those before it.
        self._posted: list[Posted] = []
        self._points_lock = threading.RLock()
        self._is_watched = False

    def _end_points(self) -> None:
        with self._points_lock:
            for receive in self._posted:
                receive.error = UsageError("recv: its process group has been destroyed.")
            self._posted.clear()
            self._pairs.clear()

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Work:
        memory, _ = dense(moved(tensors[0]))
        with self._points_lock:
            request = self._message(self._comm.rank, dst, tag, memory)
        return self._work(request, list(tensors))

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Work:
        memory, finish = room(moved(tensors[0]))
        with self._points_lock:
            if any(receive.tag == tag for receive in self._posted):
                self._pair(src, self._comm.rank, tag)  # refuses what cannot be
                request: Any = self._post(memory, src, tag)
            else:
                request = self._message(src, self._comm.rank, tag, memory)
        return self._work(request, list(tensors), finish, src)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Work:
        """From whichever rank sends first. A rank that is lost shows by the time-out only."""
        memory, finish = room(moved(tensors[0]))
        with self._points_lock:
            request = self._post(memory, -1, tag)
        return self._work(request, list(tensors), finish)

    def _message(self, source: int, target: int, tag: int, memory: torch.Tensor) -> Any:
        pair = self._pair(source, target, tag)
        if memory.numel() == 0:  # an empty broadcast sends nothing, and receives look for something
            memory = memory.new_empty(1)
        return pair.start("broadcast", None, memory, "sum", 0, None, None, self._knobs, None)

    def _pair(self, source: int, target: int, tag: int) -> Communicator:
        """The communicator of one direction and tag, made when it is first used."""
        pair = self._pairs.get((source, target, tag))
        if pair is None:
            if source == target:
                raise RefusalError(
                    f"send: rank {source} to itself is not supported; copy the tensor."
                )
            # Apart from what anything else calls its groups.
            name = hashlib.blake2b(b"points %d %d %d" % (source, target, tag), digest_size=8)
            number = int.from_bytes(name.digest(), "little")
            pair = self._comm.subgroup((source, target), number)
            self._pairs[source, target, tag] = pair
        return pair

    def _post(self, memory: torch.Tensor, source: int, tag: int) -> "Posted":
        receive = Posted(self, memory, source, tag)
        self._posted.append(receive)
        self._look()
        if self._posted and not self._is_watched:
            self._is_watched = True
            _start(self)
        return receive

    def _look(self) -> None:
        """Holding the lock: begins the receives whose turn it is and whose sender is known."""
        waiting: set[int] = set()
        for receive in list(self._posted):
            if receive.tag in waiting:
                continue
            try:
                begun = receive.begin()
            except Exception as error:
                receive.error, begun = error, True
            if begun:
                self._posted.remove(receive)
            else:
                waiting.add(receive.tag)

    def _watch(self) -> None:
        """Looks until no receive is left to begin."""
        pause = _LOOK_S
        while not _ending.wait(pause):
            with self._points_lock:
                before = len(self._posted)
                self._look()
                if not self._posted:
                    self._is_watched = False
                    return
                is_moving = len(self._posted) != before
            pause = _LOOK_S if is_moving else min(_LONGEST_S, 1.1 * pause)


class Posted:
    """A receive that has yet to begin; afterwards like the request of that receive.

    source: of whom; -1: of any, until it is found.
    """

    def __init__(self, points: Points, memory: torch.Tensor, source: int, tag: int):
        self.source, self.tag = source, tag
        self.error: BaseException | None = None
        self._points = points
        self._memory = memory
        self._request: Any = None

    def begin(self) -> bool:
        """Begins to receive if it is known from whom; the first who sends is the source."""
        points = self._points
        me = points._comm.rank
        if self.source < 0:
            others = (rank for rank in range(points._comm.size) if rank != me)
            self.source = next(
                (rank for rank in others if points._pair(rank, me, self.tag).is_called()), -1)
        if self.source < 0:
            return False
        self._request = points._message(self.source, me, self.tag, self._memory)
        return True

    def test(self) -> bool:
        return self._has_begun() and self._request.test()

    def sleep_for(self, milliseconds: int) -> bool:
        return self._begins_within(milliseconds) and self._request.sleep_for(milliseconds)

    def wait_for(self, milliseconds: int) -> bool:
        return self._begins_within(milliseconds) and self._request.wait_for(milliseconds)

    def wait(self) -> None:
        limit_ms = self._points._knobs.timeout_ms
        end = time.monotonic() + 1e-3 * limit_ms
        while not self._has_begun():
            if time.monotonic() > end and self._is_withdrawn():
                raise TimeoutError(
                    f"recv: no rank has sent anything to rank {self._points._comm.rank} within "
                    f"{limit_ms} ms. Raise the time-out, or look at the ranks that should send."
                )
            time.sleep(_LOOK_S)
        self._request.wait()

    def _begins_within(self, milliseconds: int) -> bool:
        end = time.monotonic() + 1e-3 * milliseconds
        while not self._has_begun():
            if time.monotonic() > end:
                return False
            time.sleep(_LOOK_S)
        return True

    def _has_begun(self) -> bool:
        if self._request is None and self.error is None:
            with self._points._points_lock:
                self._points._look()
        if self.error is not None:
            raise self.error
        return self._request is not None

    def _is_withdrawn(self) -> bool:
        """Whether it takes no message any more: it has not begun, and now never will."""
        with self._points._points_lock:
            if self not in self._points._posted:
                return False
            self._points._posted.remove(self)
            return True


_ending = threading.Event()
_threads: list[threading.Thread] = []


def _start(points: Points) -> None:
    thread = threading.Thread(target=points._watch, name="paceline-receives", daemon=True)
    _threads[:] = [known for known in _threads if known.is_alive()] + [thread]
    thread.start()
    # A thread that comes back from C++ while the interpreter ends, ends the process.
    atexit.unregister(_stop)
    atexit.register(_stop)


def _stop() -> None:
    _ending.set()
    for thread in _threads:
        thread.join(1)


os.register_at_fork(after_in_child=_threads.clear)
