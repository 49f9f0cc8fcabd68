"""One collective at one size on one rank: its buffers, its inputs, and its expected result."""

import copy

import numpy as np

from paceline_bench.measure import values

IN_PLACE = ("allreduce", "reduce", "broadcast")  # as torch.distributed has them: one buffer


class Case:
    """The buffers of a call. Every variant gets the same ones, written anew before each call.

    `separate`: allreduce and reduce get an output of their own.

    `bytes` is the full message: the vector, or all ranks' pieces together; what one rank sends for
    alltoall. It is rounded up to whole elements per piece.
    """

    def __init__(self, collective, nbytes, ranks, rank, dtype="float32", op="sum", root=0,
                 separate=False):
        self.collective, self.ranks, self.rank = collective, ranks, rank
        self.dtype, self.op, self.root = dtype, op, root
        self.in_place = collective in IN_PLACE and not (separate and collective != "broadcast")
        size = values.EXACT[dtype][1]().itemsize
        pieces = 1 if collective in IN_PLACE else ranks
        self.unit = 0 if collective == "barrier" else -(-nbytes // (size * pieces))
        self.count = self.unit * pieces
        self.bytes = self.count * size
        self.pattern = self.brought(rank)
        self.expected = self.due()
        self.take(np.empty)
        self.rewrite()

    def take(self, empty):
        """Buffers from empty(length, dtype)."""
        kind = values.EXACT[self.dtype][1]
        self.input = None if self.pattern is None else empty(len(self.pattern), kind)
        self.output = None
        if self.in_place:
            self.output = self.input
        elif self.expected is not None:
            self.output = empty(len(self.expected), kind)

    def elsewhere(self, empty):
        """The same case in buffers of its own."""
        other = copy.copy(self)
        other.take(empty)
        return other

    def brought(self, rank):
        """The input of a rank, or None."""
        if self.collective == "barrier":
            return None
        # The input is one unit if a rank's piece is one of many.
        count = self.unit if self.collective in ("allgather", "gather") else self.count
        if self.collective == "scatter" and rank != self.root:
            return None
        return values.inputs(rank, count, self.dtype, self.op, self.ranks)

    def due(self):
        """The expected result on this rank, or None."""
        if self.collective in ("allreduce", "reduce", "reduce_scatter"):
            if self.collective == "reduce" and self.rank != self.root:
                return None
            total = values.combined(self.count, self.dtype, self.op, self.ranks)
            return self.mine(total) if self.collective == "reduce_scatter" else total
        if self.collective == "broadcast":
            return self.brought(self.root)
        if self.collective == "scatter":
            return self.mine(self.brought(self.root))
        if self.collective == "alltoall":
            return np.concatenate([self.mine(self.brought(rank)) for rank in range(self.ranks)])
        if self.collective == "allgather" or (
            self.collective == "gather" and self.rank == self.root
        ):
            return np.concatenate([self.brought(rank) for rank in range(self.ranks)])
        return None

    def mine(self, vector):
        """This rank's piece of a vector."""
        return vector[self.rank * self.unit : (self.rank + 1) * self.unit].copy()

    def rewrite(self):
        """Writes the inputs anew, as training does, so that no variant finds them untouched."""
        if self.input is not None:
            np.copyto(self.input, self.pattern)

    def spoil(self):
        """Fills a separate output, so that what an earlier call left there cannot pass."""
        if self.output is not None and self.output is not self.input:
            self.output.view(np.uint8).fill(0xA5)

    def fault(self):
        """Describes what is wrong with the result; empty if it is exact."""
        if self.expected is None:
            return ""
        got, want = (array.view(np.uint8).reshape(len(array), -1)
                     for array in (self.output, self.expected))
        wrong = np.flatnonzero((got != want).any(axis=1))
        if not len(wrong):
            return ""
        first = int(wrong[0])
        return (f"rank {self.rank}: {len(wrong)} of {len(self.expected)} elements are wrong, the "
                f"first at {first}: {self.output[first]} instead of {self.expected[first]}")
