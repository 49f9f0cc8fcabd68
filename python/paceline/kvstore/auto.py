"""auto: buckets in the order in which gradients become ready, several sums under way."""

import itertools
import warnings
import weakref
from collections import Counter
from typing import Any

import numpy

from paceline.buffers import Buffer, empty_like
from paceline.communicator import Communicator
from paceline.engine import Engine
from paceline.errors import UsageError
from paceline.kvstore.cores import Cores
from paceline.kvstore.described import describe
from paceline.kvstore.plan import Plan
from paceline.kvstore.prices import Prices
from paceline.kvstore.store import Entry, Key, KVStore

OUTSTANDING = 4  # calls under way, unless a store is told otherwise
_ALIGNED = 64  # bytes, of a bucket's place in the memory of all
_LEAST_BYTES = 4096  # shorter plans are sent in few messages, and would take a page on every rank


class Auto(KVStore):
    """push() returns at once. In the first step, each key has a call of its own. When the next step
    begins, rank 0 tells all ranks if gradients became ready in the order of the pushes or against
    it, and the store puts keys into buckets in that order. Buckets are long enough that calls cost
    little. The last ones are short, since no computing hides them. When the links are free, by the
    times that rank 0 measured, the store exchanges the ready bucket whose keys came first in
    init(), since the next forward pass needs it first. Up to `outstanding` sums are under way.

    Push all keys, then pull them: a pull of a key whose bucket is incomplete takes the key out of
    the bucket for this step. If only one rank pulls such a key, or waits for it, its calls differ
    from those of the others, and all get MismatchError.

    If all ranks share one node, and their computing threads (torch's, else one for each rank) use
    all its cores, computing hides nothing: then all keys of a type are one bucket.

    With `show` rank 0 prints the plan on stderr; `plan` is its text.
    """

    type = "auto"

    def __init__(
        self, comm: Communicator | None = None, outstanding: int = OUTSTANDING, show: bool = False,
        engine: Engine | None = None, op: str = "sum",
    ):  # fmt: skip
        if not isinstance(outstanding, int) or outstanding < 1:
            raise UsageError(f"kvstore: auto: outstanding is {outstanding!r}; it is a number from "
                             "1 on.")
        make_plan = weakref.WeakMethod(self._make_plan)
        super().__init__(comm, engine, op, outstanding=outstanding, plan=lambda: make_plan()())
        self._show = show
        self._outstanding = outstanding
        self._shares = True  # buckets, with the ranks of its node
        self.plan = ""
        self._buckets: list[list[int]] = []  # the plan's, of numbers of keys in the order of init()
        self._ready_s: dict[int, float] = {}  # as _note_ready() has been told, by number

    def _make_plan(self) -> None:
        """Collective; between two steps, at the same push on all ranks."""
        self.wait()
        entries = list(self._entries.values())
        told_s, self._ready_s = self._ready_s, {}
        ready_s = {number: told_s.get(number, at_s) for number, at_s in self._core.seen()}
        # The layout of a bucket must be alike on all ranks, but keys that have a bucket may have
        # been pushed in other orders elsewhere: rank 0's order holds.
        pushed = numpy.array([_is_against(list(ready_s.values())), *ready_s], dtype="int64")
        against, *pushed = self._comm.broadcast(pushed, tag="the order of auto").tolist()
        prices = Prices.of(self._comm._core.machine, self.num_workers, self._comm._core.nodes)
        plan = Plan.make([entries[number] for number in pushed], bool(against), prices,
                         Cores.of(self._comm))
        order = numpy.array(plan.order(ready_s, prices), dtype="int64")
        order = self._comm.broadcast(order, tag="the calls of auto").tolist()
        pieces = Counter(bucket for bucket, _ in plan.pieces)
        arrays = self._arrays_for(plan.buckets)
        buckets = [(*_joined(bucket, flat), pieces[i])
                   for i, (bucket, flat) in enumerate(zip(plan.buckets, arrays, strict=True))]
        self._core.set_plan(buckets, order)
        self._buckets = [numbers for numbers, *_ in buckets]
        self.plan = describe(plan, prices, ready_s, order, self._outstanding)
        if self._show and self.rank == 0:
            import sys

            print(f"paceline: {self.plan}", file=sys.stderr, flush=True)

    def _begin_round(self) -> list[list[int]]:
        """At the same place on all ranks, before keys are pushed: buckets of the plan, if there is
        one by now. _push_bucket() pushes all values of a bucket that have been written into
        buffer() of its keys, after wait()."""
        self._core.begin_round()
        return self._buckets

    def _note_ready(self, ready_s: dict[Key, float]) -> None:
        self._ready_s = {self._entries[key].number: at_s for key, at_s in ready_s.items()}

    def _push_bucket(self, number: int) -> None:
        self._core.push_bucket(number)

    def _arrays_for(self, buckets: list[list[Entry]]) -> list[Buffer]:
        """A flat array for each bucket, in memory that all ranks of a node reach: there they are
        summed in place. Collective. Private arrays if memory cannot be shared."""
        ends = list(itertools.accumulate(-(-_nbytes(bucket) // _ALIGNED) * _ALIGNED
                                         for bucket in buckets))
        if self._shares and self.num_workers > 1 and ends[-1] >= _LEAST_BYTES:
            memory, self._shares, trouble = self._comm.allocate(ends[-1])   # alike on all ranks
            if self._shares:
                return [_over(memory[begin : begin + _nbytes(bucket)], bucket[0].buffer)
                        for bucket, begin in zip(buckets, [0, *ends], strict=False)]
            if trouble:
                warnings.warn("paceline: kvstore: buckets stay in private memory on all ranks, "
                              f"since {trouble}", stacklevel=2)
        return [empty_like(bucket[0].buffer, (sum(entry.count for entry in bucket),),
                           "kvstore: auto") for bucket in buckets]


def _nbytes(bucket: list[Entry]) -> int:
    return sum(entry.nbytes for entry in bucket)


def _joined(bucket: list[Entry], flat: Buffer) -> tuple[list[int], Buffer, list[Buffer]]:
    """Numbers of keys, memory for all of them one after the other, and the part of each."""
    begin = 0
    for entry in bucket:
        entry.buffer = flat[begin : begin + entry.count].reshape(entry.shape)
        begin += entry.count
    return [entry.number for entry in bucket], flat, [entry.buffer for entry in bucket]


def _over(memory: Any, like: Buffer) -> Buffer:
    """A flat array of the library and type of `like` over these bytes."""
    if not hasattr(like, "new_empty"):
        return memory.view(like.dtype)
    import torch

    return torch.from_numpy(memory).view(like.dtype)


def _is_against(ready_s: list[float]) -> bool:
    """True if most later pushes were ready earlier.

    One bit, and not the times themselves: small differences between two runs must not put keys
    into other buckets, and so change the last bits of sums.
    """
    if len(ready_s) < 2:
        return False
    ranks = numpy.argsort(numpy.argsort(ready_s))
    return bool(numpy.corrcoef(numpy.arange(len(ranks)), ranks)[0, 1] < -0.5)
