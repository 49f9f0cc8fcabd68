"""Inputs whose results are known exactly, so that a wrong one cannot hide in rounding.

Every rank and every element has its own number (as far as the type can tell them apart), since
with equal inputs a swapped block would go unseen.
"""

from functools import reduce

import numpy as np

# Bound of the exact whole numbers of a type, and the numpy type that holds its bytes.
EXACT = {
    "float64": (2**53, np.float64), "float32": (2**24, np.float32), "float16": (2**11, np.float16),
    "bfloat16": (2**8, np.uint16),
    "int8": (2**7, np.int8), "uint8": (2**8, np.uint8), "int16": (2**15, np.int16),
    "uint16": (2**16, np.uint16), "int32": (2**31, np.int32), "uint32": (2**32, np.uint32),
    "int64": (2**53, np.int64), "uint64": (2**53, np.uint64), "bool": (2, np.bool_),
}  # fmt: skip

COMBINE = {
    "sum": np.add, "average": np.add, "product": np.multiply, "min": np.minimum,
    "max": np.maximum, "bit_and": np.bitwise_and, "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}  # fmt: skip


def range_of(dtype, op, ranks):
    """Number of different inputs that keeps every result exact."""
    exact = EXACT[dtype][0]
    if op == "product":
        return 2  # ones and twos
    return max(2, min(exact // max(ranks, 1), 65521))


def whole_numbers(rank, count, spread, op):
    """The numbers of one rank as int64; they depend on rank and index without a visible pattern."""
    index = np.arange(count, dtype=np.int64)
    numbers = (index * 7919 + (index >> 9) * 31 + (rank + 1) * 104729) % spread
    return numbers + 1 if op == "product" else numbers


def stored(numbers, dtype):
    """Whole numbers in the bytes of `dtype`; bfloat16 is the upper half of float32."""
    if dtype == "bfloat16":
        return (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return numbers.astype(EXACT[dtype][1])


def inputs(rank, count, dtype, op, ranks):
    """The input of `rank`: `count` elements, in the bytes of `dtype`."""
    return stored(whole_numbers(rank, count, range_of(dtype, op, ranks), op), dtype)


def combined(count, dtype, op, ranks):
    """The result of all ranks' inputs, in the bytes of `dtype`."""
    spread = range_of(dtype, op, ranks)
    # On bools numpy's sum is "or" and its product "and", as they are in the library.
    exact = np.bool_ if dtype == "bool" else np.int64
    total = reduce(
        COMBINE[op], (whole_numbers(rank, count, spread, op).astype(exact) for rank in range(ranks))
    )
    if op != "average":
        return stored(total, dtype)
    if np.issubdtype(EXACT[dtype][1], np.integer) and dtype != "bfloat16":
        return stored(np.trunc(total / ranks), dtype)
    # One division at the end, in the width in which the library divides.
    wide = np.float64 if dtype == "float64" else np.float32
    return rounded(total.astype(wide) / wide(ranks), dtype)


def rounded(values, dtype):
    """float32 values in `dtype`, rounded to nearest even; bfloat16 by hand."""
    if dtype != "bfloat16":
        return values.astype(EXACT[dtype][1])
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
