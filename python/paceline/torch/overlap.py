"""Exchanges gradients while the backward pass goes on, through a KVStore."""

from contextlib import AbstractContextManager
from typing import Any

import torch.distributed as dist
from torch import nn

from paceline import kvstore
from paceline.torch.backward import Backward, spread_from_root, trained
from paceline.torch.memory import group_of


class Overlap:
    """A model whose gradients are averaged over the ranks in each backward pass. See overlap()."""

    def __init__(self, model: nn.Module, mode: str, group: dist.ProcessGroup | None, options: Any):
        comm = group_of(group, "overlap")._comm.dup()
        self._named = trained(model, "overlap")
        spread_from_root(comm, model)
        self.store = kvstore.create(mode, comm, op="average", **options)
        names = [name for name, _ in self._named]
        self.store.init(names, [parameter.detach() for _, parameter in self._named])
        self._backward = Backward(comm, self._named, self._push, self._pull)

    def no_sync(self) -> AbstractContextManager[None]:
        """Backward passes in here add up on this rank; the first one after it exchanges the sum."""
        return self._backward.paused()

    def remove(self) -> None:
        """Leaves the model as it was; gradients stay on their ranks from now on."""
        self._backward.remove()
        self.store.close()

    def _push(self, i: int) -> None:
        name, parameter = self._named[i]
        self.store.push(name, parameter.grad)

    def _pull(self) -> None:
        self.store.pull(
            [name for name, _ in self._named], [parameter.grad for _, parameter in self._named]
        )
        self.store.wait()


def overlap(
    model: nn.Module,
    mode: str = "auto",
    group: dist.ProcessGroup | None = None,
    **options: Any,
) -> Overlap:
    """Averages the gradients of `model` over the ranks of `group` (None: the default group).

        paceline.torch.overlap(model)         # in the place of DistributedDataParallel(model)

    Collective. The model itself stays as it is; all ranks begin with rank 0's parameters and
    buffers. From then on each gradient is pushed into a KVStore of type `mode` (paceline.kvstore,
    which takes `options`) as soon as it is complete, and backward() returns when all averages are
    there: optimisers, gradient clipping and accumulation work as without it.

    All ranks train the same parameters. One that a rank's pass leaves out counts as zero there.
    The order of exchange is that in which rank 0's gradients became ready in the first pass.
    Raises UsageError for another mode, or a group of another backend; RefusalError for sparse
    gradients, parameters that are not contiguous, or devices.
    """
    return Overlap(model, mode, group, options)
