"""Communicator: ranks that call collectives together, in the same order."""

import json
import os
from collections.abc import Sequence
from typing import Any

from paceline import _core, calls, mpi, open_worlds
from paceline.buffers import Buffer, shared_empty
from paceline.errors import ResourceError, UsageError

Counts = Sequence[int]


class Communicator:
    """A group of ranks, numbered from 0 to size - 1, that call collectives in the same order.

    init() makes the communicator of all ranks. Communicator(comm) makes one of the ranks of `comm`,
    a communicator of mpi4py; it is collective over `comm`, which can be used as before.

    Buffers `x` and `out` are numpy arrays, torch tensors, or objects with the buffer protocol,
    DLPack or __cuda_array_interface__. They are contiguous, both on the CPU or both on one CUDA
    device, and of type float64, float32, float16, bfloat16, int8 to int64, uint8 to uint64 or bool.
    Collectives read and write them without a copy. `out` may not overlap `x`, unless a method says
    how. A method that makes `out` itself takes the library and type of `x`. Lengths below are in
    elements; n is any length, also 0.

    Every collective takes these keywords. All but timeout_ms must be equal on all ranks.
      algorithm   name of an algorithm, as `paceline explain` lists them; None: chosen by size
      segments    number of pipeline segments of the message, or the most bytes of one as text
                  ("4MiB"); None: chosen
      window      number of segments under way at a time; None: chosen
      radix       radix of the algorithm's tree or hypercube, if it has one; None: chosen
      blocks      number of blocks that the algorithm cuts the message into; None: chosen
      tag         name of the data, such as that of a gradient, or a number from 1 on; ranks whose
                  tags differ in a call get MismatchError; None: no tag
      priority    of the calls under way, the one with the highest priority sends its next message
                  or segment first; from -2**20 to 2**20; None: 0
      timeout_ms  time-out of the call in milliseconds; None: the communicator's timeout_ms

    A method whose name begins with `i` starts the collective and returns a Request. test() of the
    Request makes progress; wait() completes the collective and returns the result of the method
    without `i`. The Request keeps the buffers alive; leave them alone until it is complete.

    Raises UsageError and RefusalError before anything is sent. Raises MismatchError, TimeoutError
    and RankLost on every rank that waits; the communicator is broken afterwards.
    """

    __slots__ = ("_core", "run", "start", "rank", "size", "__weakref__")

    def __init__(self, comm: Any):
        core = comm
        if not isinstance(comm, _core.Communicator):
            core = mpi.join_communicator(comm)
            open_worlds.keep(self)
        self._core = core
        # For front ends with arguments of their own, such as torch's: (collective, input, output,
        # op, root, counts, received counts, knobs), all by position, knobs from calls.knobs() or
        # None. run() returns nothing; start() also takes what its Request is to return.
        self.run = core.run
        self.start = core.start
        self.rank: int = core.rank
        self.size: int = core.size

    def __repr__(self) -> str:
        state = f", broken: {self._core.broken}" if self._core.broken else ""
        return f"<paceline.Communicator rank {self.rank} of {self.size}{state}>"

    @property
    def broken(self) -> str:
        """The error that broke the communicator, as text; empty if it works."""
        return self._core.broken

    def is_called(self) -> bool:
        """True if a message has arrived for a call that this rank has not made yet."""
        return self._core.is_called()

    @property
    def timeout_ms(self) -> int:
        """Time-out in milliseconds of this rank's calls that have no time-out of their own.

        The world's communicator begins with PACELINE_TIMEOUT_MS. A communicator made from this one
        begins with the value that this one has then. Setting it raises UsageError below 1.
        """
        return self._core.timeout_ms

    @timeout_ms.setter
    def timeout_ms(self, milliseconds: int) -> None:
        self._core.timeout_ms = milliseconds

    def empty(self, shape: int | Sequence[int], dtype: Any = "float32") -> Buffer:
        """A zeroed array of `shape` on every rank, in memory that all ranks of a node reach.

        Collective: all ranks pass the same shape and type. `dtype` is a numpy type or its name, or
        a torch type; then the result is a tensor.

        allreduce, broadcast, reduce_scatter, allgather and alltoall work directly on such arrays,
        and send no data, if all buffers lie in them, at the same place on every rank. They may be
        called on any communicator of this world whose ranks all belong to this one. Across nodes,
        and where memory cannot be shared, these are ordinary arrays.

        Each rank keeps its memory as long as an array or a view of it lives. Peers may write into
        it until their call has ended, even if the call fails on this rank.

        Raises UsageError for a negative length, and ResourceError if there is no memory.
        """
        return shared_empty(self, shape, dtype)

    def allocate(self, nbytes: int) -> tuple[Any, bool, str]:
        """empty() in bytes. Returns (memory, True if the ranks share it, reason why not).

        The reason is empty on all ranks but one.
        """
        return self._core.allocate(nbytes)

    def allreduce(self, x: Buffer, out: Buffer = None, op: str = "sum", **options: Any) -> Buffer:
        """Combines `x` (n) of all ranks into `out` (n; None: `x` itself) on every rank.

        `op` is sum, product, min, max, average, bit_and, bit_or, bit_xor, logical_and, logical_or
        or logical_xor. An average is the sum divided by `size`. A sum of integers wraps, and
        their average is rounded towards zero. A sum of float16 above 65504 is infinite. Returns
        `out`; its bits are the same on all ranks.
        """
        if out is None:
            out = x
        settings = calls.knobs(**options) if options else None
        self.run("allreduce", x, out, op, 0, None, None, settings)
        return out

    def reduce(
        self, x: Buffer, out: Buffer = None, op: str = "sum", root: int = 0, **options: Any
    ) -> Buffer:
        """Combines `x` (n) of all ranks into `out` (n; None: `x` itself) on the rank `root`.

        Returns `out` on the root. Returns None on the other ranks, and leaves their `x` as it is.
        """
        return self._do(calls.reduce(self, x, out, op, root), options)

    def broadcast(self, x: Buffer, root: int = 0, **options: Any) -> Buffer:
        """Copies `x` (n) of the rank `root` into `x` of all other ranks. Returns `x`."""
        return self._do(calls.broadcast(self, x, root), options)

    def reduce_scatter(
        self, x: Buffer, out: Buffer = None, op: str = "sum", counts: Counts | None = None,
        **options: Any,
    ) -> Buffer:  # fmt: skip
        """Combines `x` of all ranks, and puts the r-th piece of the result into `out` of rank r.

        Without counts `x` has size * n elements and `out` n. With counts, which are equal on all
        ranks, `x` has sum(counts) elements and `out` counts[rank]. In place, `out` is this rank's
        piece of `x`. Returns `out`.
        """
        return self._do(calls.reduce_scatter(self, x, out, op, counts), options)

    def allgather(
        self, x: Buffer, out: Buffer = None, counts: Counts | None = None, **options: Any
    ) -> Buffer:
        """Concatenates `x` of all ranks, in rank order, into `out` on every rank.

        Without counts `x` has n elements and `out` size * n. With counts, which are equal on all
        ranks, `x` has counts[rank] elements and `out` sum(counts). In place, `x` is this rank's
        piece of `out`. Returns `out`.
        """
        return self._do(calls.allgather(self, x, out, counts), options)

    def alltoall(self, x: Buffer, out: Buffer = None, **options: Any) -> Buffer:
        """Sends the r-th of `size` equal pieces of `x` to rank r.

        `out` is as long as `x`, and may be `x`. Its r-th piece comes from rank r. Returns `out`.
        """
        return self._do(calls.alltoall(self, x, out), options)

    def alltoallv(
        self, x: Buffer, counts: Counts, counts_received: Counts, out: Buffer = None,
        **options: Any,
    ) -> Buffer:  # fmt: skip
        """Sends counts[r] elements of `x` (sum(counts)) to rank r.

        `out` (sum(counts_received)) receives counts_received[r] elements from rank r, in rank
        order. Returns `out`.
        """
        return self._do(calls.alltoallv(self, x, counts, counts_received, out), options)

    def gather(self, x: Buffer, out: Buffer = None, root: int = 0, **options: Any) -> Buffer:
        """Concatenates `x` (n) of all ranks, in rank order, into `out` (size * n) on the root.

        In place, the root's `x` is its piece of `out`. Returns `out` on the root, else None.
        """
        return self._do(calls.gather(self, x, out, root), options)

    def gatherv(
        self, x: Buffer, counts: Counts | None = None, out: Buffer = None, root: int = 0,
        **options: Any,
    ) -> Buffer:  # fmt: skip
        """Like gather, with pieces of counts[r] elements. Only the root needs counts."""
        return self._do(calls.gatherv(self, x, counts, out, root), options)

    def scatter(
        self, x: Buffer = None, out: Buffer = None, root: int = 0, **options: Any
    ) -> Buffer:
        """Sends the r-th of `size` equal pieces of `x` on the root into `out` (n) of rank r.

        In place, the root's `out` is its piece of `x`. Only the root needs `x`; the others need
        `out`. Returns `out`.
        """
        return self._do(calls.scatter(self, x, out, root), options)

    def scatterv(
        self, x: Buffer = None, counts: Counts | None = None, out: Buffer = None, root: int = 0,
        **options: Any,
    ) -> Buffer:  # fmt: skip
        """Like scatter, with pieces of counts[r] elements. Only the root needs counts."""
        return self._do(calls.scatterv(self, x, counts, out, root), options)

    def barrier(self, **options: Any) -> None:
        """Returns when all ranks have called it."""
        self._do(calls.barrier(self), options)

    def iallreduce(self, x, out=None, op="sum", **options) -> _core.Request:
        """Starts allreduce()."""
        return self._begin(calls.allreduce(self, x, out, op), options)

    def ireduce(self, x, out=None, op="sum", root=0, **options) -> _core.Request:
        """Starts reduce()."""
        return self._begin(calls.reduce(self, x, out, op, root), options)

    def ibroadcast(self, x, root=0, **options) -> _core.Request:
        """Starts broadcast()."""
        return self._begin(calls.broadcast(self, x, root), options)

    def ireduce_scatter(self, x, out=None, op="sum", counts=None, **options) -> _core.Request:
        """Starts reduce_scatter()."""
        return self._begin(calls.reduce_scatter(self, x, out, op, counts), options)

    def iallgather(self, x, out=None, counts=None, **options) -> _core.Request:
        """Starts allgather()."""
        return self._begin(calls.allgather(self, x, out, counts), options)

    def ialltoall(self, x, out=None, **options) -> _core.Request:
        """Starts alltoall()."""
        return self._begin(calls.alltoall(self, x, out), options)

    def ialltoallv(self, x, counts, counts_received, out=None, **options) -> _core.Request:
        """Starts alltoallv()."""
        return self._begin(calls.alltoallv(self, x, counts, counts_received, out), options)

    def igather(self, x, out=None, root=0, **options) -> _core.Request:
        """Starts gather()."""
        return self._begin(calls.gather(self, x, out, root), options)

    def igatherv(self, x, counts=None, out=None, root=0, **options) -> _core.Request:
        """Starts gatherv()."""
        return self._begin(calls.gatherv(self, x, counts, out, root), options)

    def iscatter(self, x=None, out=None, root=0, **options) -> _core.Request:
        """Starts scatter()."""
        return self._begin(calls.scatter(self, x, out, root), options)

    def iscatterv(self, x=None, counts=None, out=None, root=0, **options) -> _core.Request:
        """Starts scatterv()."""
        return self._begin(calls.scatterv(self, x, counts, out, root), options)

    def ibarrier(self, **options) -> _core.Request:
        """Starts barrier()."""
        return self._begin(calls.barrier(self), options)

    def plan(self, collective: str, *arguments: Any, **keywords: Any) -> _core.Plan:
        """Sets up a collective once, to be started many times on the same buffers.

        Takes the name of a method without `i`, and its arguments: plan("allreduce", x, op="max").
        start() of the Plan starts it, test() makes progress, and wait() completes it and returns
        the result. The data may change between a wait and the next start. A start counts as a
        call: all ranks make it at the same place in the order of calls.
        """
        call, result, settings = self._prepare(collective, arguments, keywords)
        return self._core.plan(*call, settings, result)

    def explain(self, collective: str, *arguments: Any, **keywords: Any) -> str:
        """Returns a text: the algorithm that such a call would take, and why. Sends nothing.

        Takes the same arguments as plan().
        """
        call, _, settings = self._prepare(collective, arguments, keywords)
        return self._core.explain(*call, settings)

    def flight_record(self, folder: str | None = None) -> dict[str, Any]:
        """Returns the last calls of this process in all communicators of this world, as a dict.

        The dict has rank, ranks, reason and communicators. Each communicator has its ranks, why it
        is broken (or ""), and its last calls, oldest first, with number and call. A call under way
        also has waited_s (seconds) and waits_for (ranks of the communicator).

        With `folder` the record is also written there, as rank-<rank>.json and rank-<rank>.txt, for
        `paceline doctor --record`. Raises ResourceError if that fails. Sends nothing, and works on
        a broken communicator, too.
        """
        found = json.loads(self._core.record("asked for by the program"))
        if folder and not self._core.write_record(found["reason"], os.fspath(folder)):
            raise ResourceError(f"flight_record: '{folder}' cannot be written to; pass a folder "
                                "that this process may make files in.")
        return found

    def split(self, colour: int, key: int = 0) -> "Communicator | None":
        """Makes a communicator of the ranks with an equal `colour`. Collective.

        Its ranks are ordered by `key`, then by rank. A rank with a negative colour gets None.
        """
        part = self._core.split(colour, key)
        return None if part is None else Communicator(part)

    def dup(self) -> "Communicator":
        """Makes a communicator of the same ranks, with calls of its own. Collective."""
        return self.split(0, self.rank)  # type: ignore[return-value]  # none is left out

    def subgroup(self, ranks: Sequence[int], tag: int) -> "Communicator":
        """Makes a communicator of `ranks`, in that order. Sends nothing.

        Only its members call it, all with the same `tag` (0 to 2**64 - 1), which no other group of
        this communicator has.
        """
        return Communicator(self._core.subgroup(list(ranks), tag))

    def _do(self, prepared: calls.Call, options: dict[str, Any]) -> Any:
        call, result = prepared
        self.run(*call, calls.knobs(**options) if options else None)
        return result

    def _begin(self, prepared: calls.Call, options: dict[str, Any]) -> _core.Request:
        call, result = prepared
        return self.start(*call, calls.knobs(**options) if options else None, result)

    def _prepare(
        self, collective: str, arguments: Any, keywords: dict[str, Any]
    ) -> tuple[calls.CoreCall, Any, Any]:
        options = {name: keywords.pop(name) for name in calls.OPTIONS if name in keywords}
        try:
            call, result = calls.named(collective)(self, *arguments, **keywords)
        except TypeError as error:
            raise UsageError(f"{collective}: {error}") from error
        return call, result, calls.knobs(**options) if options else None
