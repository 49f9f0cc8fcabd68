"""Finds out when gradients are complete, in an order that is the same on all ranks."""

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
import torch
from torch import nn

from paceline.communicator import Communicator
from paceline.errors import RefusalError, UsageError


class _End:
    """Autograd calls it at the end of a pass. If the pass fails, autograd drops it uncalled."""

    def __init__(self, end: Callable[[], None]):
        self._end = end

    def __call__(self) -> None:
        self._end()


class Groups:
    """Groups of parameters whose gradients are launched together. Calls put(i, gradient) for each
    gradient when it is complete, and launch(g) when all gradients of group g are."""

    def __init__(
        self, put: Callable[[int, torch.Tensor], None] = lambda i, grad: None,
        launch: Callable[[int], None] = lambda g: None,
    ):  # fmt: skip
        self._put, self._launch = put, launch
        self._groups: list[list[int]] = []
        self._group_of: list[int] = []  # by parameter
        self._left: list[int] = []  # of each group, gradients that are not there yet
        self.exist = False  # True if this pass has some

    def begin(self, groups: list[list[int]]) -> None:
        """Begins a pass. Without groups its gradients are launched one by one."""
        if groups is not self._groups:
            self._groups, self.exist = groups, bool(groups)
            group_of = {i: g for g, group in enumerate(groups) for i in group}
            self._group_of = [group_of[i] for i in range(len(group_of))]
        self._left = [len(group) for group in groups]

    def take(self, i: int, grad: torch.Tensor) -> None:
        """Takes a complete gradient."""
        self._put(i, grad)
        g = self._group_of[i]
        self._left[g] -= 1
        if not self._left[g]:
            self._launch(g)


class Backward:
    """Watches the backward passes of some parameters.

    Calls begin() at the first gradient of a pass, launch(i) for each complete gradient, and then
    finish(used). Parameters are numbered as they are passed; all ranks pass the same ones. The
    order of launches is the order in which rank 0's gradients became ready in the first pass. In
    that pass every rank launches all gradients at the end. Later, each gradient is launched when
    it and those before it are complete. A gradient that a pass leaves out is zero. used[i] is True
    if any rank has a gradient of parameter i; if none has, the parameter has no gradient after the
    pass.

    begin() may return groups of parameters, the same on all ranks. Then `grouped` takes the
    gradients in any order, in place of launch().

    A failed pass is completed with zeros when the next pass begins, and finish(None) drops the
    result. So each pass makes the same calls on all ranks. If it failed on all ranks, they go on;
    if it failed on some, the others raise UsageError.

    The watch lasts as long as the caller holds it. Parameters do not hold it, since Python could
    never collect that cycle through torch.
    """

    def __init__(
        self,
        comm: Communicator,
        parameters: Sequence[tuple[str, nn.Parameter]],
        launch: Callable[[int], None],
        finish: Callable[[list[bool] | None], None],
        begin: Callable[[], list[list[int]] | None] = lambda: None,
        grouped: "Groups | None" = None,
    ):
        self._comm = comm
        self._named = list(parameters)
        self._launch, self._finish, self._begin = launch, finish, begin
        self._order: list[int] | None = None  # as agreed
        self._ready: list[int] = []  # in this pass, as they came
        # When each came, by the performance counter, in the last pass that was not grouped.
        self.ready_s = [0.0] * len(self._named)
        self._is_ready = [False] * len(self._named)
        self._undefined: set[int] = set()  # autograd came by in this pass, and had no gradient
        self._launched = 0
        self._grouped = Groups() if grouped is None else grouped
        self._under_way: weakref.ref[_End] | None = None  # dead: that pass has failed
        self._off = 0
        self._handles = [
            parameter.register_post_accumulate_grad_hook(self._hook_of(i))
            for i, (_, parameter) in enumerate(self._named)
        ]

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """A context in which backward passes are not watched: gradients add up on this rank."""
        self._off += 1
        try:
            yield
        finally:
            self._off -= 1

    def remove(self) -> None:
        """Ends the watch."""
        for handle in self._handles:
            handle.remove()

    def _hook_of(self, i: int) -> Callable[[torch.Tensor], None]:
        weak = weakref.ref(self)

        def hook(parameter: torch.Tensor) -> None:
            watch = weak()
            if watch is not None and not watch._off:
                watch._take(i, parameter)

        return hook

    def _take(self, i: int, parameter: torch.Tensor) -> None:
        """The gradient is complete."""
        under_way = self._under_way
        if under_way is None or under_way() is None:
            self._begin_pass()
        if self._is_ready[i]:
            raise RefusalError(
                f"gradient of {self._named[i][0]}: it came twice in one backward pass, as with a "
                "layer that is used twice under reentrant checkpointing; its first part may "
                "have been sent. Use torch.utils.checkpoint with use_reentrant=False.")
        grad = parameter.grad
        if grad is None:
            self._undefined.add(i)
        if grad is None or grad.is_sparse or not grad.is_contiguous():
            grad = self._prepared(i, parameter)
        self._is_ready[i] = True
        if self._grouped.exist:
            self._grouped.take(i, grad)
            return
        self._note_ready(i)
        self._launch_those_whose_turn_it_is()

    def _begin_pass(self) -> None:
        if self._under_way is not None:
            self._complete_failed()
        self._grouped.begin(self._begin() or [])
        end = _End(self._end)
        self._under_way = weakref.ref(end)
        engine: Any = torch.autograd.Variable._execution_engine
        engine.queue_callback(end)

    def _prepared(self, i: int, parameter: torch.Tensor) -> torch.Tensor:
        """The parameter's gradient, in the form in which it is exchanged."""
        grad = parameter.grad
        if grad is None:
            parameter.grad = torch.zeros_like(parameter)
        elif grad.is_sparse:
            raise RefusalError(f"gradient of {self._named[i][0]}: it is sparse; only dense ones "
                               "are exchanged. Make it dense, as Embedding(sparse=False) does.")
        elif not grad.is_contiguous():
            parameter.grad = grad.contiguous()
        return parameter.grad

    def _note_ready(self, i: int) -> None:
        self._ready.append(i)
        self.ready_s[i] = time.perf_counter()

    def _launch_those_whose_turn_it_is(self) -> None:
        order = self._order
        while order is not None and self._launched < len(order):
            i = order[self._launched]
            if not self._is_ready[i]:
                return
            self._launched += 1
            self._launch(i)

    def _end(self) -> None:
        """The pass is over."""
        try:
            used = [is_ready or parameter.grad is not None
                    for is_ready, (_, parameter) in zip(self._is_ready, self._named, strict=True)]
            for i in self._undefined:
                used[i] = False
            failed = self._exchange(used, False)
            if failed:
                raise UsageError("a backward pass has failed on another rank and not on this one; "
                                 "its gradients are of this rank alone. Skip it on all ranks.")
            for (_, parameter), is_used in zip(self._named, used, strict=True):
                if not is_used:
                    parameter.grad = None
        finally:
            self._reset()

    def _complete_failed(self) -> None:
        """Makes the calls that the failed pass has not made, so that all ranks make the same."""
        # Copies, since they may lie where the zeros come.
        kept = [None if parameter.grad is None else parameter.grad.clone()
                for _, parameter in self._named]
        for _, parameter in self._named:
            parameter.grad = None
        try:
            self._exchange([False] * len(kept), True)
        finally:
            for (_, parameter), grad in zip(self._named, kept, strict=True):
                parameter.grad = grad
            self._reset()

    def _exchange(self, used: list[bool], has_failed: bool) -> bool:
        """Launches the remaining gradients, and finishes. Sets used[i] to True if any rank has used
        parameter i. Returns True if the pass has failed on any rank."""
        for i, was_ready in enumerate(self._is_ready):
            if was_ready and not has_failed:
                continue
            grad = self._prepared(i, self._named[i][1])
            if was_ready:
                continue
            self._is_ready[i] = True
            if self._grouped.exist:
                self._grouped.take(i, grad)
            else:
                self._note_ready(i)
        if self._order is None:
            order = numpy.array(self._ready, dtype="int64")
            self._order = self._comm.broadcast(order, tag="order of gradients").tolist()
        if not self._grouped.exist:
            self._launch_those_whose_turn_it_is()
        flags = numpy.array([*used, has_failed], dtype="uint8")
        self._comm.allreduce(flags, op="max", tag="gradients that there are")
        *used[:], failed = map(bool, flags.tolist())
        self._finish(None if failed else used)
        return failed

    def _reset(self) -> None:
        self._is_ready = [False] * len(self._named)
        self._undefined.clear()
        self._ready.clear()
        self._launched = 0
        self._under_way = None


