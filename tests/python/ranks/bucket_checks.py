"""Checks of tensors in memory that all ranks reach, and of DDP's buckets in it."""

import copy
import gc
import os
import resource
import warnings

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from train_checks import batch, gloo, losses, network

import paceline
import paceline.torch
from paceline.torch import share_buckets

warnings.filterwarnings("ignore", category=FutureWarning)  # of names that torch will drop

# With this the gradients of the network make two buckets of differing length.
CAP = {"bucket_cap_mb": 0.01}
APART = "PACELINE_NODE" in os.environ  # then ranks count as being on several nodes


def shared(x, group=None):
    """Whether an all_reduce of `x` goes through memory that all ranks reach."""
    comm = paceline.torch.memory.group_of(group, "shared")._comm
    return comm.explain("allreduce", x).startswith("symmetric")


def check_empty(comm):
    p, me = comm.size, comm.rank
    everybody = p > 1 and not APART
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8):
        x = paceline.torch.empty((30, 500), dtype)
        assert x.shape == (30, 500) and x.dtype == dtype and not x.any()
        assert shared(x) == everybody and shared(x[3:28]) == everybody
        x += me + 1
        dist.all_reduce(x[3:28])
        total = p * (p + 1) // 2
        assert (x[3:28] == total).all() and (x[:3] == me + 1).all() and (x[28:] == me + 1).all()
    assert paceline.torch.empty(3).dtype == torch.float32
    assert paceline.torch.empty((), torch.int32).shape == ()
    assert not shared(torch.empty(15000))


def check_empty_on_other_groups(comm):
    """A group whose ranks all have a part of it reaches it, in any order; another does not."""
    p, me = comm.size, comm.rank
    again = dist.new_group()
    x = paceline.torch.empty(9000)
    y = paceline.empty(9000, torch.float32)  # of paceline.init(), here a part of torch's world
    for tensor in (x, y):
        assert shared(tensor, again) == (p > 1 and not APART)
        tensor.copy_(torch.arange(9000) + me)
        dist.all_reduce(tensor, group=again)
        assert torch.equal(tensor, p * torch.arange(9000.0) + sum(range(p)))
    part = dist.new_group(list(range(p - 1)) or [0])
    if me < p - 1:
        mine = paceline.torch.empty(9000, group=part)
        assert shared(mine, part) == (p > 2 and not APART) and not shared(mine)
        x.fill_(me + 1)
        dist.all_reduce(x, group=part)
        assert (x == sum(range(1, p))).all()


def check_the_other_collectives(comm):
    p, me = comm.size, comm.rank
    mine, every = paceline.torch.empty(700), paceline.torch.empty(700 * p)
    mine.fill_(me + 1)
    dist.all_gather_into_tensor(every, mine)
    assert torch.equal(every, torch.arange(1.0, p + 1).repeat_interleave(700))
    dist.reduce_scatter_tensor(mine, every)
    assert (mine == p * (me + 1)).all()
    dist.broadcast(mine, p - 1)
    assert (mine == p * p).all()


def check_empty_outlives_nothing(comm):
    """The memory goes with the last view of it."""
    before = len(os.listdir("/proc/self/map_files"))
    for _ in range(20):
        view = paceline.torch.empty(100_000)[5:]
        dist.all_reduce(view)
    del view
    gc.collect()
    dist.barrier()
    assert len(os.listdir("/proc/self/map_files")) < before + 20


def check_bad_arguments(comm):
    raises(paceline.UsageError, "negative", lambda: paceline.torch.empty((3, -1)))
    theirs = gloo()
    raises(paceline.UsageError, "empty: the group is of the backend gloo; it must be one of",
           lambda: paceline.torch.empty(3, group=theirs))
    raises(paceline.UsageError, "share_buckets: the model is a Linear",
           lambda: share_buckets(nn.Linear(2, 2)))
    model = DistributedDataParallel(nn.Linear(2, 2), process_group=theirs)
    raises(paceline.UsageError, "share_buckets: the group", lambda: share_buckets(model))
    model = DistributedDataParallel(nn.Linear(2, 2))
    share_buckets(model)
    raises(paceline.UsageError, "has a communication hook already", lambda: share_buckets(model))


def same(found, expected, comm):
    """Bit for bit on two ranks; on more the order of the sums differs."""
    if comm.size <= 2:
        assert torch.equal(found, expected), (found - expected).abs().max()
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-6), (found - expected).abs().max()


