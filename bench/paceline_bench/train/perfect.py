"""Times of training steps in a row with perfect links: a pure function of a record.

Every step is forward and backward, and an exchange of each key. A layer's forward pass waits for
its own weights, which are those of the step before. The links carry one call after the other, each
for so long as `cost_s` says of its bytes; nothing is lost between two calls. Computing takes no
time from the exchange.
"""

import heapq
from collections import Counter
from dataclasses import dataclass

ELEMENT_BYTES = 4  # float32
OUTSTANDING = 8  # of concom
FIRST_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20  # of DDP
FUSED_BYTES = 64_000_000  # of Horovod
MODES = ("funnel", "concom", "depcha", "auto", "ddp", "horovod")
BY_LIBRARY = ("ddp", "horovod")  # modes that a library's calls serve
ORDERS = ("numbered", "ready")


@dataclass(frozen=True)
class Step:
    """The work of every rank, again and again. Keys are numbered from the first layer on."""

    bytes: tuple  # of each key
    needed_s: tuple  # from the begin of forward on, if nothing has to be waited for
    ready_s: tuple  # from the begin of backward on
    forward_s: float
    backward_s: float

    @property
    def compute_s(self):
        """Forward and backward."""
        return self.forward_s + self.backward_s

    @property
    def numbered(self):
        """Keys from the first layer on."""
        return list(range(len(self.bytes)))

    @property
    def as_ready(self):
        """Keys as their gradients become ready."""
        return sorted(self.numbered, key=lambda key: (self.ready_s[key], key))

    @property
    def as_needed(self):
        """Keys as the forward pass wants them."""
        return sorted(self.numbered, key=lambda key: (self.needed_s[key], key))

    def order(self, name):
        """One of ORDERS."""
        return self.numbered if name == "numbered" else self.as_ready


def step_of(record, compute_s):
    """The Step of a record that computes for so long; all its times are scaled alike."""
    scale = compute_s / (record["forward_s"] + record["backward_s"])
    _, elements, needed, ready = zip(*record["keys"])
    forward, backward = scale * record["forward_s"], scale * record["backward_s"]
    return Step(tuple(ELEMENT_BYTES * n for n in elements),
                tuple(min(scale * at, forward) for at in needed),
                tuple(min(scale * at, backward) for at in ready), forward, backward)


def buckets(step, first_bytes=FIRST_BYTES, bucket_bytes=BUCKET_BYTES):
    """DDP's: in the order in which gradients are ready, closed by the key that fills them."""
    made, limit, filled = [[]], first_bytes, 0
    for key in step.as_ready:
        made[-1].append(key)
        filled += step.bytes[key]
        if filled >= limit:
            made.append([])
            limit, filled = bucket_bytes, 0
    return [keys for keys in made if keys]


def filled(step, keys):
    """Number of the first of `keys` that Horovod fuses, of those that are ready."""
    taken = number = 0
    for key in keys:
        if number and taken + step.bytes[key] > FUSED_BYTES:
            break
        taken += step.bytes[key]
        number += 1
    return number


def fused(step, cost_s):
    """Seconds of a step as Horovod takes it: (all, how many calls, bytes of the longest one)."""
    keys, now, calls = step.as_ready, 0.0, []
    while keys:
        now = max(now, step.ready_s[keys[0]])
        number = filled(step, [key for key in keys if step.ready_s[key] <= now])
        calls.append(sum(step.bytes[key] for key in keys[:number]))
        keys = keys[number:]
        now += cost_s(calls[-1])
    return step.forward_s + max(step.backward_s, now), len(calls), max(calls)


def calls_of(step, mode, order):
    """Lists of keys that are exchanged together, in the order of the calls."""
    if mode == "ddp":
        return buckets(step)
    return [[key] for key in step.order(order)]


def forward(step, begin_s, there_s):
    """End of a forward pass that begins at `begin_s`; there_s: times of each key's weights."""
    now, done = begin_s, 0.0
    for key in step.as_needed:
        now += step.needed_s[key] - done
        done = step.needed_s[key]
        now = max(now, there_s[key])
    return now + step.forward_s - done


def chained(step, calls, ready_s, cost_s, free_s):
    """(times of each key, ends of each call): one call after the other, in this order. A key
    in several calls is exchanged in as many pieces."""
    there_s, ends = [0.0] * len(step.bytes), []
    pieces = Counter(key for keys in calls for key in keys)
    for keys in calls:
        begin = max(free_s, *(ready_s[key] for key in keys))
        free_s = begin + cost_s(sum(step.bytes[key] // pieces[key] for key in keys))
        ends.append(free_s)
        for key in keys:
            there_s[key] = free_s
    return there_s, ends


def urgent(step, ready_s, cost_s):
    """Times of each key if the links always carry the ready key that is needed first: no
    order of calls makes a forward pass end earlier."""
    place = {key: number for number, key in enumerate(step.as_needed)}
    left = [cost_s(nbytes) for nbytes in step.bytes]
    coming = sorted(step.numbered, key=lambda key: ready_s[key])
    there_s, waiting, now = [0.0] * len(left), [], 0.0
    while coming or waiting:
        if not waiting:
            now = max(now, ready_s[coming[0]])
        while coming and ready_s[coming[0]] <= now:
            key = coming.pop(0)
            heapq.heappush(waiting, (place[key], key))
        key = waiting[0][1]
        until = ready_s[coming[0]] if coming else float("inf")
        if now + left[key] <= until:
            now += left[key]
            there_s[key] = now
            heapq.heappop(waiting)
        else:
            left[key] -= until - now
            now = until
    return there_s


def seconds(step, mode, order, cost_s, steps=5, calls=None):
    """Seconds of a step, over `steps` in a row; the last one ends when all weights are there."""
    if mode == "horovod":
        return fused(step, cost_s)[0]
    calls = calls or calls_of(step, mode, order)
    there_s, free_s, may_begin_s, computed_s = [0.0] * len(step.bytes), 0.0, 0.0, 0.0
    for _ in range(steps):
        middle = forward(step, max(computed_s, may_begin_s), there_s)
        ready_s = [middle + at for at in step.ready_s]
        computed_s = middle + step.backward_s
        if mode == "auto":
            there_s = urgent(step, ready_s, cost_s)
            continue
        there_s, ends = chained(step, calls, ready_s, cost_s, free_s)
        free_s = ends[-1]
        if mode in ("funnel", "ddp"):  # the training loop waits for all
            may_begin_s = free_s
        elif mode == "concom":  # ... or for the last barrier
            barriers = (len(ends) - 1) // OUTSTANDING
            may_begin_s = ends[barriers * OUTSTANDING - 1] if barriers else 0.0
    return max([computed_s, *there_s]) / steps


def least_s(step, cost_s):
    """A bound for all ways in steady state."""
    return max(step.compute_s, sum(map(cost_s, step.bytes)))
