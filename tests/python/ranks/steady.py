"""Many mixed calls, while each rank looks at what it holds: memory, descriptors, mappings.

    steady.py CALLS [LEAK]     LEAK: results, plans or splits are kept, as a mistake would keep them
"""

import gc
import json
import os
import random
import sys

import numpy

import paceline

LOOKS = 5  # the first one ends the warm-up
SHAPES = 150  # more than a communicator keeps prepared
TYPES = ["float64", "float32", "float16", "int32", "uint8", "int64"]


def held(comm):
    """What this process holds now: bytes of its own and shared, descriptors, mappings, threads."""
    gc.collect()
    for _ in range(3):  # what has been left is given back when all ranks have come by
        comm.barrier()
        comm.split(0, 0)
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    with open("/proc/self/maps") as file:
        maps = sum(1 for _ in file)
    return {
        "own": int(status["RssAnon"].split()[0]) << 10,
        "shared": int(status["RssShmem"].split()[0]) << 10,
        "files": len(os.listdir("/proc/self/fd")),
        "maps": maps,
        "threads": int(status["Threads"]),
    }


def shapes(dice):
    """Calls of all kinds: the same on every rank."""
    kinds = ["allreduce", "reduce", "broadcast", "reduce_scatter", "allgather", "alltoall",
             "gather", "scatter", "barrier", "allgatherv", "alltoallv"]  # fmt: skip
    return [
        (dice.choice(kinds), dice.choice(TYPES), dice.choice(["sum", "max", "min", "product"]),
         dice.choice([0, 1, 3, 17, 256, 1000, 9000]), dice.randrange(1 << 16),
         dice.choice(["run", "run", "start", "plan"]))
        for _ in range(SHAPES)
    ]  # fmt: skip


def arguments(comm, kind, type, op, n, root):
    """The name of a method and what it gets."""
    p, root = comm.size, root % comm.size
    ones = lambda count: numpy.ones(count, type)  # noqa: E731
    return {
        "allreduce": ("allreduce", ones(n), ones(n), op),
        "reduce": ("reduce", ones(n), None, op, root),
        "broadcast": ("broadcast", ones(n), root),
        "reduce_scatter": ("reduce_scatter", ones(n * p), None, op),
        "allgather": ("allgather", ones(n)),
        "alltoall": ("alltoall", ones(n * p)),
        "gather": ("gather", ones(n), None, root),
        "scatter": ("scatter", ones(n * p) if comm.rank == root else None, ones(n), root),
        "barrier": ("barrier",),
        "allgatherv": ("allgather", ones(n + comm.rank), None, [n + r for r in range(p)]),
        "alltoallv": ("alltoallv", ones(n * p), [n] * p, [n] * p),
    }[kind]


def call(comm, shape, kept):
    """One call of a shape; `kept`: where it leaks to, or None."""
    kind, type, op, n, root, way = shape
    name, *rest = arguments(comm, kind, type, op, n, root)
    if way == "start":
        result = getattr(comm, "i" + name)(*rest).wait()
    elif way == "plan":
        plan = comm.plan(name, *rest)
        for _ in range(3):
            plan.start()
            result = plan.wait()
        if kept is not None and "plans" in sys.argv:
            kept.append(plan)
    else:
        result = getattr(comm, name)(*rest)
    if kept is not None and "results" in sys.argv:
        kept.append(numpy.array(rest[0] if rest else 0, "float64"))
    if kind == "allreduce" and op == "sum" and n:
        assert result[0] == comm.size


def split(comm, number, shape, kept):
    """A communicator that is made, used and left; now and then with arrays that ranks share."""
    part = comm.split(comm.rank % 2 if number % 3 == 0 else 0, number % 2 * -comm.rank)
    call(part, shape, None)
    if number % 2:
        part.allreduce(part.empty(100 + number % 7))
    if kept is not None and "splits" in sys.argv:
        kept.append(part)


def main():
    comm = paceline.init()
    calls, dice = int(sys.argv[1]), random.Random(5)
    kept = [] if len(sys.argv) > 2 else None
    drawn, looks = shapes(dice), []
    for number in range(1, calls + 1):
        shape = dice.choice(drawn)
        call(comm, shape, kept)
        if number % 50 == 0:
            split(comm, number // 50, shape, kept)
        if number % (calls // LOOKS) == 0:
            looks.append(held(comm))
    print(json.dumps(looks))


if __name__ == "__main__":
    main()
