"""DDP's gradient buckets in memory that all ranks of a node reach.

DDP makes its buckets itself, and again after the first iteration. A communication hook gets each
bucket before its sum, in the same order on all ranks. It moves the storage of a new bucket in
place, so that the views that DDP holds move with it.
"""

import warnings
import weakref
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from paceline.errors import UsageError
from paceline.torch.group import PacelineGroup
from paceline.torch.memory import group_of
from paceline.torch.tensors import reduced
from paceline.torch.work import Work

_LEAST_BYTES = 4096  # shorter ones are sent in one message, and would take a page on every rank


class SharedBuckets:
    """The buckets of one model. Made by share_buckets()."""

    def __init__(self, model: DistributedDataParallel, group: PacelineGroup):
        # The model owns this by way of C++, where the garbage collector sees no cycle.
        self._model = weakref.ref(model)
        self._group = group
        self._shares = group.size() > 1
        self._held: dict[int, torch.UntypedStorage] = {}  # by number of the bucket

    @property
    def nbytes(self) -> int:
        """Number of bytes of buckets that are in shared memory now, on this rank."""
        return sum(storage.nbytes() for storage in self._held.values())

    def __len__(self) -> int:
        """Number of buckets that are in shared memory now."""
        return len(self._held)

    def __reduce__(self) -> Any:
        """Makes None of a copy: the reducer of a copied model has no hooks."""
        return type(None), ()

    def average(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        """The communication hook: returns a future of the bucket's tensor, averaged over the
        ranks."""
        buffer = bucket.buffer()
        if self._has_inputs_everywhere():
            self._move(bucket.index(), buffer.untyped_storage())
        else:
            self._give_back()
        op = "average"
        if buffer.dtype == torch.float16:  # whose sums soon are larger than the type can hold
            buffer.div_(self._group.size())
            op = "sum"
        memory = reduced(buffer, op)
        request = self._group._begin("allreduce", memory, memory, op)
        return _BucketWork(request, [buffer]).get_future()

    def _has_inputs_everywhere(self) -> bool:
        """False under model.join(): ranks without inputs pass other tensors there."""
        model = self._model()
        return model is None or not model._join_config.enable

    def _move(self, index: int, storage: torch.UntypedStorage) -> None:
        """Moves the storage of a new bucket into shared memory. Collective for a new bucket."""
        held = self._held.get(index)
        # A held storage cannot be freed, so no other has its address.
        if held is not None and held._cdata == storage._cdata:
            return
        if held is not None:  # DDP has made all of them anew
            self._held.clear()
        if not self._shares or storage.nbytes() < _LEAST_BYTES:
            return
        memory, shared, trouble = self._group._comm.allocate(storage.nbytes())
        if shared:
            _swap(storage, torch.from_numpy(memory).untyped_storage())
            self._held[index] = storage
            return
        self._shares = False  # on all ranks
        if trouble:
            warnings.warn(
                f"paceline: DDP's buckets stay in private memory on all ranks, since {trouble}",
                stacklevel=2,
            )

    def _give_back(self) -> None:
        for storage in self._held.values():
            _swap(storage, torch.UntypedStorage(storage.nbytes()))
        self._held.clear()


class _BucketWork(Work):
    """A Work for DDP: its future is of a tensor, not of a list."""

    def _value(self, future: torch.futures.Future) -> Any:
        return super()._value(future)[0]


def _swap(storage: torch.UntypedStorage, other: torch.UntypedStorage) -> None:
    """Moves the contents of `storage` into the memory of `other`, with all tensors over it."""
    other.copy_(storage)
    storage._swap_data_ptr_(other)


def _shared_buckets(state: SharedBuckets, bucket: dist.GradBucket):
    return state.average(bucket)


def share_buckets(model: DistributedDataParallel) -> SharedBuckets:
    """Keeps the gradient buckets of a DDP model in memory that all ranks of its node reach.

        model = DistributedDataParallel(network)
        paceline.torch.share_buckets(model)

    Ranks then sum the gradients in place, and send nothing. Call it on all ranks, before the first
    backward pass. Each rank needs as many bytes of shared memory (PACELINE_SHM_DIR) as it has bytes
    of gradients. If a rank lacks them, that rank warns, and all ranks keep private buckets. Buckets
    also stay private, without a warning, if the group spans several nodes, and under model.join().

    Gradients are averages over the ranks. On two ranks they have the bits of plain DDP. On more
    ranks the order of the sum may differ, and the sum is divided once, at the end.

    Registers the communication hook of the model. Returns a SharedBuckets, which has the number of
    shared buckets (len) and their bytes (nbytes). Raises UsageError if the model has a
    communication hook already, is no DistributedDataParallel, or belongs to a group of another
    backend.
    """
    if not isinstance(model, DistributedDataParallel):
        raise UsageError(
            f"share_buckets: the model is a {type(model).__name__}; it must be a "
            "torch.nn.parallel.DistributedDataParallel."
        )
    buckets = SharedBuckets(model, group_of(model.process_group, "share_buckets"))
    try:
        model.register_comm_hook(buckets, _shared_buckets)
    except RuntimeError as error:
        raise UsageError(
            "share_buckets: the model has a communication hook already, and there can be one "
            f"only. Call share_buckets once, right after DistributedDataParallel(). ({error})"
        ) from error
    return buckets
