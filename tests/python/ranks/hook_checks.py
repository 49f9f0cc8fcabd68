"""Checks of DDP's communication hooks, some of which wait for a Future inside a callback."""

import contextlib
import threading

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel
from train_checks import batch, gloo, losses, network

import paceline.torch  # noqa: F401  Importing it registers the backend's name.

STEPS = 6
DEEP = 20
SKIPPED = 3


def started(comm, count):
    return dist.all_reduce(torch.full((count,), float(comm.rank)), async_op=True).get_future()


def check_callbacks_wait_for_futures(comm):
    """Each callback starts a call and waits for its Future, in whose callback the next one is."""
    total, depth = sum(range(comm.size)), []

    def next_one(_):
        depth.append(threading.get_ident())
        future = started(comm, 3)
        return (future.then(next_one) if len(depth) < DEEP else future).wait()

    value = started(comm, 3).then(next_one).wait()
    assert value[0].tolist() == [total] * 3 and len(depth) == DEEP
    # Waiting took a thread each; none of them stays for good.
    for _ in range(3):
        started(comm, 3).wait()
    assert sum(t.name == "paceline-futures" for t in threading.enumerate()) <= 3


def check_a_callback_that_blocks_stops_nobody(comm):
    """Not even futures of calls that were complete when the callback began."""
    go_on, futures = threading.Event(), [started(comm, 5) for _ in range(8)]
    # From a thread: torch runs a callback at once where the future is complete already.
    blocked = threading.Thread(target=lambda: futures[0].then(lambda _: go_on.wait(60)).wait())
    blocked.start()
    torch.futures.wait_all(futures[1:])
    started(comm, 4).then(lambda f: f.value()).wait()
    assert blocked.is_alive()
    go_on.set()
    blocked.join()


def check_errors_come_out_of_nested_futures(comm):
    if comm.size == 1:
        return
    group = dist.new_group()

    def inner(_):
        wrong = torch.ones(3 + comm.rank)
        return dist.all_reduce(wrong, group=group, async_op=True).get_future().wait()

    raises(Exception, "count differs", started(comm, 3).then(inner).wait)


def trained(register, rank, group=None):
    torch.manual_seed(11)  # PowerSGD draws its first factors
    model = DistributedDataParallel(network(), process_group=group)
    register(model, group)
    return losses(model, rank, STEPS)


def like_gloo(comm, register, rtol=1e-5):
    """`register(model, group)` sets a hook: losses as over gloo."""
    ours, theirs = (trained(register, comm.rank, group) for group in (None, gloo()))
    torch.testing.assert_close(ours, theirs, rtol=rtol if comm.size == 2 else 1e-3, atol=0)
    assert ours.isfinite().all() and ours[-1] < ours[0]


def hook(kind):
    """A check of this kind; losses as over gloo, which cannot run all hooks, with the same or,
    where gradients are quantised, with plain sums."""
    quantised = "QUANTIZE" in kind.name
    keywords = {"start_powerSGD_iter": 2} if "POWER_SGD" in kind.name else {}

    def register(model, group):
        if quantised and group is not None:
            return
        with renamed(kind.value.keywords["comm_hook"]) as comm_hook:
            kind.value(comm_hook=comm_hook, model=model, state=group, **keywords)

    def check(comm):
        with thin_matrices():
            like_gloo(comm, register, rtol=0.02 if quantised else 1e-5)

    return check


@contextlib.contextmanager
def renamed(comm_hook):
    """bf16_compress_hook under another name: builds of torch without CUDA look at its own."""
    name, comm_hook.__name__ = comm_hook.__name__, "hook"
    yield comm_hook
    comm_hook.__name__ = name


@contextlib.contextmanager
def thin_matrices():
    """Batched PowerSGD passes one matrix where torch's own function wants a batch of them."""
    kept = powerSGD_hook._orthogonalize
    powerSGD_hook._orthogonalize = lambda matrices, epsilon=0: kept(
        matrices.unsqueeze(0) if matrices.dim() == 2 else matrices, epsilon)
    yield
    powerSGD_hook._orthogonalize = kept


