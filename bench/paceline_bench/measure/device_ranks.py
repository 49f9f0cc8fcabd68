"""Ranks on this machine, each with a device, that time calls: what `paceline bench --device staged`
and `--device peers` have in common. CUDA's devices where there are some, of which several ranks may
share one, else emulated ones.
"""

import statistics
import tempfile
import time

from paceline import on_ranks

CALLS, BATCH = 10, 8


def devices_here():
    """CUDA's, or an emulated one."""
    from paceline import _core, device

    return device.emulated(1, threads=True) if _core.trouble_with_cuda() else device.cuda()


def timed_calls(comm, one, spec, array):
    """Seconds of CALLS calls that the ranks begin together."""
    times = []
    for _ in range(CALLS):
        comm.barrier()
        begin = time.perf_counter()
        getattr(one, spec["collective"])(array, **spec["options"])
        one.synchronize()
        times.append(time.perf_counter() - begin)
    return times


def follow_s(comm, one, spec, array):
    """Seconds of one call of BATCH that follow each other, with no look at their end between:
    median."""
    times = []
    for _ in range(CALLS):
        comm.barrier()
        begin = time.perf_counter()
        for _ in range(BATCH):
            getattr(one, spec["collective"])(array, **spec["options"])
        one.synchronize()
        times.append((time.perf_counter() - begin) / BATCH)
    return statistics.median(times)


def slowest(ranks):
    """The median and the first call in seconds, each call the slowest rank's; `ranks`: what each
    rank found at one size."""
    calls = [max(some) for some in zip(*(one["times"] for one in ranks), strict=True)]
    return {"seconds": statistics.median(calls), "first_s": calls[0]}


def run(module, collective, sizes, ranks, options):
    """Starts the ranks, whose main() is one_rank(); by size, what each rank found. options: of the
    calls, such as {"algorithm": "chain"}."""
    from paceline_bench.measure.launching import run_module

    with tempfile.TemporaryDirectory(prefix="paceline-devices-") as folder:
        told = {"collective": collective, "sizes": sizes, "folder": folder, "options": options}
        return list(zip(*run_module(module, told, ranks, folder), strict=True))


def one_rank(measure):
    """One rank: writes what measure(told, comm, devices) finds, by size."""
    import paceline

    spec, comm = on_ranks.told(), paceline.init()
    on_ranks.tell(spec, comm.rank, measure(spec, comm, devices_here()))
    comm.barrier()
    paceline.finalize()