def weights_of(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def check_ddp(comm):
    """Each kind trains as it does without, its buckets made anew and all in shared memory."""
    for keywords in (CAP, {}, {"static_graph": True, **CAP},
                     {"gradient_as_bucket_view": True, **CAP},
                     {"find_unused_parameters": True, **CAP}):
        plain = DistributedDataParallel(network(), **keywords)
        ours = DistributedDataParallel(network(), **keywords)
        buckets = share_buckets(ours)
        same(losses(ours, comm.rank, 8), losses(plain, comm.rank, 8), comm)
        same(weights_of(ours), weights_of(plain), comm)
        if comm.size == 1 or APART:
            assert len(buckets) == buckets.nbytes == 0
            continue
        # One of 2 kB, of those that are not made anew, is too short to be worth it.
        assert buckets.nbytes > 0.9 * 4 * weights_of(ours).numel(), keywords
        assert (len(buckets) == 1) == (keywords == {}), (keywords, len(buckets))
        for storage in buckets._held.values():
            assert shared(torch.empty(0).set_(storage))
        if "gradient_as_bucket_view" in keywords:
            places = {storage.data_ptr() for storage in buckets._held.values()}
            assert {p.grad.untyped_storage().data_ptr() for p in ours.parameters()} == places


class Forked(nn.Module):
    """Every second step leaves half of its parameters without a gradient."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.one, self.two = nn.Linear(64, 60), nn.Linear(64, 60)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return self.one(x) if self.steps % 2 else self.one(x) + self.two(x)


def check_unused_parameters(comm):
    found = []
    for shares in (False, True):
        model = DistributedDataParallel(Forked(), find_unused_parameters=True, **CAP)
        if shares:
            share_buckets(model)
        found.append(losses(model, comm.rank, 6))
    same(found[1], found[0], comm)


def check_no_sync(comm):
    """Gradients of several batches are summed here before they are averaged."""
    found = []
    for keywords in ({}, {"gradient_as_bucket_view": True}):
        for shares in (False, True):
            model = DistributedDataParallel(network(), **CAP, **keywords)
            if shares:
                share_buckets(model)
            for step in range(6):
                images, labels = batch(step, comm.rank)
                if step % 3 == 2:
                    nn.functional.cross_entropy(model(images), labels).backward()
                else:
                    with model.no_sync():
                        nn.functional.cross_entropy(model(images), labels).backward()
            found.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    same(found[1], found[0], comm)
    same(found[3], found[2], comm)


def check_types(comm):
    """float16 is divided before it is summed: sums of large gradients are no number else."""
    for dtype, size in ((torch.bfloat16, 1.0), (torch.float64, 1.0), (torch.float16, 50_000.0)):
        model = DistributedDataParallel(nn.Linear(4000, 1, bias=False).to(dtype))
        buckets = share_buckets(model)
        model(torch.full((1, 4000), size, dtype=dtype)).sum().backward()
        found = model.module.weight.grad
        assert found.dtype == dtype and (len(buckets) == 1) == (comm.size > 1 and not APART)
        assert torch.allclose(found, torch.full_like(found, size), rtol=2e-3, atol=0), found


def check_uneven_inputs(comm):
    """Under join() ranks without inputs pass other tensors: the buckets are private again."""
    found = []
    for shares in (False, True):
        model = DistributedDataParallel(network(), **CAP)
        buckets = share_buckets(model) if shares else ()
        losses(model, comm.rank, 3)
        assert bool(len(buckets)) == (shares and comm.size > 1 and not APART)
        with model.join():
            for step in range(2 + comm.rank):
                images, labels = batch(step, comm.rank)
                nn.functional.cross_entropy(model(images), labels).backward()
        assert not len(buckets)
        found.append(losses(model, comm.rank, 3))
    # Without a hook DDP divides by the ranks that still had inputs, so losses may differ here.
    assert found[1].isfinite().all() and (found[1] - found[0]).abs().max() < 1


def check_models_come_and_go(comm):
    """Fifty models leave neither descriptors nor shared memory."""
    def train():
        model = DistributedDataParallel(nn.Linear(100, 100))
        buckets = share_buckets(model)
        for _ in range(2):
            model(torch.ones(1, 100)).sum().backward()
        assert (len(buckets) > 0) == (comm.size > 1 and not APART)

    def kept():
        gc.collect()
        dist.barrier()
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/map_files"))

    train()
    descriptors, maps = kept()
    for _ in range(50):
        train()
    after = kept()
    assert after[0] <= descriptors and after[1] < maps + 40, (descriptors, maps, after)


def check_copies(comm):
    model = DistributedDataParallel(network(), **CAP)
    share_buckets(model)
    losses(model, comm.rank, 2)
    twin = copy.deepcopy(model)
    share_buckets(twin)
    same(losses(twin, comm.rank, 3), losses(model, comm.rank, 3), comm)


def check_one_rank_without_room(comm):
    """All ranks go on without, and the one that has no room says so, once."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if comm.rank == comm.size - 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = DistributedDataParallel(network(), **CAP)
            buckets = share_buckets(model)
            found = losses(model, comm.rank, 4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    told = [str(w.message) for w in caught if "paceline" in str(w.message)]
    speaks = comm.size > 1 and not APART and comm.rank == comm.size - 1
    assert len(told) == speaks and len(buckets) == 0, told
    assert not told or "DDP's buckets stay in private memory on all ranks" in told[0]
    plain = DistributedDataParallel(network(), **CAP)
    same(found, losses(plain, comm.rank, 4), comm)


if __name__ == "__main__":
    import bucket_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(bucket_checks), leaks=False)  # torch keeps groups in C++
    dist.destroy_process_group()
