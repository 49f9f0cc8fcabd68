"""The collectives of a torch ProcessGroup, under all names that torch calls.

torch passes one tensor in a list (or a list of lists); options hold the operation and the root.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch

from paceline import _core, calls
from paceline.communicator import Communicator
from paceline.errors import RefusalError, UsageError
from paceline.torch.minors import CallWork
from paceline.torch.streams import DeviceWork, is_on_device
from paceline.torch.tensors import (
    Finish,
    both,
    dense,
    flat,
    flat_room,
    moved,
    op_of,
    reduced,
    room,
    sizes_of,
)
from paceline.torch.tensors import source as held
from paceline.torch.work import Requests, Work, Works

Tensor = torch.Tensor
Tensors = Sequence[torch.Tensor]


_REFUSED = calls.knobs(tag=_core.REFUSED)


def _heard(method: Callable[..., Work]) -> Callable[..., Work]:
    """Tells the other ranks if this rank's call is refused, since they may have begun theirs. If
    the call is refused on all ranks, nothing is broken."""

    @functools.wraps(method)
    def call(self: "Collectives", *args: Any, **keywords: Any) -> Work:
        made = self._made
        try:
            return method(self, *args, **keywords)
        except Exception:
            if self._made == made:
                self._made += 1
                with contextlib.suppress(Exception):  # it is broken, or destroyed
                    self._comm.start("barrier", None, None, "sum", 0, None, None, _REFUSED, None)
            raise

    return call


class Collectives:
    """Mixed into the process group, which sets the attributes below."""

    _comm: Communicator
    _knobs: calls.Knobs
    _allreduce_sparse: Callable[[Tensor, str], Work]
    _is_gloo: bool  # taken for gloo: futures of all_gather hold the list of tensors, as gloo's
    _coalesced: list[Work] | None  # what was started since _start_coalescing
    _made = 0  # calls so far

    @_heard
    def allreduce(self, tensors: Tensors | Tensor, opts: Any = None, timeout: Any = None) -> Work:
        tensors = _listed(tensors)
        op = _op(opts)
        if len(tensors) != 1:
            return self.allreduce_coalesced(tensors, opts)
        if tensors[0].is_sparse:
            return self._allreduce_sparse(tensors[0], op)
        memory, finish = dense(reduced(tensors[0], op))
        return self._call(tensors, finish, opts, "allreduce", memory, memory, op)

    @_heard
    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> Work:
        """One message per type of element, as long as all tensors of that type together."""
        op = _op(opts)
        alike: dict[torch.dtype, list[Tensor]] = {}
        for tensor in tensors:
            memory = reduced(tensor, op)
            alike.setdefault(memory.dtype, []).append(memory)
        requests, finish = [], None
        for group in alike.values():
            memory, back = flat_room(group)
            memory.copy_(flat(group))
            requests.append(self._begin("allreduce", memory, memory, op))
            finish = both(finish, back)
        return self._work(Requests(requests), list(tensors), finish)

    @_heard
    def reduce(self, tensors: Tensors | Tensor, opts: Any = None, *old: Any) -> Work:
        tensors = _listed(tensors)
        op, root = _op(opts), opts.rootRank
        memory, finish = dense(reduced(tensors[0], op))
        is_root = root == self._comm.rank
        return self._call(
            tensors, finish if is_root else None, opts,
            "reduce", memory, memory if is_root else None, op, root,
        )  # fmt: skip

    @_heard
    def broadcast(self, tensors: Tensors | Tensor, opts: Any = None, timeout: Any = None) -> Work:
        tensors = _listed(tensors)
        root = opts if isinstance(opts, int) else opts.rootRank
        memory, finish = dense(moved(tensors[0]))
        return self._call(
            tensors, None if root == self._comm.rank else finish, opts,
            "broadcast", None, memory, "sum", root,
        )  # fmt: skip

    @_heard
    def allgather(self, outputs: Any, inputs: Tensors | Tensor, opts: Any = None) -> Work:
        """Gathers into a list of tensors, of equal or different sizes."""
        if isinstance(inputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        target = [moved(tensor) for tensor in outputs[0]]
        self._one_each(target, "all_gather", "output")
        memory, finish = flat_room(target)
        sizes = sizes_of(target)
        counts = None if sizes.count(sizes[0]) == len(sizes) else sizes
        source = held(moved(inputs[0]))
        work = self._call(
            list(outputs[0]), finish, opts, "allgather", source, memory, "sum", 0, counts
        )
        # The future holds the tensor, as over NCCL: DDP's hooks that quantise look for it.
        if counts is None and not self._is_gloo and memory.dtype == inputs[0].dtype:
            work._gathered = memory.view(self._comm.size, *inputs[0].shape)
        return work

    @_heard
    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        memory, finish = room(moved(output))
        source = held(moved(input))
        return self._call([output], finish, opts, "allgather", source, memory)

    @_heard
    def all_gather_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Work:
        return self._together([
            self.all_gather_single(output, input)
            for output, input in zip(outputs, inputs, strict=True)
        ], outputs)  # fmt: skip

    @_heard
    def allgather_coalesced(
        self, output_lists: Sequence[Tensors], inputs: Tensors, opts: Any = None
    ) -> Work:
        """Gathers inputs[i] of each rank into output_lists[rank][i]."""
        return self._together([
            self.allgather([[tensors[i] for tensors in output_lists]], [input])
            for i, input in enumerate(inputs)
        ], [tensor for tensors in output_lists for tensor in tensors])  # fmt: skip

    @_heard
    def reduce_scatter(
        self, outputs: Tensors | Tensor, inputs: Any, opts: Any = None, *old: Any
    ) -> Work:
        """Reduces a list of tensors, of equal or different sizes, and scatters the results."""
        if isinstance(outputs, torch.Tensor):
            outputs, inputs = [outputs], [inputs]
        op = _op(opts)
        parts = [reduced(tensor, op) for tensor in inputs[0]]
        self._one_each(parts, "reduce_scatter", "input")
        sizes = sizes_of(parts)
        counts = None if sizes.count(sizes[0]) == len(sizes) else sizes
        memory, finish = room(reduced(outputs[0], op))
        return self._call(
            list(outputs), finish, opts, "reduce_scatter", flat(parts), memory, op, 0, counts
        )

    @_heard
    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        op = _op(opts)
        memory, finish = room(reduced(output, op))
        source = held(reduced(input, op))
        return self._call([output], finish, opts, "reduce_scatter", source, memory, op)

    @_heard
    def reduce_scatter_single_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Any = None
    ) -> Work:
        return self._together([
            self.reduce_scatter_single(output, input, opts and opts.reduceOp)
            for output, input in zip(outputs, inputs, strict=True)
        ], outputs)  # fmt: skip

    @_heard
    def gather(
        self, outputs: Sequence[Tensors], inputs: Tensors | Tensor, opts: Any = None
    ) -> Work:
        """Gathers into the root's list of tensors, of equal or different sizes."""
        source = held(moved(_listed(inputs)[0]))
        if opts.rootRank != self._comm.rank:
            return self._call([], None, opts, "gather", source, None, "sum", opts.rootRank, ())
        with self._refused_by_root("gather"):
            target = [moved(tensor) for tensor in outputs[0]]
            self._one_each(target, "gather", "output")
            memory, finish = flat_room(target)
            return self._call(
                list(outputs[0]), finish, opts,
                "gather", source, memory, "sum", opts.rootRank, sizes_of(target),
            )  # fmt: skip

    @_heard
    def scatter(
        self, outputs: Tensors | Tensor, inputs: Sequence[Tensors], opts: Any = None
    ) -> Work:
        """Scatters the root's list of tensors, of equal or different sizes."""
        outputs = _listed(outputs)
        memory, finish = room(moved(outputs[0]))
        if opts.rootRank != self._comm.rank:
            return self._call(
                outputs, finish, opts, "scatter", None, memory, "sum", opts.rootRank, ()
            )
        with self._refused_by_root("scatter"):
            parts = [moved(tensor) for tensor in inputs[0]]
            self._one_each(parts, "scatter", "input")
            return self._call(
                outputs, finish, opts,
                "scatter", flat(parts), memory, "sum", opts.rootRank, sizes_of(parts),
            )  # fmt: skip

    @_heard
    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Any = None) -> Work:
        """Sends the r-th tensor of a list to rank r, and receives another list. Sizes may
        differ."""
        parts = [moved(tensor) for tensor in inputs]
        target = [moved(tensor) for tensor in outputs]
        self._one_each(parts, "all_to_all", "input")
        self._one_each(target, "all_to_all", "output")
        memory, finish = flat_room(target)
        return self._call(
            list(outputs), finish, opts,
            "alltoall", flat(parts), memory, "sum", 0, sizes_of(parts), sizes_of(target),
        )  # fmt: skip

    @_heard
    def all_to_all_single(
        self, output: Tensor, input: Tensor, output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None, opts: Any = None,
    ) -> Work:  # fmt: skip
        """Like alltoall, on parts of one tensor. Splits are lengths along the first dimension;
        without them parts are equal."""
        sent = self._counts(input, input_splits, "input")
        received = self._counts(output, output_splits, "output")
        memory, finish = room(moved(output))
        source = held(moved(input))
        # Some ranks may give splits and others none: all use the form with counts.
        return self._call(
            [output], finish, opts,
            "alltoall", source, memory, "sum", 0,
            _scaled(sent, source, input), _scaled(received, memory, output),
        )  # fmt: skip

    def barrier(self, opts: Any = None, timeout: Any = None) -> Work:
        limit = getattr(opts, "timeout", None)
        knobs = self._knobs
        if limit is not None and limit > timedelta(0):
            knobs = calls.knobs(timeout_ms=max(1, round(limit.total_seconds() * 1e3)))
        start = self._comm.start
        return self._work(start("barrier", None, None, "sum", 0, None, None, knobs, None), [])

    # The names that torch used before 2.13.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    allreduce_sparse = allreduce

    def start_coalescing(self, device: torch.device | None = None) -> None:
        self._coalesced = []

    def end_coalescing(self, device: torch.device | None = None) -> Work:
        works, self._coalesced = self._coalesced or [], None
        return CallWork(Works(works), [tensor for work in works for tensor in work.result()])

    # A group is asked by these names, a backend by those.
    _start_coalescing, _end_coalescing = start_coalescing, end_coalescing

    def _call(
        self, tensors: list[Tensor], finish: Finish, opts: Any,
        name: str, input: Tensor | None, output: Tensor | None, op: str = "sum", root: int = 0,
        counts: Sequence[int] | None = None, received: Sequence[int] | None = None,
    ) -> Work:  # fmt: skip
        """Starts a collective, or runs it if torch waits at once."""
        memory = input if output is None else output
        on_device = memory is not None and not memory.is_cpu  # streams wait, and never the host
        if on_device or getattr(opts, "asyncOp", True) or self._coalesced is not None:
            return self._work(
                self._begin(name, input, output, op, root, counts, received), tensors, finish
            )
        try:
            self._comm.run(name, input, output, op, root, counts, received, self._knobs)
        except (RefusalError, UsageError):  # before it was made
            raise
        except BaseException:
            self._made += 1
            raise
        self._made += 1
        return CallWork(None, tensors, finish)

    def _begin(self, name, input, output, op="sum", root=0, counts=None, received=None):
        request = self._comm.start(
            name, input, output, op, root, counts, received, self._knobs, None
        )
        self._made += 1
        return request

    def _work(
        self, request: Any, tensors: list[Tensor], finish: Finish = None, source: int = -1
    ) -> Work:
        kind = DeviceWork if is_on_device(request) else CallWork
        work = kind(request, tensors, finish, source)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _together(self, works: list[Work], tensors: Tensors) -> Work:
        return self._work(Works(works), list(tensors))

    @contextlib.contextmanager
    def _refused_by_root(self, call: str) -> Iterator[None]:
        """Tells the other ranks of an error in an argument that only the root has. They have begun
        the call, so the group is broken. Errors of all ranks come earlier, and break nothing.
        """
        try:
            yield
        except Exception as error:
            if not self._comm.broken:
                self._comm._core.abort(
                    f"does not make its call {call}, of which it is the root; it was refused: "
                    f"{error}")
            raise

    def _one_each(self, tensors: Tensors, call: str, side: str) -> None:
        if len(tensors) != self._comm.size:
            raise UsageError(
                f"{call}: {len(tensors)} {side} tensors for {self._comm.size} ranks; there must "
                "be one for each."
            )

    def _counts(self, tensor: Tensor, splits: Sequence[int] | None, side: str) -> list[int]:
        """Splits as lengths along the first dimension of `tensor`, checked."""
        rows, ranks = (tensor.shape[0] if tensor.dim() else 1), self._comm.size
        if not splits:
            if rows % ranks:
                raise UsageError(
                    f"all_to_all_single: the {side} has {rows} rows, which {ranks} ranks cannot "
                    f"share evenly; pass {side}_split_sizes."
                )
            return [rows // ranks] * ranks
        if len(splits) != ranks or sum(splits) != rows or min(splits) < 0:
            raise UsageError(
                f"all_to_all_single: {side}_split_sizes are {list(splits)}; there must be "
                f"{ranks}, not negative, and their sum {rows}."
            )
        return list(splits)


def _listed(tensors: Tensors | Tensor) -> list[Tensor]:
    return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)


def _op(opts: Any) -> str:
    """The operation in options, or passed itself; SUM for None."""
    return "sum" if opts is None else op_of(getattr(opts, "reduceOp", opts))


def _scaled(splits: list[int], memory: Tensor, tensor: Tensor) -> list[int]:
    """Converts counts of rows of `tensor` to counts of elements of `memory`."""
    rows = tensor.shape[0] if tensor.dim() else 1
    row = memory.numel() // rows if rows else 0
    return [count * row for count in splits]
