"""BSP-SGD: bulk synchronous training by broadcast, reduce and allreduce, with chosen algorithms.

Source: L. Wang, W. Wu, G. Bosilca, R. Vuduc, Z. Xu: Efficient communications in training large
scale neural networks, arXiv 1611.04255, section 3.3, Algorithms 1, 2 and 3.
"""

import contextlib
import weakref
from typing import Any

import numpy
import torch
import torch.distributed as dist
from torch import nn

from paceline import _core
from paceline.errors import UsageError
from paceline.torch.backward import (
    Backward,
    modules_of,
    spread_buffers,
    spread_from_root,
    trained,
)
from paceline.torch.hooks import Hook
from paceline.torch.memory import group_of
from paceline.torch.registry import register, remove_former, unregister

SEGMENT_BYTES = 64 << 10  # of the linear pipeline, as published

# Algorithms of each method for broadcast, reduce and allreduce; True: cut into segments.
METHODS: dict[str, tuple[str, str, str, bool]] = {
    "linear_pipeline": ("chain", "chain", "chain", True),
    "minimum_spanning_tree": ("binomial", "binomial", "binomial", False),
    "bidirectional_exchange": ("scatter_allgather", "scatter_gather", "rabenseifner", False),
}
ROOT = 0


class BSP:
    """Trains `model` on all ranks of `group` (None: the default group), with an optimizer on each.

        bsp = paceline.torch.bsp.BSP(model, optimizer, algorithm=1, method="linear_pipeline")
        for images, labels in batches:                       # of this rank
            optimizer.zero_grad()
            loss_of(model(images), labels).backward()
            bsp.step()                                       # in place of optimizer.step()
        bsp.synchronise()

    algorithm 1: layer by layer. While the forward pass of a layer runs, the weights of the next
    layer are broadcast. While the backward pass runs, complete gradients are reduced. Rank 0's
    optimizer updates. Layers are broadcast in the order in which the model lists them.
    algorithm 2: gradients are reduced to rank 0, which updates; then weights are broadcast.
    algorithm 3: gradients are allreduced, and every rank updates. Weights are broadcast every
    `every` steps. With every=0 they never are: Paceline gives all ranks the same bits, so weights
    stay equal. With overlap=True each allreduce begins during the backward pass.

    method: linear_pipeline (chains in segments of 64 KiB), minimum_spanning_tree (binomial trees),
    bidirectional_exchange (scatter and allgather, Rabenseifner), None (chosen by size), or a dict
    of algorithms: {"broadcast": "ring", ...}; `paceline explain` lists them.

    backward() averages the gradients with algorithm 1 (on rank 0) and with overlapped algorithm 3
    (on all ranks): clipping before step() works on averages. Otherwise step() averages them:
    clipping before step() works on each rank's own gradients. A module that is no nn.Sequential may
    use any module below it, so its forward pass waits for the weights of all of them.

    Buffers, such as the statistics of BatchNorm, are rank 0's at the beginning and after each step;
    with algorithm 1 after each backward pass. With broadcast_buffers=False each rank keeps its own.

    A BSP exchanges the gradients of the model until remove(), or until the next BSP() or overlap()
    of the model, which calls remove() of this one.

    Collective. Raises UsageError for unknown arguments, and for parameters that another model's BSP
    or overlap() exchanges. Raises RefusalError for sparse gradients, and for parameters that are
    not contiguous or not on the CPU.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        algorithm: int = 3,
        method: str | dict[str, str] | None = None,
        every: int = 5,
        group: dist.ProcessGroup | None = None,
        broadcast_buffers: bool = True,
        overlap: bool = False,
    ):
        if algorithm not in (1, 2, 3):
            raise UsageError(f"bsp: there is no algorithm {algorithm!r}; there are 1, 2 and 3.")
        if not isinstance(every, int) or every < 0:
            raise UsageError(f"bsp: every is {every!r}; it is a number of steps, or 0 for never.")
        if overlap and algorithm != 3:
            raise UsageError(f"bsp: overlap goes with algorithm 3, and this is {algorithm}: 1 "
                             "always overlaps, and 2 never does.")
        self._options = _options_of(method)
        self._comm = group_of(group, "bsp")._comm.dup()
        self._optimizer, self._algorithm, self._every = optimizer, algorithm, every
        self._model, self._broadcasts = weakref.ref(model), broadcast_buffers
        self._named = trained(model, "bsp")
        self._steps = 0
        self._is_removed = False
        remove_former(model, self._named, "BSP")
        spread_from_root(self._comm, model)
        self._layerwise = _Layerwise(self, model) if algorithm == 1 else None
        self._behind = self._layerwise or (_Behind(self) if overlap else None)
        register(model, self, self._named, "BSP")

    def step(self) -> None:
        """Exchanges the gradients that backward() has not exchanged, and updates the weights."""
        if self._is_removed:
            raise UsageError("bsp: step() after remove(), or after the next BSP() or overlap() "
                             "of the model. Call step() of the BSP that was made last.")
        self._steps += 1
        if self._layerwise is not None:
            self._layerwise.update()
            return
        if self._behind is not None:
            self._behind.take()
        else:
            self._combine(self._used())
        self.spread_buffers()
        if self._algorithm == 3 or self._comm.rank == ROOT:
            self._optimizer.step()
        if self._algorithm == 2 or (self._every and self._steps % self._every == 0):
            self.synchronise()

    def spread_buffers(self) -> None:
        """Gives all ranks rank 0's buffers, unless broadcast_buffers is False. Collective."""
        model = self._model()
        if self._broadcasts and model is not None:
            spread_buffers(self._comm, modules_of(model))

    def _used(self) -> list[bool]:
        """For each parameter, True if any rank has a gradient of it."""
        flags = numpy.array([parameter.grad is not None for _, parameter in self._named], "uint8")
        self._comm.allreduce(flags, op="max", tag="gradients that there are")
        return [bool(flag) for flag in flags]

    def _combine(self, used: list[bool]) -> None:
        """Algorithms 2 and 3: every gradient, one after the other."""
        for (name, parameter), is_used in zip(self._named, used, strict=True):
            if not is_used:
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            grad = parameter.grad
            if self._algorithm == 3:
                self._comm.allreduce(grad, op="average", **self._how("allreduce", grad, name))
            else:
                self._comm.reduce(
                    grad, op="average", root=ROOT, **self._how("reduce", grad, name)
                )

    def exchange(self) -> None:
        """Makes the calls of a step alone, one after the other, for measurements. Collective.

        Combines the gradients, and with algorithms 1 and 2 broadcasts the weights. Updates nothing.
        """
        self._combine([True] * len(self._named))
        if self._algorithm != 3:
            self.synchronise()

    def synchronise(self) -> None:
        """Gives all ranks rank 0's weights. Collective."""
        for name, parameter in self._named:
            weights = parameter.detach()
            self._comm.broadcast(weights, ROOT, **self._how("broadcast", weights, name))

    def no_sync(self) -> contextlib.AbstractContextManager[None]:
        """A context in which backward passes only add up gradients on this rank.

        The last backward pass of a step is outside of it.
        """
        return self._behind.paused() if self._behind else contextlib.nullcontext()

    def remove(self) -> None:
        """Completes the calls under way, and removes the hooks from the model.

        Gradients are not exchanged any more, and step() raises UsageError.
        """
        self._is_removed = True
        unregister(self._model(), self)
        if self._behind is not None:
            self._behind.remove()

    def _how(self, collective: str, x: torch.Tensor, name: str) -> dict[str, Any]:
        """The options of a call on `x`."""
        algorithm, is_cut = self._options.get(collective, (None, False))
        options: dict[str, Any] = {"tag": name}
        if algorithm is not None:
            options["algorithm"] = algorithm
            options["segments"] = max(1, -(-x.nbytes // SEGMENT_BYTES)) if is_cut else 1
        return options


class _Behind:
    """Calls that begin behind the backward pass, as gradients become ready: algorithm 3's."""

    def __init__(self, bsp: BSP):
        self._bsp = bsp
        self._calls: list[_core.Request] = []
        self._is_reduced = False
        self._backward = Backward(bsp._comm.dup(), bsp._named, self._start, self._finish,
                                  self._check_first)

    def paused(self) -> contextlib.AbstractContextManager[None]:
        return self._backward.paused()

    def remove(self) -> None:
        self._backward.remove()
        self._wait()

    def take(self) -> None:
        """Completes the exchange of the pass, before its gradients are used."""
        if not self._is_reduced:
            raise UsageError("bsp: step() without a backward pass, which reduces the gradients.")
        self._is_reduced = False

    def _start(self, i: int) -> None:
        name, parameter = self._bsp._named[i]
        grad = parameter.grad
        self._calls.append(self._bsp._comm.iallreduce(
            grad, op="average", **self._bsp._how("allreduce", grad, name)
        ))  # fmt: skip

    def _finish(self, used: list[bool] | None) -> None:
        self._wait()  # backward() returns complete gradients, ready to be clipped or unscaled
        self._is_reduced = used is not None

    def _wait(self) -> None:
        for request in self._calls:
            request.wait()
        self._calls.clear()

    def _check_first(self) -> None:
        if self._is_reduced:
            raise UsageError(
                f"bsp: a second backward pass before step(); algorithm {self._bsp._algorithm} has "
                "reduced the gradients of the first. Put all but the last into no_sync().")


class _Layerwise(_Behind):
    """Algorithm 1: broadcasts ahead of the forward pass, reduces behind the backward pass."""

    def __init__(self, bsp: BSP, model: nn.Module):
        super().__init__(bsp)
        self._handles: list[Any] = []
        wanted = {id(parameter): name for name, parameter in bsp._named}
        self._layers = []  # of (name, parameter)
        for module in model.modules():
            own = [(wanted.pop(id(p)), p) for p in module.parameters(recurse=False)
                   if id(p) in wanted]
            if own:
                self._layers.append(own)
        self._watch(model)
        self._broadcasts: list[list[_core.Request]] = []

    def update(self) -> None:
        self.take()
        if self._bsp._comm.rank == ROOT:
            self._bsp._optimizer.step()
        self._end(len(self._layers))
        self._broadcasts.clear()

    def remove(self) -> None:
        super().remove()
        for handle in self._handles:
            handle.remove()
        self._end(len(self._layers))

    def _watch(self, model: nn.Module) -> None:
        """Sets the layers for which each module waits: all below it, which it may use without
        calling them, and all before it. nn.Sequential only calls its parts."""
        layer_of = {id(p): i for i, own in enumerate(self._layers) for _, p in own}
        for module in model.modules():
            below = [layer_of[id(p)] for p in module.parameters() if id(p) in layer_of]
            only_calls = type(module).forward is nn.Sequential.forward
            if below and not only_calls:
                self._handles.append(module.register_forward_pre_hook(self._before(max(below))))

    def _before(self, layer: int) -> Hook:
        def hook(module: nn.Module, _: Any) -> None:
            # Training is judged by the whole model, whatever the mode of this part.
            if (self._bsp._model() or module).training and torch.is_grad_enabled():
                self._begin(layer + 2)
            self._end(layer + 1)

        return Hook(hook)

    def _begin(self, layers: int) -> None:
        """Starts the broadcasts of the first `layers` layers that have not begun."""
        for own in self._layers[len(self._broadcasts) : layers]:
            requests = []
            for name, parameter in own:
                weights = parameter.detach()
                requests.append(self._bsp._comm.ibroadcast(
                    weights, ROOT, **self._bsp._how("broadcast", weights, name)
                ))  # fmt: skip
            self._broadcasts.append(requests)

    def _end(self, layers: int) -> None:
        for requests in self._broadcasts[:layers]:
            for request in requests:
                request.wait()
            requests.clear()

    def _start(self, i: int) -> None:
        # Layers that this rank's forward pass has left out may have run on others: all broadcasts
        # come before all reduces, on every rank.
        self._begin(len(self._layers))
        name, parameter = self._bsp._named[i]
        grad = parameter.grad
        self._calls.append(self._bsp._comm.ireduce(
            grad, op="average", root=ROOT, **self._bsp._how("reduce", grad, name)
        ))  # fmt: skip

    def _finish(self, used: list[bool] | None) -> None:
        super()._finish(used)
        if used is not None:
            self._bsp.spread_buffers()


def _options_of(method: str | dict[str, str] | None) -> dict[str, tuple[str, bool]]:
    """(algorithm, True if it is cut) of each collective."""
    names = ("broadcast", "reduce", "allreduce")
    if method is None:
        return {}
    if isinstance(method, dict):
        unknown = sorted(set(method) - set(names))
        if unknown:
            raise UsageError(f"bsp: method names {unknown[0]!r}; it may name {', '.join(names)}.")
        return {name: (algorithm, False) for name, algorithm in method.items()}
    if method not in METHODS:
        raise UsageError(f"bsp: there is no method {method!r}; methods are {', '.join(METHODS)}, "
                         "None, or a dict of algorithms.")
    *algorithms, is_cut = METHODS[method]
    return {name: (algorithm, is_cut) for name, algorithm in zip(names, algorithms, strict=True)}
