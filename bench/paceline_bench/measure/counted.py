"""Counts what crosses the border of this rank's node in each call of a benchmark between nodes."""

from dataclasses import astuple

from paceline.calls import knobs

from paceline_bench.measure import links, variants


class Counted:
    """The counters of this node's interface around the calls of each variant; with a tap, what has
    passed in between. All ranks make the same calls."""

    def __init__(self, worker, labels, tap=None):
        self.worker, self.tap = worker, tap
        self.interface, self.idle = worker.cluster.interface, links.idle_clock()
        self.calls, self.moved = dict.fromkeys(labels, 0), {label: [0, 0] for label in labels}
        self.passed = {label: [] for label in labels} if tap else {}

    def around(self, label, run, counts=True):
        """Returns the result of run(), which makes one call of a variant. Returns once that has
        ended on all ranks, and no rank begins another while one still reads its counters."""
        before = links.counters(self.interface)
        if self.tap:
            self.tap.discard()
        found = run()
        self.worker.settle()
        after = links.counters(self.interface)
        if counts:
            self.calls[label] += 1
            self.moved[label] = [m + b - a for m, a, b in zip(self.moved[label], before, after)]
            if self.tap:
                self.passed[label].append([astuple(segment) for segment in self.tap.take()])
        self.worker.meeting.barrier()
        return found

    def found(self, cases):
        """The counts of these calls, and how the calls were made."""
        rested, ticks = (b - a for a, b in zip(self.idle, links.idle_clock()))
        worker = self.worker
        return {"moved": self.moved, "passed": self.passed, "calls": self.calls,
                "idle": rested / max(ticks, 1), "machine": worker.communicator._core.machine,
                "explained": {v.label: explained(worker.communicator, v, cases[v.label])
                              for v in worker.variants
                              if v.label in self.calls and v.library == "paceline"}}


def explained(comm, variant, case):
    """The choice for a variant, in words."""
    wished = knobs(**variant.options(case.bytes))
    return comm._core.explain(*variants.core_call(comm, case), None, None, wished)
