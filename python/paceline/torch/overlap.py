"""Exchanges gradients while the backward pass goes on, through a KVStore."""

import weakref
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from paceline import kvstore
from paceline.engine import Engine
from paceline.errors import UsageError
from paceline.torch.backward import (
    Backward,
    Groups,
    modules_of,
    spread_buffers,
    spread_from_root,
    trained,
)
from paceline.torch.memory import group_of
from paceline.torch.registry import register, remove_former, unregister
from paceline.torch.updates import Updates


class Overlap:
    """Averages the gradients of a model over the ranks in each backward pass. See overlap()."""

    def __init__(
        self, model: nn.Module, mode: str, group: dist.ProcessGroup | None,
        optimizer: torch.optim.Optimizer | None, clip_norm: float | None, broadcast_buffers: bool,
        options: Any,
    ):  # fmt: skip
        self._comm = comm = group_of(group, "overlap")._comm.dup()
        self._broadcasts = broadcast_buffers
        self._model, self._named = weakref.ref(model), trained(model, "overlap")
        self._parameters = [parameter for _, parameter in self._named]
        self._known = {id(parameter) for parameter in self._parameters}
        self._groups: list[list[int]] = []  # of parameters that are pushed together
        self._updates: Updates | None = None
        _check_clip(optimizer, clip_norm)
        remove_former(model, self._named, "overlap()")
        if optimizer is not None:
            self._own_engine = None if "engine" in options else Engine()
            options = {"engine": self._own_engine, **options}
            self._updates = Updates(model, self._named, optimizer, options["engine"], clip_norm)
        spread_from_root(comm, model)
        self.store = kvstore.create(mode, comm, op="average", **options)
        names = [name for name, _ in self._named]
        self.store.init(names, [parameter.detach() for _, parameter in self._named])
        self._variables = [self.store._variable(name) for name in names]
        self._find_buffers()
        self._backward = Backward(comm.dup(), self._named, self._push, self._pull, self._begin,
                                  Groups(self._put, self._push_group))
        register(model, self, self._named, "overlap()")

    def no_sync(self) -> AbstractContextManager[None]:
        """A context in which backward passes only add up gradients on this rank.

        The first backward pass after it exchanges the sum.
        """
        return self._backward.paused()

    def wait(self) -> None:
        """With an optimizer: returns when all layers are updated. Raises errors of the updates.

        Forward passes wait by themselves, and so do state_dict() and load_state_dict() of the model
        and of the optimizer. Call wait() before other code that reads or writes weights or the
        state of the optimizer: copy.deepcopy(), torch.save() of a whole model,
        AveragedModel.update_parameters(), model.to(), model.apply(), a loop over parameters().
        """
        if self._updates is not None:
            self._updates.wait()

    def remove(self) -> None:
        """Removes the hooks from the model. Gradients are not exchanged any more."""
        self._backward.remove()
        unregister(self._model(), self)
        if self._updates is not None:
            self._updates.remove()
        self.store.close()
        if self._updates is not None and self._own_engine is not None:
            self._own_engine.close()

    def _push(self, i: int) -> None:
        name, parameter = self._named[i]
        if parameter.grad is None:
            raise UsageError(f"overlap: the gradient of {name} disappeared before it was "
                             "exchanged: another hook has taken it, such as one that updates in "
                             "the backward pass. Pass optimizer= to overlap instead.")
        self.store.push(name, parameter.grad)
        if self._lies_in_the_store(i):
            parameter.grad = None

    def _put(self, i: int, grad: torch.Tensor) -> None:
        """Copies a gradient into the store at once, while it is in the processor's cache. The next
        layer's gradient reuses its memory."""
        if grad.data_ptr() != self._places[i]:
            buffer = self._buffers[i]
            buffer.copy_(grad.detach() if grad.requires_grad else grad)
            self._parameters[i].grad = buffer

    def _lies_in_the_store(self, i: int) -> bool:
        """True if the gradient lies in the store: once pushed it becomes the sum, even if the pass
        fails."""
        return self._parameters[i].grad.data_ptr() == self._places[i]

    def _find_buffers(self) -> None:
        """Finds the buffers in which gradients are summed: others, once auto has made a plan."""
        self._buffers = [self.store.buffer(name) for name, _ in self._named]
        self._places = [buffer.data_ptr() for buffer in self._buffers]

    def _push_group(self, g: int) -> None:
        for i in self._groups[g]:
            self._parameters[i].grad = None
        self.store._push_bucket(g)

    def _pull(self, used: list[bool] | None) -> None:
        model = self._model()
        if self._updates is not None and used is not None:
            self.store._flush()
        if self._broadcasts and used is not None and model is not None:
            spread_buffers(self._comm, modules_of(model))
        if self._updates is not None and used is not None:
            self._updates.start(self._buffers, self._variables, used)
            return
        self.store.wait()
        if used is not None:  # the averages of a pass that has failed are dropped
            for parameter, buffer in zip(self._parameters, self._buffers, strict=True):
                parameter.grad = buffer

    def _begin(self) -> list[list[int]]:
        known = self._known
        model = self._model()  # gone, where only its parameters are left
        if model is not None and not all(
                id(parameter) in known for module in modules_of(model)
                for parameter in module._parameters.values()
                if parameter is not None and parameter.requires_grad):
            for name, parameter in model.named_parameters():
                if not parameter.requires_grad or id(parameter) in known:
                    continue
                raise UsageError(f"overlap: the model trains {name}, which it did not when overlap "
                                 "was called; it would differ between ranks. Call remove(), then "
                                 "overlap again, after layers are replaced or unfrozen.")
        self.wait()
        if not self._groups:
            names = [name for name, _ in self._named]
            self.store._note_ready(dict(zip(names, self._backward.ready_s, strict=True)))
        groups = self.store._begin_round()
        if groups is not self._groups:
            self._groups = groups
            self._find_buffers()
        if self._updates is not None:
            self.store.wait()  # for the gradients that no update has waited for
        return groups


