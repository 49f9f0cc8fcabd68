"""Checks of what torch builds on a process group: DDP, FSDP, DTensor, hooks; and of errors."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import paceline
import paceline.torch

STEPS = 50


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(),
                         nn.Linear(48, 10))


def batch(step, rank):
    """Something like the digits: ten noisy prototypes."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    prototypes = torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(10, (32,), generator=generator)
    return prototypes[labels] + torch.randn(32, 64, generator=generator), labels


def losses(model, rank, steps=STEPS, optimizer=None):
    """The losses of a short training."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    found = []
    for step in range(steps):
        images, labels = batch(step, rank)
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return torch.tensor(found)


def gloo():
    return dist.new_group(backend="gloo")


def check_ddp_like_gloo(comm):
    """The same training, bucket by bucket: losses agree, weights are equal on all ranks."""
    ours = DistributedDataParallel(network(), bucket_cap_mb=0.02)
    theirs = DistributedDataParallel(network(), bucket_cap_mb=0.02, process_group=gloo())
    # With more than two ranks gloo adds in another order.
    torch.testing.assert_close(losses(ours, comm.rank), losses(theirs, comm.rank),
                               rtol=1e-5 if comm.size == 2 else 1e-4, atol=0)
    for weights in ours.parameters():
        mine = weights.detach().view(-1)
        first = mine.clone()
        dist.broadcast(first, 0)
        assert torch.equal(mine, first)


def check_ddp_kinds(comm):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    expected = losses(DistributedDataParallel(network(), process_group=gloo()), comm.rank, 5)
    for keywords in ({"static_graph": True}, {"gradient_as_bucket_view": True},
                     {"find_unused_parameters": True}):
        model = DistributedDataParallel(network(), **keywords)
        torch.testing.assert_close(losses(model, comm.rank, 5), expected, rtol=1e-5, atol=0)
    model = DistributedDataParallel(network())
    model.register_comm_hook(None, default_hooks.allreduce_hook)
    torch.testing.assert_close(losses(model, comm.rank, 5), expected, rtol=1e-5, atol=0)
    model = DistributedDataParallel(network())
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    torch.testing.assert_close(losses(model, comm.rank, 5), expected, rtol=0.02, atol=0)


def check_sync_batch_norm_and_buffers(comm):
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)))
    model(torch.randn(4, 8) + comm.rank).sum().backward()
    buffers = [buffer.double().clone() for buffer in model.buffers()]
    model(torch.randn(4, 8))  # buffers are sent from rank 0 before each forward
    assert len(buffers) == 3


def check_zero_optimizer(comm):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    for step in range(3):
        images, labels = batch(step, comm.rank)
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    weights = torch.cat([p.detach().view(-1) for p in model.parameters()])
    first = weights.clone()
    dist.broadcast(first, 0)
    assert torch.equal(weights, first)


def check_fsdp1(comm):
    """The wrapper class that was there before fully_shard."""
    import warnings

    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is the older one, and that the CPU was meant
        model = FullyShardedDataParallel(
            network(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}),
            device_id=torch.device("cpu"), use_orig_params=True)
        found = losses(model, comm.rank, 10)
    expected = losses(DistributedDataParallel(network()), comm.rank, 10)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def check_fsdp2(comm):
    """fully_shard on the CPU trains like DDP."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (comm.size,))
    model = network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    expected = losses(DistributedDataParallel(network()), comm.rank, 10)
    torch.testing.assert_close(losses(model, comm.rank, 10), expected, rtol=1e-4, atol=1e-5)


def check_dtensor(comm):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (comm.size,))
    whole = torch.arange(6.0 * 5).reshape(6, 5)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(sharded.full_tensor(), whole)
    other = sharded.redistribute(mesh, [Shard(1)]).redistribute(mesh, [Replicate()])
    assert torch.equal(other.to_local(), whole)


def check_data_parallel_with_uneven_inputs(comm):
    model = DistributedDataParallel(network())
    with model.join():
        for step in range(2 + comm.rank):
            images, labels = batch(step, comm.rank)
            nn.functional.cross_entropy(model(images), labels).backward()


def check_error_in_ddp(comm):
    """DDP waits in C++: an error in a bucket must come out of it, not wrong gradients."""
    if comm.size == 1:
        return
    group = dist.new_group()
    model = DistributedDataParallel(network(), process_group=group, bucket_cap_mb=0.02)
    images, labels = batch(0, comm.rank)
    nn.functional.cross_entropy(model(images), labels).backward()
    loss = nn.functional.cross_entropy(model(images), labels)
    comm.barrier()
    if comm.rank == 0:
        group.allreduce([torch.ones(3)])
    raises(Exception, "count differs", loss.backward)


def check_error_in_hook(comm):
    """As above with a hook, whose future is one that C++ waits for."""
    if comm.size == 1:
        return
    group = dist.new_group()

    def hook(_, bucket):
        wrong = torch.ones(5 + comm.rank)
        future = dist.all_reduce(wrong, group=group, async_op=True).get_future()
        return future.then(lambda f: (f.value(), bucket.buffer())[1])

    hook.__annotations__ = {"bucket": dist.GradBucket, "return": torch.futures.Future[torch.Tensor]}
    model = DistributedDataParallel(network())
    model.register_comm_hook(None, hook)
    images, labels = batch(0, comm.rank)
    loss = nn.functional.cross_entropy(model(images), labels)
    raises(Exception, "count differs", loss.backward)


def check_error_in_futures(comm):
    if comm.size == 1:
        return
    group = dist.new_group()
    wrong = torch.ones(2 if comm.rank == 0 else 3)
    if comm.rank:
        comm.barrier()
        # Whoever comes last may hear of it at once.
        raises(paceline.MismatchError, "count differs", lambda: dist.all_reduce(wrong, group=group))
        return
    work = dist.all_reduce(wrong, group=group, async_op=True)
    future = work.get_future()
    after = future.then(lambda f: f.value())
    comm.barrier()
    raises(Exception, "count differs", future.wait)
    raises(Exception, "count differs", after.wait)  # by way of a C++ future
    raises(Exception, "count differs", lambda: torch.futures.wait_all([future]))
    raises(Exception, "count differs", torch.futures.collect_all([after]).wait)
    raises(paceline.MismatchError, "count differs", work.wait)
    raises(paceline.MismatchError, "count differs", work.wait)
    assert work.is_completed() and not work.is_success() and work.exception() is not None
    raises(paceline.MismatchError, "", lambda: dist.all_reduce(torch.ones(1), group=group))


def check_time_out(comm):
    if comm.size == 1:
        return
    group = dist.new_group(timeout=timedelta(milliseconds=400))
    if comm.rank == 0:
        raises(TimeoutError, "rank 1", lambda: dist.all_reduce(torch.ones(3), group=group))
        comm.barrier()
    else:
        comm.barrier()  # when rank 0 has given up
        raises(paceline.TimeoutError, "", lambda: dist.all_reduce(torch.ones(3), group=group))


def check_a_second_world(comm):
    """destroy_process_group() and a new start, as after an error."""
    dist.destroy_process_group()
    dist.init_process_group("paceline")
    dist.all_reduce(x := torch.ones(3))
    assert x.tolist() == [comm.size] * 3
    dist.all_reduce(x, group=dist.new_group())


if __name__ == "__main__":
    import train_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    # A world of its own: the checks destroy that of torch.
    world = paceline.world.join(
        os.environ["RESULTS"], dist.get_rank(), dist.get_world_size(), "checks"
    )
    run_checks(checks_in(train_checks), world, leaks=False)  # torch keeps groups in C++
    dist.destroy_process_group()
