"""auto: buckets in the order in which gradients become ready, several sums under way."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy

from paceline.buffers import Buffer, empty_like
from paceline.communicator import Communicator
from paceline.engine import Engine
from paceline.errors import UsageError
from paceline.kvstore.plan import Link, Plan
from paceline.kvstore.store import Entry, KVStore


class Bucket:
    """Keys that are exchanged by one call: their buffers lie one after the other."""

    def __init__(self, number: int, entries: list[Entry], engine: Engine, pieces: int):
        self.number, self.entries = number, entries
        self.called = 0  # pieces of this step
        # Of calls under way the one whose keys the next forward pass needs first goes first.
        self.priority = max(-min(entry.number for entry in entries), -(1 << 20))
        self.flat = empty_like(
            entries[0].buffer, (sum(entry.count for entry in entries),), "kvstore: auto"
        )
        self.pushed: list[Entry] = []  # in this step
        begin = 0
        for entry in entries:
            part = self.flat[begin : begin + entry.count].reshape(entry.shape)
            engine.copy(entry.buffer, part).wait()
            entry.buffer = part
            begin += entry.count
        ends = [i * begin // pieces for i in range(pieces + 1)]
        self.pieces = [self.flat[a:b] for a, b in zip(ends, ends[1:], strict=False)]


class Auto(KVStore):
    """push() returns at once. In the first step each key has a call of its own. Then rank 0 says
    whether gradients became ready in the order of the pushes or against it, and keys are put into
    buckets in that order: long enough that calls cost little, the last ones short, since nothing
    hides them. Of the buckets that are ready when the links are, as rank 0 saw it in that step, the
    one whose keys came first in init() is exchanged first: the next forward pass needs it first.
    Up to `outstanding` sums are under way. Push all keys, then pull them: a pull of a
    key whose bucket is not complete takes the key out of it for this step.

    With `show` rank 0 prints the plan on stderr; `plan` has its text.
    """

    type = "auto"

    def __init__(
        self, comm: Communicator | None = None, outstanding: int = 4, show: bool = False,
        **options: Any,
    ):  # fmt: skip
        if not isinstance(outstanding, int) or outstanding < 1:
            raise UsageError(f"kvstore: auto: outstanding is {outstanding!r}; it is a number from "
                             "1 on.")
        super().__init__(comm, **options)
        self._show = show
        self._slots = [self._engine.variable(f"slot {i}") for i in range(outstanding)]
        self._calls = 0
        self._first: list[Entry] = []  # pushed in the first step, in that order
        self._ready_s: dict[int, float] = {}  # by number of the key
        self._buckets: list[Bucket] = []
        self._bucket_of: dict[int, Bucket] = {}
        self._order: list[int] = []  # of buckets, as they are called
        self._next = 0  # the place in it
        self.plan = ""

    def _push(self, entry: Entry, arrays: list[Buffer], priority: int) -> None:
        if not self._buckets and entry in self._first:
            self._make_plan()
        bucket = self._bucket_of.get(entry.number)
        if bucket is not None and entry in bucket.pushed:
            self._flush()  # a second push of it before the others came
        self._sum_locally(entry, arrays, priority)
        if bucket is not None:
            bucket.pushed.append(entry)
            self._call_those_whose_turn_it_is()
            return
        if not self._buckets:
            self._first.append(entry)
            self._note_when_ready(entry)
        self._call(entry.buffer, [], entry.name, priority)

    def pull(self, keys: Any, out: Any, priority: int = 0) -> None:
        known = self._known("pull", keys, out)
        if any(self._waits_for_others(entry) for entry, _ in known):
            self._flush()
        super().pull(keys, out, priority)

    def _waits_for_others(self, entry: Entry) -> bool:
        bucket = self._bucket_of.get(entry.number)
        return bucket is not None and entry in bucket.pushed

    def _call_those_whose_turn_it_is(self) -> None:
        while self._buckets:
            bucket = self._buckets[self._order[self._next]]
            if len(bucket.pushed) < len(bucket.entries):
                return
            self._next = (self._next + 1) % len(self._order)
            self._call_next_piece(bucket)

    def _call_next_piece(self, bucket: Bucket) -> None:
        parts = [entry.buffer for entry in bucket.entries]
        name, count = f"bucket {bucket.number}", len(bucket.pieces)
        if count == 1:
            self._call(bucket.flat, parts, name, bucket.priority)
        else:
            # Pieces only read the parts, so that they do not wait for each other.
            piece = bucket.pieces[bucket.called]
            self._call(piece, [], f"{name}, piece {bucket.called}", bucket.priority, parts)
        bucket.called += 1
        if bucket.called < count:
            return
        if count > 1:
            self._engine.push(_nothing, read=bucket.pieces, write=[bucket.flat, *parts],
                              pool="copy", name=f"end of {name}")
        bucket.called = 0
        bucket.pushed.clear()

    def _flush(self) -> None:
        """What waits for other keys of its bucket, or for another bucket's turn, is called now."""
        for number in self._order[self._next :] + self._order[: self._next]:
            bucket = self._buckets[number]
            while bucket.called:  # some of its pieces have been
                self._call_next_piece(bucket)
            for entry in bucket.pushed:
                self._call(entry.buffer, [bucket.flat], entry.name, bucket.priority)
            bucket.pushed.clear()
        self._next = 0

    def _call(
        self, x: Buffer, parts: list[Buffer], name: str, priority: int,
        read: Sequence[Buffer] = (),
    ) -> None:  # fmt: skip
        slot = self._slots[self._calls % len(self._slots)]
        self._calls += 1
        self._engine.call(
            self._comm, "allreduce", x, op=self._op, read=read, write=[slot, *parts],
            priority=priority, name=name,
        )  # fmt: skip

    def _note_when_ready(self, entry: Entry) -> None:
        def note() -> None:
            self._ready_s[entry.number] = time.monotonic()

        self._engine.push(note, read=[entry.buffer], pool="copy")

    def _make_plan(self) -> None:
        """Collective; between two steps, at the same push on all ranks."""
        self.wait()
        against = numpy.array([_is_against([self._ready_s[e.number] for e in self._first])])
        self._comm.broadcast(against, tag="the order of auto")
        link = Link.of(self._comm._core.machine, self.num_workers, self._comm._core.nodes)
        plan = Plan.make(self._first, bool(against[0]), link)
        pieces = Counter(bucket for bucket, _ in plan.pieces)
        self._buckets = [Bucket(i, entries, self._engine, pieces[i])
                         for i, entries in enumerate(plan.buckets)]
        self._bucket_of = {e.number: bucket for bucket in self._buckets for e in bucket.entries}
        order = numpy.array(plan.order(self._ready_s, link), dtype="int64")
        self._order = self._comm.broadcast(order, tag="the calls of auto").tolist()
        self.plan = plan.describe(len(self._slots), self._order)
        if self._show and self.rank == 0:
            import sys

            print(f"paceline: {self.plan}", file=sys.stderr, flush=True)


def _nothing() -> None:
    """What ends where its operands do."""


def _is_against(ready_s: list[float]) -> bool:
    """Whether what was pushed later was, by and large, ready earlier.

    One bit, and not the times themselves: small differences between two runs must not put keys
    into other buckets, and so change the last bits of sums.
    """
    if len(ready_s) < 2:
        return False
    ranks = numpy.argsort(numpy.argsort(ready_s))
    return bool(numpy.corrcoef(numpy.arange(len(ranks)), ranks)[0, 1] < -0.5)