def _check_clip(optimizer: torch.optim.Optimizer | None, clip_norm: float | None) -> None:
    if clip_norm is None:
        return
    if optimizer is None:
        raise UsageError("overlap: clip_norm goes with optimizer=, which updates before you could "
                         "clip; without it call torch.nn.utils.clip_grad_norm_.")
    if isinstance(clip_norm, bool) or not isinstance(clip_norm, int | float) or not clip_norm > 0:
        raise UsageError(f"overlap: clip_norm is {clip_norm!r}; it is a positive number.")


def overlap(
    model: nn.Module,
    mode: str = "auto",
    group: dist.ProcessGroup | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    clip_norm: float | None = None,
    broadcast_buffers: bool = True,
    **options: Any,
) -> Overlap:
    """Averages the gradients of `model` over the ranks of `group` (None: the default group).

        paceline.torch.overlap(model)         # in the place of DistributedDataParallel(model)

    Collective. All ranks begin with rank 0's parameters and buffers. The model itself stays as it
    is. The returned Overlap exchanges its gradients as long as the model lives, until remove(), or
    until the next overlap() or BSP() of the model. Copies of the model, by copy.deepcopy or
    torch.save, exchange nothing.

    Each gradient is pushed into a KVStore of type `mode` as soon as it is complete. `options` are
    those of paceline.kvstore.create(). backward() returns when all averages are there: optimizers,
    gradient clipping and gradient accumulation work as usual. The order of exchange is the order in
    which rank 0's gradients became ready in the first pass.

    A gradient then lies in the store, on one node in memory that all its ranks reach. It is not
    copied back. With zero_grad(set_to_none=False) the next pass adds to it in the store, and is not
    copied in either. The next pass changes the gradient: clone() it to keep it.

    With `optimizer`, backward() returns earlier. Each layer is updated in the background as soon as
    its averages are there, and the next forward pass of a layer waits for this update alone.
    Gradients are None from then on; step() and zero_grad() are not needed, and do nothing.
    `clip_norm` clips the gradients to this norm over all layers; each update then waits for all
    gradients. no_sync() accumulates gradients, also without `optimizer`. A change of the learning
    rate takes effect with the next backward pass. state_dict() and load_state_dict() wait for the
    updates. Call wait() before other code that reads or writes weights without a forward pass;
    Overlap.wait() has examples.

    All ranks train the same parameters. If a pass on one rank leaves a parameter out, its gradient
    counts as zero there. If all ranks leave it out, it has no gradient. If a pass raises on all
    ranks, all may skip it.

    Buffers, such as the statistics of BatchNorm, are rank 0's at the beginning and after each
    backward pass, so that one rank may evaluate alone; DistributedDataParallel sets them before
    each forward pass. With broadcast_buffers=False each rank keeps its own, and nothing is sent.

    Raises UsageError for an unknown mode, a group of another backend, an optimizer with other
    parameters, and parameters that another model's overlap() or BSP exchanges. Raises RefusalError
    for sparse gradients, parameters that are not contiguous or not on the CPU, and an optimizer
    that cannot update one layer alone.
    """
    return Overlap(model, mode, group, optimizer, clip_norm, broadcast_buffers, options)
