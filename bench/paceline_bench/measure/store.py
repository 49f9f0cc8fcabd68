"""`paceline bench store`: a step of the KVStore's types beside what numpy and plain calls need.

All ways take turns in one launch, with so many keys and so many in turn. A step sums every key over
the ranks and has the sums back in the caller's arrays; its time is the slowest rank's. A figure
that a busy machine changes little is counted, too: how often a thread of a rank goes to sleep.
"""

import resource
import statistics
import tempfile
import time

from paceline import on_ranks

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


def sleeps():
    """Number of times that threads of this process have given up their core to wait. Preemption, as
    on a busy machine, does not count."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


class Keys:
    """A number of keys, and the steps of every way over them."""

    def __init__(self, comm, count, nbytes):
        import numpy

        self.comm = comm
        self.grads = [numpy.zeros(max(1, nbytes // 4), "float32") for _ in range(count)]
        stored, self.stores = stores_of(comm, self.grads)
        self.ways = {**plain_ways(comm, self.grads), **stored}
        self.found = {way: {"times": [], "sleeps": []} for way in WAYS}

    def step(self, way, counts):
        """Makes one step. Raises RuntimeError for a wrong sum."""
        for key, grad in enumerate(self.grads):
            grad[:] = self.comm.rank + key
        self.comm.barrier()
        before, begin = sleeps(), time.perf_counter()
        self.ways[way]()
        took, slept = time.perf_counter() - begin, sleeps() - before
        if counts:
            self.found[way]["times"].append(took)
            self.found[way]["sleeps"].append(slept)
        size = self.comm.size
        for key, grad in enumerate(self.grads if way != FLAT else ()):
            if not (grad == size * (size - 1) // 2 + size * key).all():
                raise RuntimeError(f"bench store: {way}: key {key} has {grad[0]} where the sum "
                                   f"is {size * (size - 1) // 2 + size * key}.")


def measure(spec, comm):
    """On one rank, by number of keys: for every way the seconds and the sleeps of each step."""
    all_keys = {count: Keys(comm, count, spec["bytes"]) for count in spec["keys"]}
    for step in range(PLANNED + spec["repeats"]):
        for way in WAYS:
            for keys in all_keys.values():
                if len(all_keys) > 1:  # the first turn pays for memory that other keys displaced
                    keys.step(way, False)
                keys.step(way, step >= PLANNED)
    for keys in all_keys.values():
        for store in keys.stores:
            store.close()
    return {count: keys.found for count, keys in all_keys.items()}


def rows_of(results, keys):
    """Per number of keys and way: the median over steps of the slowest rank's milliseconds, the
    ratios of medians to those of packing and of direct calls, and the cost of a key: microseconds,
    their ratio to the least among all numbers of keys, and sleeps of a rank (the mean over ranks
    and steps)."""
    ms = {(count, way): 1e3 * statistics.median(map(max, zip(
        *(one[str(count)][way]["times"] for one in results), strict=True)))
        for count in keys for way in WAYS}
    return [{"keys": count, "way": way, "ms": ms[count, way],
             "to_packed": ms[count, way] / ms[count, PACKED],
             "to_direct": ms[count, way] / ms[count, DIRECT],
             "us_a_key": 1e3 * ms[count, way] / count,
             "to_least": ms[count, way] / count / min(ms[other, way] / other for other in keys),
             "sleeps_a_key": statistics.mean(
                 statistics.mean(one[str(count)][way]["sleeps"]) for one in results) / count}
            for count in keys for way in WAYS]


def run(keys, nbytes, ranks, repeats):
    """Starts the ranks; rows."""
    from paceline_bench.measure.launching import run_module

    with tempfile.TemporaryDirectory(prefix="paceline-store-") as folder:
        told = {"keys": keys, "bytes": nbytes, "repeats": repeats, "folder": folder}
        return rows_of(run_module("paceline_bench.measure.store", told, ranks, folder), keys)


def table(rows, keys, nbytes, ranks):
    """The table for the terminal, of one number of keys."""
    from paceline.units import human_bytes
    from rich.table import Table

    several = any(row["keys"] != keys for row in rows)
    out = Table("way", "ms a step", "µs a key", *(["x least"] if several else []),
                "sleeps a key", f"x {PACKED}", f"x {DIRECT}",
                title=f"{keys} keys of {human_bytes(nbytes)} on {ranks} ranks")
    out.columns[0].no_wrap = True
    for column in out.columns[1:]:
        column.justify = "right"
    for row in rows:
        if row["keys"] == keys:
            out.add_row(row["way"], f"{row['ms']:.3f}", f"{row['us_a_key']:.2f}",
                        *([f"{row['to_least']:.2f}"] if several else []),
                        f"{row['sleeps_a_key']:.3f}", f"{row['to_packed']:.2f}",
                        f"{row['to_direct']:.2f}")
    return out


def main():
    """One rank."""
    import paceline

    spec, comm = on_ranks.told(), paceline.init()
    on_ranks.tell(spec, comm.rank, measure(spec, comm))
    comm.barrier()
    paceline.finalize()


if __name__ == "__main__":
    main()
