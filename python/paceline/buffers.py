"""Makes arrays for results, of the library and type of the input arrays."""

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy

from paceline.errors import ResourceError, UsageError

# A numpy array, a torch tensor on the CPU or a CUDA device, or an object with the buffer protocol,
# DLPack or __cuda_array_interface__: contiguous, of a floating type (16 to 64 bits, bfloat16), an
# integer type or bool.
Buffer = Any


def shape_of(x: Buffer) -> tuple[int, ...]:
    """The shape of `x`, or that of the numpy array over it if it has none."""
    shape = getattr(x, "shape", None)
    return tuple(numpy.asarray(x).shape) if shape is None else tuple(shape)


def empty_like(x: Buffer, shape: Sequence[int], call: str) -> Buffer:
    """An uninitialised array of `shape` with the type of `x`.

    A torch tensor for a torch tensor, a numpy array for everything else. Raises ResourceError,
    which names `call`, if memory runs out.
    """
    try:
        new_empty = getattr(x, "new_empty", None)
        if new_empty is not None:
            return new_empty(shape)
        if hasattr(x, "__cuda_array_interface__"):
            raise UsageError(f"{call}: Paceline does not make results for a {type(x).__name__}; "
                             "pass `out`, on the same device.")
        return numpy.empty(shape, numpy.asarray(x).dtype)
    except (MemoryError, ValueError, OverflowError, RuntimeError) as error:
        raise ResourceError(
            f"{call}: there is no memory for a result of shape {tuple(shape)} ({error}). "
            "Send less at a time."
        ) from error


def host_like(x: Buffer, shape: Sequence[int], call: str) -> Buffer:
    """Like empty_like, but always on the host."""
    if getattr(x, "is_cpu", True) and not hasattr(x, "__cuda_array_interface__"):
        return empty_like(x, shape, call)
    if hasattr(x, "new_empty") and hasattr(x, "is_cpu"):
        return x.new_empty(shape, device="cpu")
    return numpy.empty(shape, x.dtype)


def shared_empty(comm: Any, shape: int | Sequence[int], dtype: Any) -> Buffer:
    """Implements Communicator.empty(). A torch tensor for a torch dtype, else a numpy array."""
    shape = (shape,) if hasattr(shape, "__index__") else tuple(shape)
    lengths = [operator.index(n) for n in shape]
    if any(n < 0 for n in lengths):
        raise UsageError(f"empty: shape {shape} has a negative length.")
    torch_dtype = type(dtype).__module__ == "torch"
    kind = dtype if torch_dtype else numpy.dtype(dtype)
    memory, _, _ = comm.allocate(math.prod(lengths) * kind.itemsize)
    if not torch_dtype:
        return memory.view(kind).reshape(lengths)
    import torch

    return torch.from_numpy(memory).view(kind).reshape(lengths)


def joined(x: Buffer, ranks: int, counts: Sequence[int] | None, call: str) -> Buffer:
    """An array for pieces like `x` of all ranks, concatenated along the first dimension.

    With `counts` the array is flat and has sum(counts) elements.
    """
    if counts is not None:
        return empty_like(x, (sum(_wholes(counts)),), call)
    shape = shape_of(x)
    return empty_like(x, (ranks * shape[0], *shape[1:]) if shape else (ranks,), call)


def piece(x: Buffer, ranks: int, rank: int, counts: Sequence[int] | None, call: str) -> Buffer:
    """An array for this rank's piece of `x`, which is cut along the first dimension.

    With `counts` the array is flat and has counts[rank] elements.
    """
    if counts is not None:
        return empty_like(x, (sum(_wholes(counts)[rank : rank + 1]),), call)
    shape = shape_of(x)
    if shape and shape[0] % ranks == 0:
        return empty_like(x, (shape[0] // ranks, *shape[1:]), call)
    return empty_like(x, (numpy.prod(shape, dtype=int) // ranks,), call)


def _wholes(counts: Any) -> list[int]:
    """`counts`, with 0 for what is no count, and [] for no sequence: the core reports the error."""
    if not isinstance(counts, Iterable):
        return []
    return [operator.index(n) if _is_count(n) else 0 for n in counts]


def _is_count(number: Any) -> bool:
    return hasattr(number, "__index__") and 0 <= number < 1 << 48