for kind in DDPCommHookType:
    if kind is not DDPCommHookType.NOOP:
        globals()[f"check_{kind.name.lower()}"] = hook(kind)


def check_gathered_futures(comm):
    """The future of all_gather holds one tensor, as NCCL's: the quantising hooks look into it."""
    outputs = [torch.empty(2, 3) for _ in range(comm.size)]
    mine = torch.full((2, 3), float(comm.rank))
    for wait_first in (False, True):
        work = dist.all_gather(outputs, mine, async_op=True)
        if wait_first:
            work.wait()
        (gathered,) = work.get_future().wait()
        assert gathered.shape == (comm.size, 2, 3)
        assert gathered[:, 1, 2].tolist() == list(range(comm.size))
        assert [one[1, 2].item() for one in work.result()] == list(range(comm.size))


def check_post_local_sgd(comm):
    """Sums in subgroups, from the third step on in none, and models averaged now and then."""
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as hooks
    from torch.distributed.algorithms.model_averaging import averagers
    from torch.distributed.optim import PostLocalSGDOptimizer

    def run(backend):
        group = dist.new_group(backend=backend)
        alone, _ = dist.new_subgroups(1, backend=backend)
        model = DistributedDataParallel(network(), process_group=group)
        state = hooks.PostLocalSGDState(group, alone, start_localSGD_iter=2)
        model.register_comm_hook(state, hooks.post_localSGD_hook)
        optimizer = PostLocalSGDOptimizer(
            torch.optim.SGD(model.parameters(), 0.05),
            averagers.PeriodicModelAverager(period=2, warmup_steps=2, process_group=group))
        return losses(model, comm.rank, STEPS, optimizer)

    torch.testing.assert_close(run("paceline"), run("gloo"), rtol=1e-5 if comm.size < 3 else 1e-4,
                               atol=0)


def stepped(model, rank, step):
    """Losses; step(number) ends each step."""
    found = []
    for number in range(STEPS):
        images, labels = batch(number, rank)
        loss = nn.functional.cross_entropy(model(images), labels)
        model.zero_grad()
        loss.backward()
        step(number)
        found.append(loss.item())
    return torch.tensor(found)


def zero_hook(hook_name, bucket_mb, **keywords):
    """An optimizer in shards whose steps are made inside DDP's hook, beside the backward pass."""
    def check(comm):
        from torch.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = DistributedDataParallel(network(), bucket_cap_mb=bucket_mb, static_graph=True)
        optimizer = ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.SGD, overlap_with_ddp=True,
            parameters_as_bucket_view=True, lr=0.05)
        make = getattr(ddp_zero_hook, hook_name)
        model.register_comm_hook(
            None, make(default_hooks.allreduce_hook, model, optimizer, **keywords))
        found = stepped(model, comm.rank, lambda _: None)
        # Over gloo torch refuses these hooks; there an optimizer that is whole. The hooks make no
        # step before DDP has made its buckets anew.
        whole = DistributedDataParallel(network(), process_group=gloo())
        other = torch.optim.SGD(whole.parameters(), 0.05)
        expected = stepped(whole, comm.rank, lambda number: number >= SKIPPED and other.step())
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=0)

    return check


# Interleaved, callbacks broadcast while the backward pass starts sums, in an order of chance: one
# bucket. (For that reason torch refuses both hooks over gloo.)
check_zero_step = zero_hook("hook_with_zero_step", 0.02)
check_zero_interleaved = zero_hook("hook_with_zero_step_interleaved", 25)


def check_zero_step_in_buckets(comm):
    """On 2 ranks alone: 1 or 3 are fewer than torch cuts a bucket of this model into, which it
    takes for a fault of its own ("All indices are disallowed")."""
    if comm.size == 2:
        zero_hook("hook_with_zero_step", 0.02, shard_buckets=True)(comm)


if __name__ == "__main__":
    import hook_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(hook_checks))
    dist.destroy_process_group()
