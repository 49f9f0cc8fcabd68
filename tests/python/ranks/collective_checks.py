"""Checks of every collective: types, libraries, operations, roots, lengths, in place or not."""

import numpy
from support import (
    INTEGERS,
    NUMPY_TYPES,
    TYPES,
    checks_in,
    counts_for,
    data,
    libraries,
    make,
    run_checks,
    same,
    values_of,
)

from paceline import RefusalError, _core

EXACT = {
    "sum": numpy.add, "product": numpy.multiply, "min": numpy.minimum, "max": numpy.maximum,
    "bit_and": numpy.bitwise_and, "bit_or": numpy.bitwise_or, "bit_xor": numpy.bitwise_xor,
    "logical_and": numpy.logical_and, "logical_or": numpy.logical_or,
    "logical_xor": numpy.logical_xor,
}  # fmt: skip


def combined(ranks, count, type, op="sum"):
    """What combining data() of all ranks gives, computed by numpy in the type itself."""
    rows = [data(r, count, type) for r in range(ranks)]
    if type == "bfloat16":  # numpy has none; the values are exact in both
        type = "float32"
    with numpy.errstate(over="ignore"):
        total = rows[0].astype(type)
        for row in rows[1:]:
            total = EXACT[op](total, row.astype(type)).astype(type)
    return total.astype("float64")


def uneven(ranks, shift=0):
    """Lengths of pieces that differ, some of them 0."""
    return [(3 * (r + shift)) % 5 for r in range(ranks)]


def offset(counts, rank):
    return sum(counts[:rank])


def pieces(comm, type="float32", count=7):
    """Rank r's vector of one piece per rank, as every rank can know it."""
    return [data(r, count * comm.size, type).reshape(comm.size, count) for r in range(comm.size)]


def check_allreduce_types(comm):
    for library in libraries():
        for type in TYPES:
            x = make(library, data(comm.rank, 11, type), type)
            if x is not None:
                assert comm.allreduce(x) is x
                same(x, combined(comm.size, 11, type), (library, type))


def check_allreduce_ops(comm):
    for type in NUMPY_TYPES:
        for op in EXACT:
            x = make("numpy", data(comm.rank, 9, type), type)
            if _core.is_defined(op, type):
                if op == "product":  # 16-bit floats hold only so much
                    x = numpy.minimum(x, 2).astype(type)
                    rows = [numpy.minimum(data(r, 9, type), 2) for r in range(comm.size)]
                    expected = numpy.prod(rows, axis=0).astype(type).astype("float64")
                else:
                    expected = combined(comm.size, 9, type, op)
                same(comm.allreduce(x, op=op), expected, (type, op))


