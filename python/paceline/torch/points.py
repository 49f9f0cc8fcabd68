"""send and recv: a broadcast among two.

The core has collectives only. For each pair and direction there is a communicator of two ranks, so
messages of one direction match in the order in which both sides name them, whatever their tag, and
a send and a recv between the same two ranks cannot wait for each other.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from paceline import calls
from paceline.communicator import Communicator
from paceline.errors import RefusalError, TimeoutError
from paceline.torch.tensors import dense, moved, room
from paceline.torch.work import Work

_TAG = 0x70326D << 40  # apart from what anything else calls its groups
_LOOK_S = 0.0002


class Points:
    """Mixed into the process group, beside Collectives."""

    _comm: Communicator
    _knobs: calls.Knobs
    _pairs: dict[tuple[int, int], Communicator]
    _work: Callable[..., Work]

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Work:
        memory, _ = dense(moved(tensors[0]))
        request = self._message(self._comm.rank, dst, memory)
        return self._work(request, list(tensors))

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Work:
        memory, finish = room(moved(tensors[0]))
        request = self._message(src, self._comm.rank, memory)
        return self._work(request, list(tensors), finish, src)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Work:
        """From whichever rank sends first. A rank that is lost shows by the time-out only."""
        memory, finish = room(moved(tensors[0]))
        return self._work(AnySource(self, memory), list(tensors), finish)

    def _message(self, source: int, target: int, memory: torch.Tensor) -> Any:
        pair = self._pair(source, target)
        return pair.start("broadcast", None, memory, "sum", 0, None, None, self._knobs, None)

    def _pair(self, source: int, target: int) -> Communicator:
        """The communicator of one direction, made when it is first used."""
        pair = self._pairs.get((source, target))
        if pair is None:
            if source == target:
                raise RefusalError(
                    f"send: rank {source} to itself is not supported; copy the tensor."
                )
            tag = _TAG + source * self._comm.size + target
            pair = self._pairs[source, target] = self._comm.subgroup((source, target), tag)
        return pair


class AnySource:
    """A receive that has yet to find out from whom; afterwards like the request of that receive."""

    def __init__(self, points: Points, memory: torch.Tensor):
        self.source = -1
        self._points = points
        self._memory = memory
        self._request: Any = None
        self._lock = threading.Lock()

    def test(self) -> bool:
        return self._found() and self._request.test()

    def sleep_for(self, milliseconds: int) -> bool:
        end = time.monotonic() + 1e-3 * milliseconds
        while not self._found():
            if time.monotonic() > end:
                return False
            time.sleep(_LOOK_S)
        return self._request.sleep_for(milliseconds)

    def wait(self, timeout_ms: int = 0) -> None:
        limit_ms = timeout_ms or self._points._knobs.timeout_ms
        end = time.monotonic() + 1e-3 * limit_ms
        while not self._found():
            if time.monotonic() > end:
                raise TimeoutError(
                    f"recv: no rank has sent anything to rank {self._points._comm.rank} within "
                    f"{limit_ms} ms. Raise the time-out, or look at the ranks that should send."
                )
            time.sleep(_LOOK_S)
        self._request.wait(timeout_ms)

    def _found(self) -> bool:
        """Whether somebody sends; the first who does is the source."""
        with self._lock:  # the thread that completes futures may look as well
            if self._request is None:
                me = self._points._comm.rank
                for source in range(self._points._comm.size):
                    if source != me and self._points._pair(source, me).is_called():
                        self._request = self._points._message(source, me, self._memory)
                        self.source = source
                        break
            return self._request is not None
