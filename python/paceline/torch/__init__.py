"""torch.distributed over Paceline: `dist.init_process_group("paceline")`.

With Paceline installed, `import torch` registers the backend, through the entry point
torch.backends. If that is switched off, `import paceline.torch` registers it.

Differences from other backends:
- Tensors are on the CPU or on CUDA devices: init_process_group("cpu:paceline,cuda:paceline").
  Tensors that are not contiguous are copied, in and out. On CUDA devices the current stream waits
  for a call, and the host does not (paceline.torch.streams). As with NCCL, all ranks begin the
  calls of several groups on one device in the same order; otherwise calls may time out.
- A send to the rank itself raises RefusalError. A receive must be as long as its message. If a rank
  receives a later message first, it keeps the earlier one until it asks for it.
- ReduceOp.PREMUL_SUM and sums of float8 raise RefusalError. Collectives without a sum take all
  types.

PACELINE_REPLACE=gloo (or mpi) serves the CPU tensors of unchanged scripts that name that backend.

empty() makes tensors in memory that all ranks of a node reach: collectives on them send no data.
share_buckets() keeps the gradient buckets of DistributedDataParallel in such memory.

overlap() replaces DistributedDataParallel: it exchanges gradients through a KVStore during the
backward pass. paceline.torch.bsp trains by broadcast, reduce and allreduce with chosen algorithms.
"""

import importlib
import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.torch.buckets import SharedBuckets, share_buckets
    from paceline.torch.memory import empty
    from paceline.torch.overlap import Overlap, overlap

# Loaded on first use: a program that does not use the backend does not pay for the core.
_LAZY = {
    "Overlap": "paceline.torch.overlap",
    "SharedBuckets": "paceline.torch.buckets",
    "empty": "paceline.torch.memory",
    "overlap": "paceline.torch.overlap",
    "share_buckets": "paceline.torch.buckets",
}

__all__ = ["Overlap", "SharedBuckets", "autoload", "empty", "overlap", "share_buckets"]


def autoload() -> None:
    """Registers the backend; `import torch` calls it. Warns on errors, and never raises."""
    try:
        _register()
    except Exception as error:
        warnings.warn(
            "paceline: the backend 'paceline' of torch.distributed could not be registered, or "
            f"could not replace another backend ({error!r}).",
            stacklevel=2,
        )


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'paceline.torch' has no attribute '{name}'")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def _register() -> None:
    import torch
    import torch.distributed as dist

    if dist.is_available() and "PACELINE" not in dist.Backend._plugins:
        # Does not ask if there is a device: that would initialise CUDA, and forbid a fork.
        devices = ["cpu", "cuda"] if torch.backends.cuda.is_built() else ["cpu"]
        dist.Backend.register_backend("paceline", _create, extended_api=True, devices=devices)
        from paceline.torch import limits, rendezvous

        limits.install()
        rendezvous.install()
    if dist.is_available() and os.environ.get("PACELINE_REPLACE"):
        # Loads the core.
        from paceline.torch import replace

        replace.install()


def _create(options, backend_options):
    # Loads the core.
    from paceline.torch.group import create

    return create(options, backend_options)


# Last, so that autoload() exists when `import torch`, in here, comes back for it.
autoload()
