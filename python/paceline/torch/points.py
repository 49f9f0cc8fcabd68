"""send and recv: a broadcast among two.

The core has collectives only. For each pair and direction there is a communicator of two ranks, so
messages of one direction match in the order in which both sides name them, and a send and a recv
between the same two ranks cannot wait for each other.
"""

from collections.abc import Callable
from typing import Any

import torch

from paceline.communicator import Communicator
from paceline.errors import RefusalError
from paceline.torch.tensors import dense, moved, room
from paceline.torch.work import Work

_TAG = 0x70326D << 40  # apart from what anything else calls its groups


class Points:
    """Mixed into the process group, beside Collectives."""

    _comm: Communicator
    _knobs: tuple[None, None, None, int]
    _pairs: dict[tuple[int, int], Communicator]
    _work: Callable[..., Work]

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Work:
        memory, _ = dense(moved(tensors[0]))
        request = self._message(self._comm.rank, dst, memory)
        return self._work(request, list(tensors))

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Work:
        memory, finish = room(moved(tensors[0]))
        request = self._message(src, self._comm.rank, memory)
        return self._work(request, list(tensors), finish)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Work:
        raise RefusalError("recv: from any rank is not supported; name the source.")

    def _message(self, source: int, target: int, memory: torch.Tensor) -> Any:
        pair = self._pairs.get((source, target))
        if pair is None:
            pair = self._pair(source, target)
        return pair._start("broadcast", None, memory, "sum", 0, None, None, self._knobs, None)

    def _pair(self, source: int, target: int) -> Communicator:
        if source == target:
            raise RefusalError(f"send: rank {source} to itself is not supported; copy the tensor.")
        tag = _TAG + source * self._comm.size + target
        pair = self._pairs[source, target] = self._comm.subgroup((source, target), tag)
        return pair
