"""One rank of a replay: waits as long as the real step computes, and sums its buckets when due.

Started by training.py, as `python -m replay_rank SPEC`. All libraries run in turn, on the same
buffers, which are filled before each step and compared with exact sums after it.
"""

import json
import socket
import sys
import time
from pathlib import Path

import libraries
import numpy as np
import steps

import paceline
from paceline.bench import links
from paceline.bench.meeting import Meeting

PERIOD = 1021  # a prime: no cut of a buffer falls together with it
CHUNK = PERIOD << 8  # elements that are written and compared at a time
STRIDE = 1024  # between the values of two ranks; all sums are exact


class Buffers:
    """The gradients of this rank: a value for each bucket, element and rank."""

    def __init__(self, step, rank, ranks):
        self.rank, self.ranks = rank, ranks
        self.arrays = [np.empty(bucket.elements, np.float32) for bucket in step.buckets]
        self.pattern = np.arange(CHUNK, dtype=np.float32) % PERIOD
        self.summed = self.pattern * ranks

    def parts(self):
        """(number of the bucket, a part of it) of all."""
        for number, array in enumerate(self.arrays):
            for at in range(0, array.size, CHUNK):
                yield number, array[at : at + CHUNK]

    def fill(self):
        """What a rank brings along."""
        for number, part in self.parts():
            np.add(self.pattern[: part.size], number + STRIDE * self.rank, out=part)

    def fault(self):
        """Which bucket does not hold the sum over all ranks; empty if each does."""
        together = STRIDE * self.ranks * (self.ranks - 1) // 2
        for number, part in self.parts():
            if (part - self.summed[: part.size] != self.ranks * number + together).any():
                return f"bucket {number} of rank {self.rank} does not hold the sum"
        return ""


class Rank:
    """This rank, with everything that lives for the whole launch."""

    def __init__(self, spec):
        self.spec = spec
        self.folder = Path(spec["folder"])
        self.communicator = paceline.init()
        self.rank, self.ranks = self.communicator.rank, self.communicator.size
        self.meeting = Meeting(self.folder / "meeting", self.rank, self.ranks)
        self.cluster = links.Cluster(**spec["cluster"]) if spec["cluster"] else None
        interface = self.cluster.interface if self.cluster else ""
        group = libraries.start_gloo(self.folder / "gloo", self.rank, self.ranks, interface)
        self.libraries = [libraries.Ours(self.communicator), libraries.Gloo(group)]
        self.world = None
        if spec["mpiexec"]:
            from paceline import mpi

            self.world = mpi.load()[0].world()
            loaded = libraries.start_mpi()
            self.libraries += [libraries.Blocking(loaded), libraries.NonBlocking(loaded)]
        self.libraries = [one for one in self.libraries if one.label in spec["libraries"]]

    def counters(self):
        """(bytes sent, bytes received) by this node so far; nothing without nodes."""
        return links.counters(self.cluster.interface) if self.cluster else (0, 0)

    def settle(self):
        """Waits for all ranks; between nodes an MPI may have yet to send."""
        if self.world:
            self.meeting.settle(self.world.nudge)
        else:
            self.meeting.barrier()

    def warm_up(self, library, buffers):
        """Connections and scratch: the smallest bucket, twice."""
        buffer = min(buffers.arrays, key=len)
        for _ in range(2):
            library.start(buffer)
            library.finish()
            self.settle()

    def one(self, library, step, buffers):
        """A step: its seconds on this rank, bytes (sent, received), and what was wrong with it."""
        buffers.fill()
        self.meeting.barrier()
        before, begun = self.counters(), []
        begin = self.meeting.start()
        for bucket, buffer in zip(step.buckets, buffers.arrays):
            library.wait_until(begin + int(1e9 * bucket.ready_s))
            begun.append((time.monotonic_ns() - begin) / 1e9)
            library.start(buffer)
        library.wait_until(begin + int(1e9 * step.compute_s))
        library.finish()
        took = (time.monotonic_ns() - begin) / 1e9
        self.settle()
        moved = [after - was for was, after in zip(before, self.counters())]
        self.meeting.barrier()  # nobody begins while another one still counts
        return took, moved, steps.early(step, begun) or buffers.fault()

    def measure(self, step):
        """{label: what each round found} of a model."""
        buffers = Buffers(step, self.rank, self.ranks)
        found = {library.label: [] for library in self.libraries}
        turn, idle = list(self.libraries), links.idle_clock()
        for library in turn:
            buffers.fill()
            self.warm_up(library, buffers)
        for _ in range(self.spec["rounds"]):
            for library in turn:
                found[library.label].append(self.one(library, step, buffers))
            turn.append(turn.pop(0))  # nobody always runs after the same one
        rested, ticks = (b - a for a, b in zip(idle, links.idle_clock()))
        return {"found": found, "idle": rested / max(ticks, 1)}

    def run(self):
        """All models, into this rank's file."""
        result = {"node": socket.gethostname(), "models": {}}
        for name, words in self.spec["steps"].items():
            buckets = tuple(steps.Bucket(**bucket) for bucket in words["buckets"])
            result["models"][name] = self.measure(steps.Step(buckets, words["compute_s"]))
        file = self.folder / f"rank{self.rank}.json"
        file.write_text(json.dumps(result), encoding="utf-8")


def main():
    """Reads the specification that the command line names."""
    import torch.distributed as dist

    rank = Rank(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    rank.run()
    rank.settle()
    dist.destroy_process_group()
    paceline.finalize()


if __name__ == "__main__":
    main()
