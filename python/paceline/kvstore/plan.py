"""Plans which keys are exchanged together, and in which order."""

import heapq
from dataclasses import dataclass

from paceline.kvstore.cores import Cores
from paceline.kvstore.prices import LEAST_BYTES, Prices
from paceline.kvstore.store import Entry

PIECE = 4  # times a bucket's length: longer keys are exchanged in pieces
DDP_BYTES = (1 << 20, 25 << 20)  # of its first bucket, and of the others
TAIL = 3  # so many buckets at the end are each half as long as the one before


def ends_s(calls: list[tuple[float, float]], hides: bool = True) -> list[float]:
    """Times at which these calls end, one after the other; each is (ready, takes), in seconds. If
    computing hides nothing, it ends later by the sum of their times."""
    now = 0.0 if hides else max(ready_s for ready_s, _ in calls)
    found = []
    for ready_s, takes_s in calls:
        now = max(now, ready_s) + takes_s
        found.append(now)
    return found


def order_of_calls(
    ready_s: list[float], needed: list[int], cost_s: list[float]
) -> list[int]:
    """The order in which buckets are exchanged: when the links are free, the ready bucket that is
    needed first. A bucket that is ready early, but needed late, lets the others pass once they are
    ready, and travels while the next forward pass goes on.

    ready_s: when the gradients of each bucket are there; needed: the smaller, the earlier; cost_s:
    what its exchange takes.
    """
    coming = sorted(range(len(ready_s)), key=lambda i: (ready_s[i], i), reverse=True)
    order: list[int] = []
    waiting: list[tuple[int, int]] = []
    now = 0.0
    while coming or waiting:
        if not waiting:
            now = max(now, ready_s[coming[-1]])
        while coming and ready_s[coming[-1]] <= now:
            bucket = coming.pop()
            heapq.heappush(waiting, (needed[bucket], bucket))
        _, bucket = heapq.heappop(waiting)
        order.append(bucket)
        now += cost_s[bucket]
    return order


@dataclass(frozen=True)
class Predicted:
    """Prediction for a way to exchange all keys, in seconds from the first gradient on."""

    calls: int
    begins_s: float  # the next forward pass: when its first key is there
    over_s: float


