"""Checks of the futures of torch.distributed's calls, which DDP waits for."""

import time

import torch
import torch.distributed as dist
from support import checks_in, run_checks
from torch_checks import same, tensor, total
from torch_names import all_gather_single, reduce_scatter_single

import paceline.torch  # noqa: F401  Importing it registers the backend's name.


def check_futures(comm):
    p, me = comm.size, comm.rank
    works = [dist.all_reduce(tensor(me, 10 + i), async_op=True) for i in range(20)]
    futures = [work.get_future() for work in works]
    doubled = [future.then(lambda f: f.value()[0] * 2) for future in futures]
    for i, value in enumerate(torch.futures.wait_all(doubled)):
        same(value, 2 * total(p, 10 + i))
    done = dist.all_reduce(tensor(me, 3), async_op=True)
    done.wait()
    same(done.get_future().wait()[0], total(p, 3))
    same(done.result()[0], total(p, 3))
    x = tensor(me, 4, 4)
    dist.all_reduce(x.t(), async_op=True).get_future().wait()  # copies back before it is done
    same(x, total(p, 4, 4))


def check_futures_of_coalesced(comm):
    p, me = comm.size, comm.rank
    manager = dist.distributed_c10d._coalescing_manager
    for call, rows in ((reduce_scatter_single, p), (all_gather_single, 1)):
        outs = [torch.empty(2 * p // rows), torch.empty(3 * p // rows)]
        with manager(async_ops=True) as works:
            for out, n in zip(outs, (2, 3), strict=True):
                call(out, tensor(me, n * rows))
        for work in works.works:
            work.get_future().wait()
            assert work.is_completed() and work.is_success()
        same(outs[0], total(p, 2 * p)[2 * me :][:2] if rows > 1 or p == 1
             else torch.cat([tensor(r, 2) for r in range(p)]))


def check_futures_leave_the_processor_alone(comm):
    """Whoever waits for a late rank does so beside a program that computes. Between nodes a caller
    that waits anew every 2 ms uses 0.6 of the time, who sleeps 0.1; in shared memory both use
    little. Of several waits the lowest counts: on a slow or busy machine all parts grow."""
    me, parts = comm.rank, []
    for _ in range(4):  # the first makes the thread that completes futures
        dist.barrier()
        begun, used = time.monotonic(), time.process_time()
        if me == comm.size - 1:
            time.sleep(0.5)
        dist.all_reduce(tensor(me, 1 << 16), async_op=True).get_future().wait()
        parts.append((time.process_time() - used) / (time.monotonic() - begun))
    assert min(parts) < 0.4, parts


if __name__ == "__main__":
    import future_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(future_checks))
    dist.destroy_process_group()
