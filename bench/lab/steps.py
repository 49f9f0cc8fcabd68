"""From a recorded backward pass to what a step of training sends, and when: no clock, no library.

A step is forward, backward, and sums of the gradients over all ranks, bucket by bucket. A bucket is
ready when its last gradient is. Recorded times are scaled together, so that one number says how
much there is to compute for what there is to send.
"""

import json
from dataclasses import dataclass
from pathlib import Path

ELEMENT_BYTES = 4  # float32
FIRST_BYTES, BUCKET_BYTES = 1 << 20, 25 << 20  # DDP's defaults
RECORDED = Path(__file__).with_name("recorded")


@dataclass(frozen=True)
class Bucket:
    """Gradients that are summed in one call."""

    elements: int
    ready_s: float  # from the step's begin

    @property
    def bytes(self):
        """Of all of them."""
        return self.elements * ELEMENT_BYTES


@dataclass(frozen=True)
class Step:
    """What every rank does, again and again."""

    buckets: tuple  # in the order in which they are ready
    compute_s: float  # forward and backward

    @property
    def bytes(self):
        """Of all gradients."""
        return sum(bucket.bytes for bucket in self.buckets)

    def least_s(self, bound_s):
        """What no library can beat: from any moment on, all that is not ready yet has still to be
        sent. bound_s(bytes): how long the links need for that at least."""
        least, rest = self.compute_s, 0
        for bucket in reversed(self.buckets):
            rest += bucket.bytes
            least = max(least, bucket.ready_s + bound_s(rest))
        return least


def read(name):
    """The recorded pass of a model, by its name or its file."""
    path = Path(name) if name.endswith(".json") else RECORDED / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def cut(gradients, first_bytes=FIRST_BYTES, bucket_bytes=BUCKET_BYTES):
    """Lists of rows of `gradients`, as DDP makes its buckets: one is closed by the gradient that
    fills it, however long that is; the first is small, so that sending begins early."""
    buckets, limit, filled = [[]], first_bytes, 0
    for row in gradients:
        buckets[-1].append(row)
        filled += row[1] * ELEMENT_BYTES
        if filled >= limit:
            buckets.append([])
            limit, filled = bucket_bytes, 0
    return [rows for rows in buckets if rows]


def step_of(record, compute_s, first_bytes=FIRST_BYTES, bucket_bytes=BUCKET_BYTES):
    """The Step of a recorded pass that computes for so long; all its times are scaled alike."""
    scale = compute_s / (record["forward_s"] + record["backward_s"])
    buckets = [
        Bucket(sum(row[1] for row in rows),
               scale * (record["forward_s"] + max(row[2] for row in rows)))
        for rows in cut(record["gradients"], first_bytes, bucket_bytes)
    ]  # fmt: skip
    return Step(tuple(sorted(buckets, key=lambda bucket: bucket.ready_s)), compute_s)


def early(step, started_s):
    """Which bucket was sent before it was ready, or not at all, in a sentence; empty if none."""
    if len(started_s) != len(step.buckets):
        return f"{len(started_s)} buckets were sent, and not {len(step.buckets)}"
    for number, (bucket, at) in enumerate(zip(step.buckets, started_s)):
        if at < bucket.ready_s:
            return (f"bucket {number} was sent {at:.6f} s after the step's begin, and is ready "
                    f"after {bucket.ready_s:.6f} s")
    return ""