@dataclass
class Plan:
    """Buckets of keys in the order of their calls: the keys that are ready first go first."""

    buckets: list[list[Entry]]
    bucket_bytes: int
    is_reversed: bool  # against the order of the first pushes
    cores: Cores | None = None  # of the node, if there is one

    @classmethod
    def make(
        cls, pushed: list[Entry], is_reversed: bool, prices: Prices, cores: Cores | None = None
    ) -> "Plan":  # fmt: skip
        """Buckets of about equal length; the last ones, which nothing hides, are shorter. If
        computing hides none of them there is only one: fewer calls cost less.

        `pushed`: in the order of the first step's pushes. Keys of different types never share a
        bucket. Equal on all ranks if the arguments are.
        """
        order = pushed[::-1] if is_reversed else pushed
        if cores is not None and cores.are_full:
            alike: dict[str, list[Entry]] = {}
            for entry in order:
                alike.setdefault(entry.dtype, []).append(entry)
            longest = max(sum(entry.nbytes for entry in bucket) for bucket in alike.values())
            return cls(list(alike.values()), max(1, longest), is_reversed, cores)
        whole = prices.bucket_bytes()
        buckets: list[list[Entry]] = []  # from the last one on
        last_of: dict[str, tuple[list[Entry], int]] = {}  # by type, with the bytes that are left
        for entry in reversed(order):
            last, left = last_of.get(entry.dtype, ([], -1))
            if entry.nbytes > left:
                last, left = [], max(whole >> max(0, TAIL - len(buckets)), LEAST_BYTES)
                buckets.append(last)
            last.append(entry)
            last_of[entry.dtype] = (last, left - entry.nbytes)
        return cls([bucket[::-1] for bucket in buckets[::-1]], whole, is_reversed, cores)

    @property
    def hides(self) -> bool:
        """True if computing goes on beside calls. Between nodes the links work meanwhile; inside
        a node calls take a core that no rank computes on."""
        return self.cores is None or not self.cores.are_full

    @property
    def pieces(self) -> list[tuple[int, int]]:
        """(bucket, bytes) of all calls. A key that is long is exchanged in pieces, between which
        others may pass."""
        most = PIECE * self.bucket_bytes
        found = []
        for number, bucket in enumerate(self.buckets):
            nbytes = sum(entry.nbytes for entry in bucket)
            count = max(1, -(-nbytes // most))
            found += [(number, nbytes // count)] * count
        return found

    def order(self, ready_s: dict[int, float], prices: Prices) -> list[int]:
        """The buckets as they are called, as often as they have pieces. `ready_s`: of each key, by
        its number; keys with smaller numbers, which came first in init(), are needed first."""
        calls = self.pieces
        found = order_of_calls(
            [max(ready_s[entry.number] for entry in self.buckets[b]) for b, _ in calls],
            [min(entry.number for entry in self.buckets[b]) for b, _ in calls],
            [prices.cost_s(nbytes) for _, nbytes in calls],
        )
        return [calls[place][0] for place in found]

    def calls(
        self, order: list[int], ready_s: dict[int, float], prices: Prices
    ) -> list[tuple[float, float]]:
        """Seconds from the first gradient until each call's keys are ready, and its price."""
        takes_s = {bucket: prices.cost_s(nbytes) for bucket, nbytes in self.pieces}
        first_s = min(ready_s.values())
        return [(max(ready_s[entry.number] for entry in self.buckets[b]) - first_s, takes_s[b])
                for b in order]

    def predicted(
        self, order: list[int], ready_s: dict[int, float], prices: Prices
    ) -> dict[str, "Predicted"]:
        """By way: this plan and its alternatives, if no other program uses the links.
        `order` and `ready_s` as order() has them."""
        first_s = min(ready_s.values())
        ready_s = {number: at_s - first_s for number, at_s in ready_s.items()}
        keys = [entry for bucket in self.buckets for entry in bucket]
        pushed = keys[::-1] if self.is_reversed else keys
        at_end: dict[str, int] = {}
        for entry in keys:
            at_end[entry.dtype] = at_end.get(entry.dtype, 0) + entry.nbytes
        last_s = max(ready_s.values())
        needed = min(keys, key=lambda entry: entry.number)
        own = max(place for place, bucket in enumerate(order) if needed in self.buckets[bucket])
        ways = {
            "this plan": (own, self.calls(order, ready_s, prices)),
            "depcha": (pushed.index(needed),
                       [(ready_s[entry.number], prices.cost_s(entry.nbytes)) for entry in pushed]),
            "DDP's buckets": (-1, _as_ddp(keys, ready_s, prices)),
            "one call" if len(at_end) == 1 else "one a type":
                (-1, [(last_s, prices.cost_s(nbytes)) for nbytes in at_end.values()]),
        }
        return {way: Predicted(len(calls), *(ends_s(calls, self.hides)[i] for i in (first, -1)))
                for way, (first, calls) in ways.items()}


def _as_ddp(
    keys: list[Entry], ready_s: dict[int, float], prices: Prices
) -> list[tuple[float, float]]:
    """The calls of DDP's buckets, which it fills in the order in which gradients become ready."""
    calls: list[tuple[float, float]] = []
    held, at_s, most = 0, 0.0, DDP_BYTES[0]
    for entry in sorted(keys, key=lambda entry: ready_s[entry.number]):
        held, at_s = held + entry.nbytes, ready_s[entry.number]
        if held >= most:
            calls.append((at_s, prices.cost_s(held)))
            held, most = 0, DDP_BYTES[1]
    return [*calls, (at_s, prices.cost_s(held))] if held or not calls else calls
