"""Checks in the place of gloo (PACELINE_REPLACE): what scripts know from it alone."""

from datetime import timedelta

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks
from torch.nn.parallel import DistributedDataParallel
from torch_checks import same
from train_checks import losses, network

import paceline


def check_the_name_stays(comm):
    """Torch, and scripts, find gloo, wherever they ask; groups of other names are theirs."""
    from paceline.torch import minors
    from paceline.torch.group import PacelineGroup

    for group in (dist.group.WORLD, dist.new_group(), dist.new_group(backend="cpu:gloo")):
        part = minors.part_of(group)
        assert isinstance(part, PacelineGroup) and part.name() == "gloo"
        assert "gloo" in dist.get_backend(group)
    assert dist.get_backend() == dist.Backend.GLOO
    own = dist.new_group(backend="paceline")
    assert minors.part_of(own).name() == "paceline" and dist.get_backend(own) == "paceline"
    dist.monitored_barrier(timeout=timedelta(seconds=20))


def check_ddp(comm):
    """DDP, whose C++ knows gloo by its name."""
    model = DistributedDataParallel(network())
    found = losses(model, comm.rank, 5)
    assert found.isfinite().all() and found[-1] < found[0]
    weights = torch.cat([p.detach().view(-1) for p in model.parameters()])
    dist.broadcast(first := weights.clone(), 0)
    assert torch.equal(weights, first)


def check_gathered_futures_are_lists(comm):
    """Over gloo the future of all_gather holds the tensors one by one."""
    outputs = [torch.empty(2) for _ in range(comm.size)]
    work = dist.all_gather(outputs, torch.full((2,), float(comm.rank)), async_op=True)
    assert [one[0].item() for one in work.get_future().wait()] == list(range(comm.size))


def check_errors_are_those_of_torch(comm):
    if comm.size == 1:
        return
    group = dist.new_group(timeout=timedelta(milliseconds=300))
    if comm.rank == 0:
        raises(RuntimeError, " timeout ", lambda: dist.barrier(group))


def check_monitored_barriers(comm):
    """Rank 0 names who has not come, one or all; the group is none the worse for it."""
    p, me = comm.size, comm.rank
    if p == 1:
        return
    pg, limit = dist.new_group(), timedelta(milliseconds=300)
    for wait_all, words in ((False, "Rank 1 failed to pass monitoredBarrier in 300 ms"),
                            (True, ", ".join(map(str, range(1, p))) + " failed to pass")):
        if me == 0:
            raises(RuntimeError, words, lambda: pg.monitored_barrier(limit, wait_all))
            raises(RuntimeError, "Rank 0 timed out", lambda: pg.monitored_barrier(timedelta(0)))
    dist.all_reduce(x := torch.ones(3), group=pg)
    assert x.tolist() == [p] * 3
    late = dist.new_group()
    if me == 0:
        raises(RuntimeError, f"Rank {p - 1} failed", lambda: late.monitored_barrier(limit))
    elif me < p - 1:
        raises(RuntimeError, f"Rank {me} successfully reached",
               lambda: late.monitored_barrier(limit))


def check_sparse_sums(comm):
    p, me = comm.size, comm.rank
    for dense_dims in (0, 1):
        tensors = [torch.zeros(5, 4) for _ in range(p)]
        for r in range(p):
            tensors[r][r % 5] = torch.arange(4.0) + r
            tensors[r][4, 3] = 10 * r
        x = tensors[me].to_sparse(2 - dense_dims)
        work = dist.all_reduce(x, async_op=True)
        assert work.wait() and x.is_sparse and x.is_coalesced()
        same(x.to_dense(), sum(tensors))
    empty = torch.sparse_coo_tensor(torch.empty(2, 0, dtype=torch.int64), torch.empty(0), (3, 3))
    dist.all_reduce(empty)
    assert empty._nnz() == 0
    if p > 1:
        other = torch.eye(3 + me).to_sparse()
        raises(paceline.UsageError, "must be equal", lambda: dist.all_reduce(other))


if __name__ == "__main__":
    import gloo_checks

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    run_checks(checks_in(gloo_checks))
    dist.destroy_process_group()
