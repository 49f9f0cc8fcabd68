"""`python -m paceline.hello.sizes SPEC`: allreduces of float32 on one rank, over Paceline and, if
torch is there, over gloo."""

import time
from contextlib import contextmanager
from functools import partial

import numpy as np

from paceline import init, on_ranks

SIZES = (*(8 * 4**k for k in range(12)), 64 << 20)  # bytes
ROUND_S, MOST = 0.02, 2000


@contextmanager
def joined():
    """Returns this rank, the number of ranks, a function that makes an array of zeros of a length,
    and by name the calls that sum an array over the ranks in place."""
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        world = init()
        yield world.rank, world.size, partial(np.zeros, dtype=np.float32), {
            "Paceline": world.allreduce}
        return
    dist.init_process_group("paceline")
    gloo = partial(dist.all_reduce, group=dist.new_group(backend="gloo"))
    yield dist.get_rank(), dist.get_world_size(), torch.zeros, {
        "Paceline": dist.all_reduce, "gloo": gloo}
    dist.barrier()
    dist.destroy_process_group()  # without it gloo now and then aborts


def timed(call, array, calls):
    """Seconds of one call, from `calls` calls in a row."""
    start = time.perf_counter()
    for _ in range(calls):
        call(array)
    return (time.perf_counter() - start) / calls


def check(call, array, rank, ranks):
    """Raises RuntimeError if a sum is wrong; then the array holds zeros again."""
    seen, numbers = np.asarray(array), np.arange(len(array)) % 251
    seen[:] = numbers + rank
    call(array)
    if not np.array_equal(seen, ranks * numbers + ranks * (ranks - 1) // 2):
        raise RuntimeError(f"hello: an allreduce of {seen.nbytes} B by {call} is wrong.")
    seen[:] = 0


def measure(rounds, rank, ranks, zeros, ways):
    """By name, for each size, seconds of a call in each round."""
    found = {name: [[] for _ in SIZES] for name in ways}
    for at, size in enumerate(SIZES):
        array, calls = zeros(size // 4), {}
        for name, call in ways.items():
            check(call, array, rank, ranks)
            each_s = zeros(ranks)
            each_s[rank] = timed(call, array, 2)
            call(each_s)  # so that all ranks make as many calls
            calls[name] = max(1, min(MOST, int(ROUND_S / float(max(each_s)))))
        for _ in range(rounds):
            for name, call in ways.items():
                found[name][at].append(timed(call, array, calls[name]))
    return found


if __name__ == "__main__":
    spec = on_ranks.told()
    with joined() as (rank, *rest):
        on_ranks.tell(spec, rank, measure(spec["rounds"], rank, *rest))
