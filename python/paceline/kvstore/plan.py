"""Which keys are exchanged together, and in which order."""

import heapq
import itertools
import math
from dataclasses import dataclass

from paceline.kvstore.store import Entry

ENGINE_S = 10e-6  # what a call costs besides its rounds: its tasks, and threads that take turns
OVERHEAD = 0.05  # of a bucket's time may be what every call costs, however short
LEAST_BYTES, MOST_BYTES = 64 << 10, 32 << 20
PIECE = 4  # times a bucket's length: what is longer is exchanged in pieces
TAIL = 3  # so many buckets at the end are each half as long as the one before


@dataclass(frozen=True)
class Link:
    """What a call costs: seconds, and seconds per byte, of an allreduce between all ranks."""

    call_s: float
    byte_s: float

    @classmethod
    def of(cls, settings: str, ranks: int, nodes: int) -> "Link":
        """From the settings of a machine (PACELINE_MACHINE), as the choice of algorithms has it."""
        numbers = {key: float(value) for key, _, value in
                   (part.partition("=") for part in settings.split(","))}
        where = "" if nodes > 1 else "inside_"
        rounds = 2 * max(1, math.ceil(math.log2(max(2, ranks))))
        share = 2 * (ranks - 1) / ranks if ranks > 1 else 1
        return cls(ENGINE_S + rounds * 1e-6 * numbers[f"{where}alpha_us"],
                   share * 8e-9 / numbers[f"{where}gbit_per_s"])

    def cost_s(self, nbytes: int) -> float:
        """Of an allreduce of so many bytes."""
        return self.call_s + nbytes * self.byte_s

    def bucket_bytes(self) -> int:
        """From which on no more than OVERHEAD of a bucket's time is that of the call."""
        return round(min(max(self.call_s / OVERHEAD / self.byte_s, LEAST_BYTES), MOST_BYTES))


def order_of_calls(
    ready_s: list[float], needed: list[int], cost_s: list[float]
) -> list[int]:
    """The order in which buckets are exchanged: whenever the links are free, the one of those that
    are ready which is needed first. So what became ready early, and is needed late, lets the others
    pass once they are there, and travels while the next forward pass goes on.

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


@dataclass
class Plan:
    """Buckets of keys in the order of their calls: the keys that are ready first go first."""

    buckets: list[list[Entry]]
    bucket_bytes: int
    is_reversed: bool  # against the order of the first pushes

    @classmethod
    def make(cls, pushed: list[Entry], is_reversed: bool, link: Link) -> "Plan":
        """Buckets of about equal length; the last ones, which nothing hides, are shorter.

        `pushed`: in the order of the first step's pushes. Keys of different types never share a
        bucket. Equal on all ranks if the arguments are.
        """
        order = pushed[::-1] if is_reversed else pushed
        whole = link.bucket_bytes()
        buckets: list[list[Entry]] = []  # from the last one on
        last_of: dict[str, tuple[list[Entry], int]] = {}  # by type, with the bytes that are left
        for entry in reversed(order):
            last, left = last_of.get(entry.dtype, ([], 0))
            if entry.nbytes > left:
                last, left = [], max(whole >> max(0, TAIL - len(buckets)), LEAST_BYTES)
                buckets.append(last)
            last.append(entry)
            last_of[entry.dtype] = (last, left - entry.nbytes)
        return cls([bucket[::-1] for bucket in buckets[::-1]], whole, is_reversed)

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

    def order(self, ready_s: dict[int, float], link: Link) -> list[int]:
        """The buckets as they are called, as often as they have pieces. `ready_s`: of each key, by
        its number; keys with smaller numbers, which came first in init(), are needed first."""
        calls = self.pieces
        found = order_of_calls(
            [max(ready_s[entry.number] for entry in self.buckets[b]) for b, _ in calls],
            [min(entry.number for entry in self.buckets[b]) for b, _ in calls],
            [link.cost_s(nbytes) for _, nbytes in calls],
        )
        return [calls[place][0] for place in found]

    def describe(self, outstanding: int, order: list[int] | None = None) -> str:
        """For people: what is exchanged when, and what depcha would do."""
        keys = sum(len(bucket) for bucket in self.buckets)
        lines = [
            f"auto: {keys} keys in {len(self.buckets)} buckets of up to "
            f"{self.bucket_bytes / 2**20:.3g} MiB, up to {outstanding} under way; "
            f"{'last' if self.is_reversed else 'first'} pushed first, as they become ready",
            f"depcha: {keys} calls, first pushed first, one under way",
        ]
        order = order or list(range(len(self.buckets)))
        order = [bucket for bucket, _ in itertools.groupby(order)]
        later = sum(a > b for a, b in zip(order, order[1:], strict=False))
        lines.append(f"  in the order of calls; {later} times one lets others pass that are "
                     "needed before it")
        for number in order:
            bucket = self.buckets[number]
            names = ", ".join(repr(entry.key) for entry in bucket[:4])
            more = f" and {len(bucket) - 4} more" if len(bucket) > 4 else ""
            nbytes = sum(entry.nbytes for entry in bucket)
            lines.append(f"  bucket {number}: {nbytes / 2**10:.1f} KiB, {names}{more}")
        return "\n".join(lines)
