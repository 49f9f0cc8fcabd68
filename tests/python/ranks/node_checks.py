"""Checks of ranks that are on several nodes, equally many on each or not (NODES says how)."""

import os

import numpy
from support import checks_in, data, raises, run_checks, same

from paceline import RefusalError

NODES = os.environ.get("NODES", "0").split(",")
COLLECTIVES = ("allreduce", "broadcast", "reduce", "reduce_scatter", "allgather")
FLAT = {"allreduce": "ring", "broadcast": "chain", "reduce": "chain", "reduce_scatter": "ring",
        "allgather": "ring"}
SHARED = 1 < len(set(NODES)) < len(NODES)  # several nodes, one at least with several ranks
BY_NODES = {"allreduce": ("hierarchical", "hierarchical_rsa", "multilane", "multilane_direct",
                           "multilane_tail_direct", "multilane_tail_as_ring"),
            "broadcast": ("hierarchical", "hierarchical_chain"),
            "reduce": ("hierarchical", "hierarchical_chain"),
            "reduce_scatter": ("hierarchical", "multilane"),
            "allgather": ("hierarchical", "multilane")}
COUNTS = (0, 1, 5, 1009, 30_011)


def call(comm, collective, x, root, in_place, **options):
    """What this rank gets, or None; `x` is one piece for each rank where pieces differ."""
    p, me = comm.size, comm.rank
    count = x.size // p
    if collective == "broadcast":
        return comm.broadcast(x, root, **options)
    if collective in ("allreduce", "reduce"):
        rooted = {"root": root} if collective == "reduce" else {}
        out = None if in_place else numpy.full_like(x, -1)
        return getattr(comm, collective)(x, out, **rooted, **options)
    if collective == "reduce_scatter":
        out = x[me * count :][:count] if in_place else numpy.full(count, -1.0)
        return comm.reduce_scatter(x, out, **options)
    out = numpy.full(x.size, -1.0)
    own = out[me * count :][:count] if in_place else numpy.empty(count)
    own[:] = x[me * count :][:count]
    return comm.allgather(own, out, **options)


def expected(comm, collective, count, root):
    """The same by numpy, of the data of all ranks."""
    p, me = comm.size, comm.rank
    rows = [data(r, count * p) for r in range(p)]
    if collective == "broadcast":
        return rows[root]
    if collective == "allgather":
        return numpy.concatenate([row[r * count :][:count] for r, row in enumerate(rows)])
    return sum(rows)[me * count :][:count] if collective == "reduce_scatter" else sum(rows)


def check_collectives(comm):
    """Chosen and asked for, whole and in segments, every root, in place and not."""
    for collective in COLLECTIVES:
        roots = range(comm.size) if collective in ("broadcast", "reduce") else (0,)
        by_nodes = BY_NODES[collective] if SHARED else ()
        for algorithm in ("auto", FLAT[collective], *by_nodes):
            for count in COUNTS:
                for root in roots:
                    for in_place, segments in ((False, None), (True, 3)):
                        options = dict(algorithm=algorithm, segments=segments)
                        got = call(comm, collective, data(comm.rank, count * comm.size), root,
                                   in_place, **options)
                        if got is not None:
                            same(got, expected(comm, collective, count, root),
                                 (collective, count, root, in_place, options))


def check_what_is_said(comm):
    """Which form, and how ranks lie on nodes."""
    counts = sorted({NODES.count(node) for node in NODES})
    nodes = f"{len(set(NODES))} nodes of {' to '.join(map(str, dict.fromkeys(counts)))} ranks"
    for collective in COLLECTIVES:
        short = comm.explain(collective, numpy.zeros(comm.size))
        assert (nodes if SHARED else "one rank on each node") in short, short
        form = short.split(":")[0].split(",")[0]   # as links are measured here, flat may be shorter
        assert SHARED or form not in BY_NODES[collective], short
    long = comm.explain("allreduce", numpy.zeros(1 << 23))
    assert any(name in long for name in (("lane", "ring") if SHARED else ("ring",))), long


def check_several_under_way(comm):
    """Calls that reach staging buffers, calls that do not, and a communicator more, all at once."""
    if not SHARED:
        return
    other = comm.dup()
    p, total = comm.size, sum(range(1, comm.size + 1))
    for _ in range(3):
        xs = [numpy.full(n, float(comm.rank + 1)) for n in (3, 20_011, 500, 90_001, 1, 70_001)]
        names = ("hierarchical", "multilane", "ring", "hierarchical_rsa", "multilane", "ring")
        requests = [(other if i == 3 else comm).iallreduce(x, algorithm=name, segments=1 + i % 3)
                    for i, (x, name) in enumerate(zip(xs, names, strict=True))]
        for request, x in zip(requests, xs, strict=True):
            request.wait()
            same(x, numpy.full(x.size, float(total)), (x.size, p))


def check_refusal(comm):
    """Where there are no nodes to speak of, who asks for their algorithms is told."""
    for collective in COLLECTIVES:
        for algorithm in () if SHARED else BY_NODES[collective]:
            raises(RefusalError, f"{collective}/{algorithm}: it needs several nodes, at least one",
                   lambda: call(comm, collective, numpy.zeros(comm.size), 0, False,
                                algorithm=algorithm))
    if SHARED:  # equal on all ranks, also where a rank is alone on its node
        raises(RefusalError, "of every rank's staging buffer, which has",
               lambda: comm.allreduce(numpy.zeros(1 << 22), algorithm="multilane", segments=2))
        raises(RefusalError, "ranks of a node signal for at most 30",
               lambda: comm.allreduce(numpy.zeros(1 << 12), algorithm="multilane", segments=40,
                                      window=40))
        same(comm.allreduce(numpy.ones(1 << 12), algorithm="multilane", segments=40, window=30),
             numpy.full(1 << 12, float(comm.size)))


def check_part_of_the_world(comm):
    """A communicator of some ranks has nodes of its own."""
    part = comm.split(0 if comm.rank < 2 else 1, -comm.rank)
    where = [NODES[rank] for rank in range(comm.size) if (rank < 2) == (comm.rank < 2)]
    x = numpy.full(3, 1.0 + comm.rank)
    same(part.allreduce(x), numpy.full(3, float(
        sum(1 + rank for rank in range(comm.size) if (rank < 2) == (comm.rank < 2)))))
    said = part.explain("allreduce", x)
    if len(set(where)) == len(where) > 1:
        assert "one rank on each node" in said, said


if __name__ == "__main__":
    import node_checks

    run_checks(checks_in(node_checks))
