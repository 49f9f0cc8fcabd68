"""`paceline bench store`: a step of the KVStore's types beside what numpy and plain calls need.

All ways take turns in one launch. A step sums every key over the ranks and has the sums back in the
caller's arrays; its time is the slowest rank's.
"""

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

FLAT, PACKED, DIRECT = "one flat allreduce", "packed by numpy", "direct allreduces"
AUTO, BY_KEY = "auto, lists", "auto, key by key"
OTHERS = ("funnel", "depcha", "concom")
WAYS = (FLAT, PACKED, DIRECT, AUTO, BY_KEY, *OTHERS)
PLANNED = 3  # steps until auto has its plan and all memory has been touched


def plain_ways(comm, grads):
    """The steps that need no store."""
    import numpy

    count = grads[0].size
    flat = numpy.zeros(count * len(grads), "float32")
    parts = [flat[i * count : (i + 1) * count] for i in range(len(grads))]

    def packed():
        for part, grad in zip(parts, grads, strict=True):
            part[:] = grad
        comm.allreduce(flat)
        for part, grad in zip(parts, grads, strict=True):
            grad[:] = part

    def direct():
        for grad in grads:
            comm.allreduce(grad)

    return {FLAT: lambda: comm.allreduce(flat), PACKED: packed, DIRECT: direct}


def stores_of(comm, grads):
    """The steps of stores, and the stores."""
    from paceline import kvstore

    keys, ways, stores = list(range(len(grads))), {}, []

    def made(kind):
        stores.append(kvstore.create(kind, comm))
        stores[-1].init(keys, grads)
        return stores[-1]

    def lists(store):
        store.push(keys, grads)
        store.pull(keys, grads)
        store.wait()

    def key_by_key(store):
        for key, grad in zip(keys, grads, strict=True):
            store.push(key, grad)
        for key, grad in zip(keys, grads, strict=True):
            store.pull(key, grad)
        store.wait()

    for way, kind, step in ((AUTO, "auto", lists), (BY_KEY, "auto", key_by_key),
                            *((kind, kind, lists) for kind in OTHERS)):
        ways[way] = lambda step=step, store=made(kind): step(store)
    return ways, stores


def measure(spec, comm):
    """Of one rank: seconds of every step, by way. Raises RuntimeError for a wrong sum."""
    import numpy

    grads = [numpy.zeros(max(1, spec["bytes"] // 4), "float32") for _ in range(spec["keys"])]
    stored, stores = stores_of(comm, grads)
    ways = {**plain_ways(comm, grads), **stored}
    times = {way: [] for way in WAYS}
    for step in range(PLANNED + spec["repeats"]):
        for way in WAYS:
            for key, grad in enumerate(grads):
                grad[:] = comm.rank + key
            comm.barrier()
            begin = time.perf_counter()
            ways[way]()
            if step >= PLANNED:
                times[way].append(time.perf_counter() - begin)
            base = comm.size * (comm.size - 1) // 2
            for key, grad in enumerate(grads if way != FLAT else ()):
                if not (grad == base + comm.size * key).all():
                    raise RuntimeError(f"bench store: {way}: key {key} has {grad[0]} where the sum "
                                       f"is {base + comm.size * key}.")
    for store in stores:
        store.close()
    return times


def rows_of(results):
    """Per way: the median over steps of the slowest rank's milliseconds, and the ratios of medians
    to those of packing and of direct calls."""
    ms = {way: 1e3 * statistics.median(map(max, zip(*(one[way] for one in results), strict=True)))
          for way in WAYS}
    return [{"way": way, "ms": ms[way], "to_packed": ms[way] / ms[PACKED],
             "to_direct": ms[way] / ms[DIRECT]} for way in WAYS]


def run(keys, nbytes, ranks, repeats):
    """Starts the ranks; rows."""
    from paceline.bench.launching import run_module

    with tempfile.TemporaryDirectory(prefix="paceline-store-") as folder:
        told = {"keys": keys, "bytes": nbytes, "repeats": repeats, "folder": folder}
        return rows_of(run_module("paceline.bench.store", told, ranks, folder))


def table(rows, keys, nbytes, ranks):
    """For the terminal."""
    from rich.table import Table

    from paceline.units import human_bytes

    out = Table("way", "ms a step", "µs a key", f"x {PACKED}", f"x {DIRECT}",
                title=f"{keys} keys of {human_bytes(nbytes)} on {ranks} ranks")
    for column in out.columns[1:]:
        column.justify = "right"
    for row in rows:
        out.add_row(row["way"], f"{row['ms']:.3f}", f"{1e3 * row['ms'] / keys:.2f}",
                    f"{row['to_packed']:.2f}", f"{row['to_direct']:.2f}")
    return out


def main():
    """One rank."""
    import paceline

    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    comm = paceline.init()
    found = measure(spec, comm)
    Path(spec["folder"], f"rank{comm.rank}.json").write_text(json.dumps(found), encoding="utf-8")
    comm.barrier()
    paceline.finalize()


if __name__ == "__main__":
    main()
