"""Checks the arguments of each collective: one function each, for all ways of calling it.

Each returns (arguments of the core, result): the core takes collective, input, output, op, root,
counts and received counts; the result is what the call returns when it is complete.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from paceline import _core
from paceline.buffers import Buffer, empty_like, joined, piece, shape_of
from paceline.errors import UsageError

Counts = Sequence[int]
CoreCall = tuple[str, Buffer, Buffer, str, int, Counts | None, Counts | None]
Call = tuple[CoreCall, Any]


class Knobs(NamedTuple):
    """The options of a call in the order of the core."""

    algorithm: str | None = None
    segments: int | str | None = None
    window: int | None = None
    radix: int | None = None
    blocks: int | None = None
    tag: str | int | None = None
    priority: int | None = None
    timeout_ms: int | None = None


# Counts of ranks that do not know those of a gather or scatter: "they differ".
_UNKNOWN: Counts = ()


def allreduce(comm, x: Buffer, out: Buffer = None, op: str = "sum") -> Call:
    out = x if out is None else out
    return ("allreduce", x, out, op, 0, None, None), out


def reduce(comm, x: Buffer, out: Buffer = None, op: str = "sum", root: int = 0) -> Call:
    out = (x if out is None else out) if comm.rank == root else None
    return ("reduce", x, out, op, root, None, None), out


def broadcast(comm, x: Buffer, root: int = 0) -> Call:
    return ("broadcast", None, x, "sum", root, None, None), x


def reduce_scatter(
    comm, x: Buffer, out: Buffer = None, op: str = "sum", counts: Counts | None = None
) -> Call:
    if out is None:
        out = piece(x, comm.size, comm.rank, counts, "reduce_scatter")
    return ("reduce_scatter", x, out, op, 0, counts, None), out


def allgather(comm, x: Buffer, out: Buffer = None, counts: Counts | None = None) -> Call:
    if out is None:
        out = joined(x, comm.size, counts, "allgather")
    return ("allgather", x, out, "sum", 0, counts, None), out


def alltoall(comm, x: Buffer, out: Buffer = None) -> Call:
    if out is None:
        out = empty_like(x, shape_of(x), "alltoall")
    return ("alltoall", x, out, "sum", 0, None, None), out


def alltoallv(
    comm, x: Buffer, counts: Counts, counts_received: Counts, out: Buffer = None
) -> Call:
    if out is None:
        out = joined(x, comm.size, counts_received, "alltoall")
    return ("alltoall", x, out, "sum", 0, counts, counts_received), out


def gather(comm, x: Buffer, out: Buffer = None, root: int = 0) -> Call:
    if comm.rank != root:
        out = None
    elif out is None:
        out = joined(x, comm.size, None, "gather")
    return ("gather", x, out, "sum", root, None, None), out


def gatherv(
    comm, x: Buffer, counts: Counts | None = None, out: Buffer = None, root: int = 0
) -> Call:
    if comm.rank != root:
        counts, out = _UNKNOWN, None
    elif counts is None:
        raise UsageError("gatherv: the root needs counts; pass the number of elements per rank.")
    elif out is None:
        out = joined(x, comm.size, counts, "gather")
    return ("gather", x, out, "sum", root, counts, None), out


def scatter(comm, x: Buffer = None, out: Buffer = None, root: int = 0) -> Call:
    if comm.rank != root:
        x = None
    elif out is None and x is not None:
        out = piece(x, comm.size, comm.rank, None, "scatter")
    return ("scatter", x, out, "sum", root, None, None), out


def scatterv(
    comm, x: Buffer = None, counts: Counts | None = None, out: Buffer = None, root: int = 0
) -> Call:
    if comm.rank != root:
        x, counts = None, _UNKNOWN
    elif counts is None:
        raise UsageError("scatterv: the root needs counts; pass the number of elements per rank.")
    elif out is None and x is not None:
        out = piece(x, comm.size, comm.rank, counts, "scatter")
    return ("scatter", x, out, "sum", root, counts, None), out


def barrier(comm) -> Call:
    return ("barrier", None, None, "sum", 0, None, None), None


BY_NAME: dict[str, Callable[..., Call]] = {
    function.__name__: function
    for function in (
        allreduce, reduce, broadcast, reduce_scatter, allgather, alltoall, alltoallv, gather,
        gatherv, scatter, scatterv, barrier,
    )
}  # fmt: skip


def named(collective: str) -> Callable[..., Call]:
    """The function of a collective. Raises UsageError, which lists all, for an unknown name."""
    try:
        return BY_NAME[collective]
    except (KeyError, TypeError):
        known = ", ".join(BY_NAME)
        near = _core.did_you_mean(str(collective), known)
        raise UsageError(
            f"collective {collective!r} is not known; use one of: {known}.{near}") from None


def knobs(
    algorithm: str | None = None,
    segments: int | str | None = None,
    window: int | None = None,
    radix: int | None = None,
    blocks: int | None = None,
    timeout_ms: int | None = None,
    tag: str | int | None = None,
    priority: int | None = None,
) -> Knobs:
    """The keywords of a collective as Knobs. The signature lists all of them."""
    return Knobs(algorithm, segments, window, radix, blocks, tag, priority, timeout_ms)


# Options that cut a call, and all keywords that decide how a World is made (ir/cut.hpp).
ASKED = ("segments", "window", "radix", "blocks")
CUT = (*ASKED, "in_step", "whole_tail")
OPTIONS = ("algorithm", *ASKED, "timeout_ms", "tag", "priority")
