"""Tensors as contiguous memory of a type that the core knows; copies only where that needs one."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from paceline.errors import RefusalError

KNOWN = frozenset({
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool,
    torch.int8, torch.int16, torch.int32, torch.int64,
    torch.uint8, torch.uint16, torch.uint32, torch.uint64,
})  # fmt: skip
_COMPLEX_OPS = ("sum", "average")

# By the number of torch's ReduceOp.
_OPS = ("sum", "average", "product", "min", "max", "bit_and", "bit_or", "bit_xor")

Finish = Callable[[], object] | None


def op_of(reduce_op: Any) -> str:
    """The name of a torch ReduceOp, or of the RedOpType in it; RefusalError for PREMUL_SUM."""
    number = getattr(reduce_op, "op", reduce_op).value
    if number < len(_OPS):
        return _OPS[number]
    raise RefusalError(
        f"{getattr(reduce_op, 'op', reduce_op)} is not supported; scale the tensor, then use SUM."
    )


def refuse_sparse(tensor: torch.Tensor, what: str) -> None:
    """RefusalError unless all elements lie in memory: ranks' sparse ones would differ in length."""
    if tensor.layout is not torch.strided:
        raise RefusalError(
            f"{what} of a {tensor.layout} tensor is not supported; tensors must be dense. Pass "
            "tensor.to_dense()."
        )


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` with elements that can be moved: itself, or a view of its bytes or real numbers."""
    refuse_sparse(tensor, "a message")
    if tensor.dtype in KNOWN:
        return tensor
    if tensor.is_complex():
        return torch.view_as_real(tensor)
    flat = tensor.contiguous().reshape(-1)
    if tensor.numel() and flat.data_ptr() != tensor.data_ptr():
        raise RefusalError(f"a {tensor.dtype} tensor must be contiguous to be moved.")
    return flat.view(torch.uint8)


def reduced(tensor: torch.Tensor, op: str) -> torch.Tensor:
    """`tensor` with elements that `op` can combine; RefusalError if there is no such view."""
    refuse_sparse(tensor, op)
    if tensor.dtype in KNOWN:
        return tensor
    if tensor.is_complex() and op in _COMPLEX_OPS:
        return torch.view_as_real(tensor)
    raise RefusalError(
        f"{op} of {tensor.dtype} is not supported; convert it to a type of at least 16 bits."
        if not tensor.is_complex()
        else f"{op} of complex numbers is not supported; use SUM or AVG."
    )


def dense(tensor: torch.Tensor) -> tuple[torch.Tensor, Finish]:
    """Contiguous memory that holds `tensor`, and what brings a result in it back, if anything."""
    if tensor.is_contiguous():
        return tensor, None
    copy = tensor.contiguous()
    return copy, lambda: tensor.copy_(copy)


def room(tensor: torch.Tensor) -> tuple[torch.Tensor, Finish]:
    """Like dense, where what `tensor` holds now does not matter."""
    if tensor.is_contiguous():
        return tensor, None
    copy = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    return copy, lambda: tensor.copy_(copy)


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """A copy of all elements, one tensor behind the other."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def flat_room(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Finish]:
    """Memory as long as all tensors together, and what copies it into them."""
    sizes = sizes_of(tensors)
    memory = torch.empty(sum(sizes), dtype=tensors[0].dtype, device=tensors[0].device)

    def scatter() -> None:
        for tensor, part in zip(tensors, memory.split(sizes), strict=True):
            tensor.copy_(part.view(tensor.shape))

    return memory, scatter


def sizes_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """Elements of each."""
    return [tensor.numel() for tensor in tensors]


def both(first: Finish, second: Finish) -> Finish:
    """One after the other."""
    if first is None or second is None:
        return first or second

    def finish() -> None:
        first()
        second()

    return finish
