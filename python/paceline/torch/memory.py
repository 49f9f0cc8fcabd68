"""Tensors in memory that all ranks of a node reach."""

from collections.abc import Sequence

import torch
import torch.distributed as dist

from paceline.buffers import shared_empty
from paceline.errors import UsageError
from paceline.torch.group import PacelineGroup
from paceline.torch.minors import part_of


def group_of(group: dist.ProcessGroup | None, call: str) -> PacelineGroup:
    """`group`, or torch's default group for None. Raises UsageError, which names `call`, for a
    group of another backend."""
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
    dtype (None: torch's default).

    all_reduce, broadcast, all_gather_into_tensor, reduce_scatter_tensor and all_to_all_single work
    directly on such tensors, and send no data, if all tensors of the call lie in them, at the same
    place on every rank. The group of the call may be any whose ranks all belong to `group`. In one
    call all ranks pass such tensors, or none does. Across nodes, and where memory cannot be shared,
    these are ordinary tensors.

    Each rank keeps its memory as long as a tensor or a view of it lives. Peers may write into it
    until their call has ended, even if the call fails on this rank.

    Raises UsageError for a negative length and for a group of another backend, and ResourceError if
    there is no memory.
    """
    comm = group_of(group, "empty")._comm
    return shared_empty(comm, shape, torch.get_default_dtype() if dtype is None else dtype)
