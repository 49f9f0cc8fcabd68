"""Checks of torch.distributed on tensors of CUDA devices, which several ranks may share."""

import os

import torch
import torch.distributed as dist
from support import checks_in, run_checks
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_names import all_gather_single, reduce_scatter_single, tensor
from train_checks import network

import paceline
import paceline.torch

STEPS = 10
HALF_A_SECOND = 1 << 30  # cycles; no device makes more than 2.2e9 in a second
HERE = int(os.environ.get("LOCAL_RANK", 0))
DEVICE = torch.device("cuda", HERE % max(1, torch.cuda.device_count()))


def there(rank, *shape, type="float32"):
    return tensor(rank, *shape, type=type).to(DEVICE)


def same(x, expected):
    torch.testing.assert_close(x.cpu().double(), expected.double(), rtol=0, atol=0)


def total(p, *shape, type="float32"):
    return sum(tensor(r, *shape, type=type).double() for r in range(p))


def check_collectives(comm):
    p, me = comm.size, comm.rank
    for type in ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8"):
        for n in (0, 1, 7, 4099):
            dist.all_reduce(x := there(me, n, type=type))
            same(x, total(p, n, type=type).to(getattr(torch, type)))
        dist.all_reduce(x := there(me, 7, type=type), op=dist.ReduceOp.MAX)
        same(x, torch.stack([tensor(r, 7, type=type) for r in range(p)]).amax(0))
    dist.all_reduce(x := there(me, 4), op=dist.ReduceOp.AVG)
    same(x, (total(p, 4) / p).float())
    dist.broadcast(x := there(me, 5), p - 1)
    same(x, tensor(p - 1, 5))
    dist.reduce(x := there(me, 5), 0)
    if me == 0:
        same(x, total(p, 5))
    whole = torch.empty(3 * p, device=DEVICE)
    all_gather_single(whole, there(me, 3))
    same(whole, torch.cat([tensor(r, 3) for r in range(p)]))
    part = torch.empty(3, device=DEVICE)
    reduce_scatter_single(part, there(me, 3 * p))
    same(part, total(p, 3 * p)[3 * me : 3 * me + 3])
    swapped = torch.empty(p, device=DEVICE)
    dist.all_to_all_single(swapped, there(me, p))
    same(swapped, torch.stack([tensor(r, p)[me] for r in range(p)]))
    columns = there(me, 4, 6)
    dist.all_reduce(columns[:, 1:3])  # not contiguous
    same(columns[:, 1:3], total(p, 4, 6)[:, 1:3])
    several = [there(me, 3), there(me, 5)]
    dist.all_reduce_coalesced(several)
    for x in several:
        same(x, total(p, len(x)))
    dist.barrier()


def check_one_group_serves_both(comm):
    """Tensors of the CPU and of a device by turns."""
    for _ in range(3):
        dist.all_reduce(x := there(comm.rank, 9))
        dist.all_reduce(y := tensor(comm.rank, 9))
        same(x, y)


def check_the_current_stream_is_honoured(comm):
    """Called and waited for on a stream of its own, of work that has yet to run there."""
    stream = torch.cuda.Stream(DEVICE)
    for turn in range(5):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(HALF_A_SECOND >> 5)
            x = torch.full((1000,), float(comm.rank + turn), device=DEVICE)
            work = dist.all_reduce(x, async_op=True)
            work.wait()
            y = 2 * x
        stream.synchronize()
        same(y, torch.full((1000,), 2.0 * sum(r + turn for r in range(comm.size))))


def check_the_host_does_not_wait(comm):
    """It enqueues the call and what comes after it while what comes before has yet to end."""
    before = torch.cuda.Event()
    dist.all_reduce(there(comm.rank, 1000))
    torch.cuda.synchronize()
    x = there(comm.rank, 1000)
    torch.cuda._sleep(HALF_A_SECOND)
    before.record()
    dist.all_reduce(x)
    y = 2 * x
    assert not before.query()
    same(y, 2 * total(comm.size, 1000))


def losses(model, rank):
    """Of a short training on the device."""
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    found = []
    for step in range(STEPS):
        images = there(100 * step + rank, 32, 64) % 17 / 17
        labels = (torch.arange(32, device=DEVICE) + step + rank) % 10
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return torch.stack(found).cpu()


def check_ddp_like_gloo(comm):
    """Bucket by bucket; losses agree, and weights are equal on all ranks."""
    ours = DistributedDataParallel(network().to(DEVICE), [DEVICE.index], bucket_cap_mb=0.02)
    theirs = DistributedDataParallel(network().to(DEVICE), [DEVICE.index], bucket_cap_mb=0.02,
                                     process_group=dist.new_group(backend="gloo"))
    # With more than two ranks gloo adds in another order.
    torch.testing.assert_close(losses(ours, comm.rank), losses(theirs, comm.rank),
                               rtol=1e-5 if comm.size == 2 else 1e-4, atol=0)
    for weights in ours.parameters():
        first = weights.detach().clone()
        dist.broadcast(first, 0)
        assert torch.equal(first, weights.detach())


def check_fsdp_like_ddp(comm):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    expected = losses(DistributedDataParallel(network().to(DEVICE), [DEVICE.index]), comm.rank)
    model = network().to(DEVICE)
    mesh = init_device_mesh("cuda", (comm.size,))
    for layer in (*model, model):
        fully_shard(layer, mesh=mesh)
    torch.testing.assert_close(losses(model, comm.rank), expected, rtol=1e-4, atol=0)


if __name__ == "__main__":
    import torch_cuda_checks

    torch.cuda.set_device(DEVICE)
    torch.use_deterministic_algorithms(True, warn_only=True)
    dist.init_process_group("cpu:paceline,cuda:paceline")
    # A world of its own, so that a check that fails leaves the next ones their turn.
    world = paceline.world.join(
        os.environ["RESULTS"], dist.get_rank(), dist.get_world_size(), "checks"
    )
    run_checks(checks_in(torch_cuda_checks), world, leaks=False)
    dist.destroy_process_group()
