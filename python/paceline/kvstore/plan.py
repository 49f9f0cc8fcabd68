"""Which keys are exchanged together, and in which order."""

import heapq
import itertools
import math
from dataclasses import dataclass

from paceline import _core
from paceline.kvstore.cores import Cores
from paceline.kvstore.store import Entry

OVERHEAD = 0.05  # of a bucket's time may be what every call costs, however short
LEAST_BYTES, MOST_BYTES = 64 << 10, 32 << 20
PIECE = 4  # times a bucket's length: what is longer is exchanged in pieces
DDP_BYTES = (1 << 20, 25 << 20)  # of its first bucket, and of the others
TAIL = 3  # so many buckets at the end are each half as long as the one before


@dataclass(frozen=True)
class Link:
    """What a call costs: seconds, and seconds per byte, of an allreduce between all ranks."""

    call_s: float
    byte_s: float

    @classmethod
    def of(cls, machine: str, ranks: int, nodes: int) -> "Link":
        """From a machine (PACELINE_MACHINE), as the choice of algorithms has it."""
        numbers = {key: float(value) for key, _, value in
                   (part.partition("=") for part in _core.machine_settings(machine).split(","))}
        where = "" if nodes > 1 else "inside_"
        rounds = 2 * max(1, math.ceil(math.log2(max(2, ranks))))
        share = 2 * (ranks - 1) / ranks if ranks > 1 else 1
        rate = numbers[f"{where}gbit_per_s"]  # 0: no limit
        return cls(1e-6 * (numbers["task_us"] + rounds * numbers[f"{where}alpha_us"]),
                   share * 8e-9 / rate if rate else 0.0)

    def cost_s(self, nbytes: int) -> float:
        """Of an allreduce of so many bytes."""
        return self.call_s + nbytes * self.byte_s

    def bucket_bytes(self) -> int:
        """From which on no more than OVERHEAD of a bucket's time is that of the call."""
        if not self.byte_s:
            return MOST_BYTES
        return round(min(max(self.call_s / OVERHEAD / self.byte_s, LEAST_BYTES), MOST_BYTES))


def end_s(calls: list[tuple[float, float]], hides: bool = True) -> float:
    """When the last of these calls, (ready, takes) in seconds, is over: they follow each other.
    Computing hides nothing: it ends later by what they take."""
    if not hides:
        return max(ready_s for ready_s, _ in calls) + sum(takes_s for _, takes_s in calls)
    now = 0.0
    for ready_s, takes_s in calls:
        now = max(now, ready_s) + takes_s
    return now


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
    cores: Cores | None = None  # of the node, if there is one

    @classmethod
    def make(
        cls, pushed: list[Entry], is_reversed: bool, link: Link, cores: Cores | None = None
    ) -> "Plan":  # fmt: skip
        """Buckets of about equal length; the last ones, which nothing hides, are shorter. Where
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
        return cls([bucket[::-1] for bucket in buckets[::-1]], whole, is_reversed, cores)

    @property
    def hides(self) -> bool:
        """Whether computing goes on beside calls. Between nodes the links work meanwhile; inside
        of one it takes a core that nobody computes on."""
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

    def predicted_s(
        self, order: list[int], ready_s: dict[int, float], link: Link
    ) -> dict[str, float]:
        """When the exchange would be over, by way: this plan, and those that it is an alternative
        to, were the links nobody else's; and when the last gradient is ready. In seconds from the
        first one on. `order` and `ready_s` as order() has them."""
        first_s = min(ready_s.values())
        ready_s = {number: at_s - first_s for number, at_s in ready_s.items()}
        keys = [entry for bucket in self.buckets for entry in bucket]
        takes_s = {bucket: link.cost_s(nbytes) for bucket, nbytes in self.pieces}
        ours = [(max(ready_s[entry.number] for entry in self.buckets[b]), takes_s[b])
                for b in order]
        pushed = keys[::-1] if self.is_reversed else keys
        chain = [(ready_s[entry.number], link.cost_s(entry.nbytes)) for entry in pushed]
        last_s = max(ready_s.values())
        return {
            "this plan": end_s(ours, self.hides),
            "depcha": end_s(chain, self.hides),
            "buckets as DDP has them": end_s(_as_ddp(keys, ready_s, link), self.hides),
            "one call": last_s + link.cost_s(sum(entry.nbytes for entry in keys)),
            "ready": last_s,
        }

    def describe(
        self, outstanding: int, order: list[int] | None = None,
        predicted_s: dict[str, float] | None = None,
    ) -> str:  # fmt: skip
        """For people: what is exchanged when, and what other ways would take."""
        keys = sum(len(bucket) for bucket in self.buckets)
        lines = [
            f"auto: {keys} keys in {self._lengths(outstanding)}; "
            f"{'last' if self.is_reversed else 'first'} pushed first, as they become ready",
            f"depcha: {keys} calls, first pushed first, one under way",
        ]
        if predicted_s is not None:
            times = {name: f"{1e3 * seconds:.3g} ms" for name, seconds in predicted_s.items()}
            ready = times.pop("ready")
            lines.append("  predicted to be over, as gradients became ready on this rank (the last "
                         f"after {ready}): " + ", ".join(f"{name} {time}"
                                                         for name, time in times.items()))
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


    def _lengths(self, outstanding: int) -> str:
        """How many buckets there are, and why."""
        if not self.hides:
            count = len(self.buckets)
            calls = "1 call a step" if count == 1 else f"{count} calls a step, one for each type"
            return (f"{calls}, since computing hides nothing: {self.cores.threads} threads of the "
                    f"ranks compute, on the {self.cores.count} cores of their node")
        return (f"{len(self.buckets)} buckets of up to {self.bucket_bytes / 2**20:.3g} MiB, up to "
                f"{outstanding} under way")


def _as_ddp(
    keys: list[Entry], ready_s: dict[int, float], link: Link
) -> list[tuple[float, float]]:
    """The calls of DDP's buckets, which it fills in the order in which gradients become ready."""
    calls: list[tuple[float, float]] = []
    held, at_s, most = 0, 0.0, DDP_BYTES[0]
    for entry in sorted(keys, key=lambda entry: ready_s[entry.number]):
        held, at_s = held + entry.nbytes, ready_s[entry.number]
        if held >= most:
            calls.append((at_s, link.cost_s(held)))
            held, most = 0, DDP_BYTES[1]
    return [*calls, (at_s, link.cost_s(held))] if held else calls