def trained(model: nn.Module, call: str) -> list[tuple[str, nn.Parameter]]:
    """The parameters that need gradients, with their names; RefusalError for unsupported ones."""
    found = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    for name, parameter in found:
        if parameter.device.type != "cpu":
            raise RefusalError(f"{call}: parameter {name} is on {parameter.device}; it must be on "
                               "the CPU.")
        if not parameter.is_contiguous():
            raise RefusalError(f"{call}: parameter {name} is not contiguous; it is exchanged in "
                               "place. Make it contiguous first: p.data = p.data.contiguous().")
    return found


def spread_from_root(comm: Communicator, model: nn.Module) -> None:
    """Gives all ranks rank 0's parameters and buffers."""
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            whole = tensor.detach().contiguous()
            comm.broadcast(whole, tag=name)
            if whole.data_ptr() != tensor.data_ptr():
                tensor.copy_(whole)


def modules_of(model: nn.Module) -> list[nn.Module]:
    """Each module once, in a fraction of the time of model.modules()."""
    found, seen = [model], {id(model)}
    for module in found:
        for child in module._modules.values():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                found.append(child)
    return found


def spread_buffers(comm: Communicator, modules: list[nn.Module]) -> None:
    """Gives all ranks rank 0's buffers: one message for each type of element."""
    buffers_of = {id(buffer): buffer for module in modules for buffer in module._buffers.values()
                  if buffer is not None}
    alike: dict[torch.dtype, list[torch.Tensor]] = {}
    for buffer in buffers_of.values():
        alike.setdefault(buffer.dtype, []).append(buffer)
    with torch.no_grad():
        for type, buffers in alike.items():
            together = torch.cat([buffer.reshape(-1) for buffer in buffers])
            comm.broadcast(together, tag=f"buffers of {type}")
            parts = together.split([buffer.numel() for buffer in buffers])
            for buffer, part in zip(buffers, parts, strict=True):
                # An unchanged buffer is left alone: a graph that is kept may have saved it.
                if not torch.equal(buffer.reshape(-1), part):
                    buffer.copy_(part.view(buffer.shape))
