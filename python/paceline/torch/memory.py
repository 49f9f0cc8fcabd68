"""Tensors in memory that all ranks of a node reach."""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from paceline.buffers import shared_empty
from paceline.errors import UsageError
from paceline.torch.group import PacelineGroup
from paceline.torch.minors import part_of


def group_of(group: dist.ProcessGroup | None, call: str) -> PacelineGroup:
    """`group`, or torch's default group for None; UsageError, which names `call`, for others'."""
    asked = dist.group.WORLD if group is None else group
    found = part_of(asked)
    if not isinstance(found, PacelineGroup):
        if asked is None:
            what = "there is no process group yet"
        elif found is None:
            what = "the group has no backend for the CPU"
        else:
            what = f"the group is of the backend {found.name()}"
        raise UsageError(
            f'{call}: {what}; it must be one of dist.init_process_group("paceline"), or of '
            'dist.new_group(backend="paceline").'
        )
    return found


def empty(
    shape: int | Sequence[int],
    dtype: torch.dtype | None = None,
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """A zeroed tensor of `shape` on every rank of `group`, in memory that all of them reach.

    Collective: all ranks of `group` (None: the default group) call it with the same shape and
    dtype (None: torch's default). all_reduce, broadcast, all_gather_into_tensor,
    reduce_scatter_tensor and all_to_all_single whose tensors all are, or lie in, such tensors, at
    the same place on every rank, read and write them directly: no data is sent. They may be called
    on any group whose ranks all belong to `group`. Either all ranks of a call pass such a tensor,
    or none. Across nodes, or where memory cannot be shared, the tensor is one like any other.

    The memory lives as long as a tensor or a view of it does, on each rank for itself. Peers write
    into it until their call has ended, also when it fails here.

    Raises UsageError for a negative length, or a group of another backend; ResourceError.
    """
    comm = group_of(group, "empty")._comm
    return shared_empty(comm, shape, torch.get_default_dtype() if dtype is None else dtype)