def check_allreduce_average(comm):
    x = data(comm.rank, 8)
    same(comm.allreduce(x, op="average"), combined(comm.size, 8, "float64") / comm.size)
    # Integers as NCCL does: the sum, which wraps, then a division that cuts towards zero.
    for type in INTEGERS:
        rows = [(data(r, 8, type) * (-1) ** numpy.arange(8) * 29).astype("int64").astype(type)
                for r in range(comm.size)]
        total = numpy.add.reduce(rows, dtype=type).astype(object)
        expected = [abs(n) // comm.size * (1 if n > 0 else -1) for n in total]
        same(comm.allreduce(rows[comm.rank].copy(), op="average"), expected, type)
        part = comm.reduce_scatter(numpy.tile(rows[comm.rank], comm.size), op="average")
        same(part, expected, type)


def check_allreduce_counts(comm):
    for count in (*counts_for(comm.size), 300_007):
        x = data(comm.rank, count, "int64").astype("int64")
        out = numpy.full(count, -1)
        assert comm.allreduce(x, out=out) is out
        same(out, combined(comm.size, count, "int64"), count)
        same(x, data(comm.rank, count, "int64"), "the input stays as it is")
        same(comm.allreduce(x), combined(comm.size, count, "int64"), count)


def plain(comm, collective, count, **options):
    """Runs a collective on pieces of `count` elements and compares what this rank gets."""
    p, me, root = comm.size, comm.rank, comm.size - 1
    x = data(me, count * p)
    total = combined(p, count * p, "float64")
    whole = numpy.concatenate([data(r, count * p) for r in range(p)])
    if collective == "barrier":
        return comm.barrier(**options)
    if collective in ("reduce", "broadcast", "gather"):
        options["root"] = root
    if collective == "scatter":
        out = numpy.empty(count)
        result = comm.scatter(x if me == root else None, out, root, **options)
    else:
        result = getattr(comm, collective)(x, **options)
    expected = {
        "allreduce": total, "reduce": total, "broadcast": data(root, count * p),
        "reduce_scatter": total[me * count :][:count], "allgather": whole, "gather": whole,
        "alltoall": whole.reshape(p, p, count)[:, me].reshape(-1),
        "scatter": data(root, count * p)[me * count :][:count],
    }[collective]  # fmt: skip
    if result is not None:
        same(result, expected, (collective, count, options))


def _takes(comm, collective, algorithm):
    """Whether these ranks can: some want a node that they share, or its leave to copy."""
    try:
        return bool(comm.explain(collective, numpy.zeros(4 * comm.size), algorithm=algorithm))
    except RefusalError:
        return False


def _share_a_node(comm):
    return _takes(comm, "allreduce", "one_shot")


def check_algorithms(comm):
    """Every algorithm of every collective, whole and in segments."""
    for row in _core.algorithms(comm.size):
        if row["access"] == "symmetric":  # on arrays of paceline.empty alone: see shared_checks
            continue
        pieces = ((None, None), (1, 1), (4, 2), (7, 3))
        if row["access"] == "staging":  # it takes blocks instead: see check_knobs
            pieces = pieces[: 2 if _share_a_node(comm) else 0]
        on_terms = row["access"] in ("single_copy", "nodes") or row["follows_arrival"]
        if on_terms and not _takes(comm, row["collective"], row["name"]):
            continue
        for segments, window in pieces:
            for count in (0, 1, 5, 1009):
                options = dict(algorithm=row["name"], segments=segments, window=window)
                plain(comm, row["collective"], count, **options)


def check_knobs(comm):
    """Every radix and number of blocks gives the same result, and is what explain() says."""
    for collective, algorithm, knob in (
        ("allreduce", "circulant", "radix"), ("allreduce", "recursive_multiplying", "radix"),
        ("alltoall", "bruck", "radix"), ("broadcast", "circulant", "blocks"),
        ("reduce", "circulant", "blocks"), ("allreduce", "dual_root", "blocks"),
        ("allreduce", "two_shot", "blocks"), ("reduce", "two_shot", "blocks"),
        ("reduce", "staged", "blocks"), ("broadcast", "staged", "blocks"),
        ("reduce_scatter", "staged", "blocks"), ("allgather", "staged", "blocks"),
        ("alltoall", "staged", "blocks"),
    ):  # fmt: skip
        if algorithm in ("two_shot", "staged") and not _share_a_node(comm):
            continue
        for value in (2, 3, 5):
            for count in (0, 1, 1009):
                plain(comm, collective, count, algorithm=algorithm, **{knob: value})
            x = numpy.ones(4 * comm.size)
            told = comm.explain(collective, x, algorithm=algorithm, **{knob: value})
            assert f"radix {value}" in told or f"{value} blocks" in told, told


def check_reduce(comm):
    for root in range(comm.size):
        x = data(comm.rank, 10)
        result = comm.reduce(x, root=root, op="max")
        expected = combined(comm.size, 10, "float64", "max")
        same(x, expected if comm.rank == root else data(comm.rank, 10))
        assert result is (x if comm.rank == root else None)
        out = numpy.empty(10)
        comm.reduce(data(comm.rank, 10), out, root=root)
        if comm.rank == root:
            same(out, combined(comm.size, 10, "float64"))


def check_broadcast(comm):
    for library in libraries():
        for type in TYPES:
            for root in range(comm.size):
                x = make(library, data(comm.rank, 9, type), type)
                if x is not None:
                    assert comm.broadcast(x, root) is x
                    same(x, data(root, 9, type), (library, type, root))
    for count in (*counts_for(comm.size), 200_003, (1 << 20) + 3):
        same(comm.broadcast(data(comm.rank, count)), data(0, count), count)
    fixed = data(0, 5)
    fixed.flags.writeable = comm.rank != 0  # the root's memory is only read
    same(comm.broadcast(fixed), data(0, 5))


def check_long_in_place(comm):
    """Where the choice may be another one than for few bytes; in place on some ranks only, too."""
    count = (1 << 19) // comm.size
    whole = numpy.concatenate([data(r, count * comm.size) for r in range(comm.size)])
    mine = whole.reshape(comm.size, comm.size, count)[:, comm.rank].reshape(-1)
    for alone in (False, True):
        x = data(comm.rank, count * comm.size)
        out = numpy.empty_like(x) if alone and comm.rank == 0 else x
        same(comm.alltoall(x, out), mine, ("alltoall", alone))
        x = data(comm.rank, count)
        out = numpy.empty_like(x) if alone and comm.rank == 0 else x
        same(comm.allreduce(x, out), combined(comm.size, count, "float64"), ("allreduce", alone))


def check_allgather(comm):
    for library in ("numpy", *[name for name in libraries() if name == "torch"]):
        for count in counts_for(comm.size):
            out = comm.allgather(make(library, data(comm.rank, count), "float64"))
            same(out, numpy.concatenate([data(r, count) for r in range(comm.size)]), count)
    whole = numpy.full((comm.size, 6), -1.0)
    whole[comm.rank] = data(comm.rank, 6)
    assert comm.allgather(whole[comm.rank], whole) is whole
    same(whole, numpy.concatenate([data(r, 6) for r in range(comm.size)]), "in place")
    assert comm.allgather(numpy.ones((2, 3))).shape == (2 * comm.size, 3)
    assert comm.allgather(numpy.float32(comm.rank)).tolist() == list(range(comm.size))
    counts = uneven(comm.size)
    out = comm.allgather(data(comm.rank, counts[comm.rank]), counts=counts)
    same(out, numpy.concatenate([data(r, counts[r]) for r in range(comm.size)]), "uneven")


def check_reduce_scatter(comm):
    for count in counts_for(comm.size):
        out = comm.reduce_scatter(data(comm.rank, count * comm.size))
        total = combined(comm.size, count * comm.size, "float64")
        same(out, total[comm.rank * count :][:count], count)
    x = data(comm.rank, 5 * comm.size)
    comm.reduce_scatter(x, x[5 * comm.rank :][:5], op="min")
    total = combined(comm.size, 5 * comm.size, "float64", "min")
    same(x[5 * comm.rank :][:5], total[5 * comm.rank :][:5], "in place")
    assert comm.reduce_scatter(numpy.ones((2 * comm.size, 3))).shape == (2, 3)
    counts = uneven(comm.size)
    total = combined(comm.size, sum(counts), "float64")
    out = comm.reduce_scatter(data(comm.rank, sum(counts)), counts=counts)
    same(out, total[offset(counts, comm.rank) :][: counts[comm.rank]], "uneven")


def check_alltoall(comm):
    for count in counts_for(comm.size):
        every = pieces(comm, "float64", count)
        out = comm.alltoall(every[comm.rank].copy())
        expected = numpy.concatenate([every[r][comm.rank] for r in range(comm.size)])
        same(out, expected, count)
        x = every[comm.rank].copy()
        same(comm.alltoall(x, x), expected, ("in place", count))


def check_alltoallv(comm):
    counts = [[(r + 2 * s) % 4 for s in range(comm.size)] for r in range(comm.size)]
    received = [counts[r][comm.rank] for r in range(comm.size)]
    sent = [data(r, sum(counts[r])) for r in range(comm.size)]
    expected = [
        sent[r][offset(counts[r], comm.rank) :][: received[r]] for r in range(comm.size)
    ]
    out = comm.alltoallv(sent[comm.rank], counts[comm.rank], received)
    same(out, numpy.concatenate(expected))


def check_gather(comm):
    for root in range(comm.size):
        for count in counts_for(comm.size):
            out = comm.gather(data(comm.rank, count), root=root)
            assert (out is None) == (comm.rank != root)
            if comm.rank == root:
                same(out, numpy.concatenate([data(r, count) for r in range(comm.size)]))
        whole = numpy.zeros((comm.size, 3))
        whole[comm.rank] = data(comm.rank, 3)
        comm.gather(whole[comm.rank], whole, root=root)
        if comm.rank == root:
            same(whole, numpy.concatenate([data(r, 3) for r in range(comm.size)]), "in place")
        counts = uneven(comm.size, root)
        out = comm.gatherv(
            data(comm.rank, counts[comm.rank]), counts if comm.rank == root else None, root=root
        )
        if comm.rank == root:
            same(out, numpy.concatenate([data(r, counts[r]) for r in range(comm.size)]))


def check_scatter(comm):
    for root in range(comm.size):
        is_root = comm.rank == root
        for count in counts_for(comm.size):
            whole = data(root, count * comm.size)
            out = comm.scatter(whole if is_root else None, numpy.empty(count), root)
            same(out, whole[comm.rank * count :][:count])
        whole = data(root, 4 * comm.size)
        own = whole[4 * comm.rank :][:4]
        comm.scatter(whole if is_root else None, own if is_root else numpy.empty(4), root)
        same(own, data(root, 4 * comm.size)[4 * comm.rank :][:4], "in place")
        counts = uneven(comm.size, root)
        whole = data(root, sum(counts))
        out = comm.scatterv(
            whole if is_root else None, counts if is_root else None,
            numpy.empty(counts[comm.rank]), root,
        )  # fmt: skip
        same(out, whole[offset(counts, comm.rank) :][: counts[comm.rank]])


def check_bits_are_equal(comm):
    """Numbers that do not add up exactly: all ranks still hold the same bits."""
    x = numpy.random.default_rng(comm.rank).standard_normal(10_007).astype("float32")
    comm.allreduce(x)
    every = comm.allgather(x.view("uint32")).reshape(comm.size, -1)
    assert (every == every[0]).all()
    assert values_of(x).any()


if __name__ == "__main__":
    import collective_checks

    run_checks(checks_in(collective_checks))
