"""Tensors as contiguous memory of a type that the core knows; copies only if necessary."""

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

# Names by the number of torch's ReduceOp.
_OPS = ("sum", "average", "product", "min", "max", "bit_and", "bit_or", "bit_xor")

Finish = Callable[[], object] | None


def op_of(reduce_op: Any) -> str:
    """The name of a torch ReduceOp or RedOpType. Raises RefusalError for PREMUL_SUM."""
    number = getattr(reduce_op, "op", reduce_op).value
    if number < len(_OPS):
        return _OPS[number]
    raise RefusalError(
        f"{getattr(reduce_op, 'op', reduce_op)} is not supported; scale the tensor, then use SUM."
    )


def refuse_sparse(tensor: torch.Tensor, what: str) -> None:
    """Raises RefusalError unless the tensor's memory holds its elements. Sparse tensors of ranks
    differ in length, a conjugate view has other numbers than its memory, and a subclass may have
    any."""
    if tensor.layout is not torch.strided:
        raise RefusalError(
            f"{what} of a {tensor.layout} tensor is not supported; tensors must be dense. Pass "
            "tensor.to_dense()."
        )
    if tensor.is_nested:
        raise RefusalError(f"{what} of a nested tensor is not supported; pass its parts, or "
                           "tensor.to_padded_tensor().")
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        raise RefusalError(f"{what} of a {type(tensor).__name__} is not supported: its numbers are "
                           "not in its own memory. Pass the tensors that it consists of, such "
                           "as tensor.to_local() of a DTensor.")
    if tensor.is_conj():
        raise RefusalError(f"{what} of a conjugate view is not supported; pass "
                           "tensor.resolve_conj().")


def moved(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, or a view of its bytes or real numbers, with elements that collectives can move."""
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
    """`tensor`, or a view, with elements that `op` can combine. Raises RefusalError if there is
    none."""
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


def source(tensor: torch.Tensor) -> torch.Tensor:
    """Contiguous memory with the elements of `tensor`; a lazy view is resolved."""
    return tensor.resolve_neg().contiguous()


def dense(tensor: torch.Tensor) -> tuple[torch.Tensor, Finish]:
    """Contiguous memory with the elements of `tensor`, and a function that copies a result back, or
    None."""
    if _lies_as_it_says(tensor):
        return tensor, None
    copy = source(tensor)
    return copy, lambda: put(tensor, copy)


def room(tensor: torch.Tensor) -> tuple[torch.Tensor, Finish]:
    """Like dense, without the contents of `tensor`."""
    if _lies_as_it_says(tensor):
        return tensor, None
    copy = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    return copy, lambda: put(tensor, copy)


def _lies_as_it_says(tensor: torch.Tensor) -> bool:
    _refuse_overlap(tensor)
    return tensor.is_contiguous() and not tensor.is_neg()


def _refuse_overlap(tensor: torch.Tensor) -> None:
    """Raises RefusalError, before anything is sent, if elements share memory: no result could be
    copied back."""
    if _overlaps(tensor):
        raise RefusalError(
            f"a tensor of shape {tuple(tensor.shape)} and strides {tensor.stride()} cannot take a "
            "result: several elements are one place in memory. Pass tensor.clone()."
        )


def _overlaps(tensor: torch.Tensor) -> bool:
    if tensor.is_contiguous() or not tensor.numel():
        return False
    steps = sorted((step, n) for step, n in zip(tensor.stride(), tensor.shape, strict=True)
                   if n > 1)
    reach = 0
    for step, n in steps:
        if step <= reach or step == 0:
            break
        reach += step * (n - 1)
    else:
        return False
    places = torch.zeros((), dtype=torch.int64)
    for step, n in steps:
        places = places[..., None] + torch.arange(n) * step
    return places.unique().numel() < tensor.numel()


def put(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Copies a result back, without autograd, on any thread."""
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        tensor.copy_(values)


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """A copy of all elements, tensor after tensor."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def flat_room(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Finish]:
    """Memory as long as all tensors together, and a function that copies it into them."""
    for tensor in tensors:
        _refuse_overlap(tensor)
    sizes = sizes_of(tensors)
    memory = torch.empty(sum(sizes), dtype=tensors[0].dtype, device=tensors[0].device)

    def scatter() -> None:
        for tensor, part in zip(tensors, memory.split(sizes), strict=True):
            put(tensor, part.view(tensor.shape))

    return memory, scatter


def sizes_of(tensors: Sequence[torch.Tensor]) -> list[int]:
    """The number of elements of each tensor."""
    return [tensor.numel() for tensor in tensors]


def both(first: Finish, second: Finish) -> Finish:
    """A function that calls both, one after the other."""
    if first is None or second is None:
        return first or second

    def finish() -> None:
        first()
        second()

    return finish
