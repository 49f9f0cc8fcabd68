"""Checks of gradients that lie where they are averaged: overlap without copies."""

import re
import threading
import time
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from overlap_checks import close, equal_everywhere, sgd
from pass_checks import loss_of, same_weights
from support import checks_in, raises, run_checks
from torch import nn
from train_checks import batch, network

import paceline
import paceline.torch
from paceline import kvstore
from paceline.kvstore import cores

STEPS = 6
SLOW_S = 0.05  # of which a machine that is busy takes nothing away


def alone(p, parts=1, clip=None, steps=STEPS):
    """One process that has all ranks' batches, each step of `parts` of them: its weights."""
    model = network()
    optimizer = sgd(model)
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(parts):
            for rank in range(p):
                (loss_of(model, parts * step + part, rank) / p).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return [w.detach() for w in model.parameters()]


def overlapped(mode="auto", **options):
    model = network()
    return model, sgd(model), paceline.torch.overlap(model, mode, **options)


def in_place(model, overlap):
    """Whether every gradient is the store's own memory."""
    return [p.grad.data_ptr() == overlap.store.buffer(name).data_ptr()
            for name, p in model.named_parameters()]


def check_gradients_lie_in_the_store(comm):
    for mode in kvstore.TYPES:
        for set_to_none in (True, False):
            model, optimizer, overlap = overlapped(mode)
            for step in range(STEPS):
                optimizer.zero_grad(set_to_none=set_to_none)
                before = [p.grad for p in model.parameters()]
                loss_of(model, step, comm.rank).backward()
                assert all(in_place(model, overlap)), (mode, step)
                assert set_to_none == all(grad is None for grad in before) or step == 0
                optimizer.step()
            equal_everywhere(comm, model)
            same_weights(model, alone(comm.size))
            overlap.remove()


def check_buckets_are_memory_of_the_node(comm):
    """auto sums by load and store from the second pass on: no message is sent."""
    if comm.size == 1:
        return
    model, optimizer, overlap = overlapped()
    for step in range(2):
        loss_of(model, step, comm.rank).backward()
    grads = [p.grad for p in model.parameters()]
    assert overlap.store._shares
    flat = max(grads, key=lambda grad: grad.numel())
    told = overlap.store._comm.explain("allreduce", flat)
    assert str(told).startswith("symmetric: "), told
    overlap.remove()


def check_buckets_are_pushed_whole(comm):
    """From the second pass on no parameter costs a call or a task of its own: also where ranks use
    their layers in different orders, leave some out, or have gradients of their own."""
    for count in (4 * comm.size, 1):
        with mock.patch.object(cores.Cores, "of", lambda comm, count=count: cores.Cores(count, 2)):
            pushed_whole(comm, count == 1 or comm.size == 1)  # one rank exchanges nothing


def pushed_whole(comm, at_once):
    model, reference = Ways(), Ways()
    overlap = paceline.torch.overlap(model)
    for step in range(STEPS):
        if step == 2:
            overlap.store.push = None  # nobody calls it any more
        for one in (model, reference):
            one.zero_grad(set_to_none=step % 2 == 0)
        tasks = overlap.store._engine._core.unfinished
        ways_of(model, step, comm.rank).backward()
        assert overlap.store._engine._core.unfinished == tasks == 0
        for rank in range(comm.size):
            (ways_of(reference, step, rank) / comm.size).backward()
        for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
            close(mine.grad, other.grad)
        assert all(in_place(model, overlap))
    count = len(overlap.store._buckets)
    assert count == 1 if at_once else 1 < count < len(list(model.parameters()))
    overlap.remove()


class Ways(nn.Module):
    """Layers of some buckets, which a rank may use in any order."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.layers = nn.ModuleList([nn.Linear(128, 128) for _ in range(8)])


def ways_of(model, step, rank):
    x = batch(step, rank)[0].flatten()[:128]
    order = torch.randperm(8, generator=torch.Generator().manual_seed(10 * step + rank)).tolist()
    for place in order[: 6 if step % 2 else 8]:
        x = model.layers[place](x).tanh()
    return x.sum()


class Slowly(torch.autograd.Function):
    """Takes its time in the backward pass."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(SLOW_S)
        return grad


def check_the_plan_knows_when_gradients_came(comm):
    """And not when they were pushed: the first pass pushes them all at its end."""
    model = network()
    overlap = paceline.torch.overlap(model)
    layers = list(model.children())
    for step in range(2):
        x, labels = batch(step, comm.rank)
        for layer in layers:
            x = layer(Slowly.apply(x) if layer is layers[-1] else x)
        nn.functional.cross_entropy(x, labels).backward()
    found = re.search(r"the last after ([0-9.]+) ms", overlap.store.plan)
    assert float(found[1]) >= 1e3 * SLOW_S, overlap.store.plan
    overlap.remove()


def check_one_thread_makes_progress(comm):
    """Of all groups, communicators and stores of a process."""
    def count():
        return sum(Path(task, "comm").read_text().strip() == "paceline"
                   for task in Path("/proc/self/task").iterdir())

    before = count()
    group = dist.new_group()
    others = [paceline.torch.overlap(network(), mode, group=group) for mode in kvstore.TYPES]
    model, _, overlap = overlapped()
    for step in range(3):
        loss_of(model, step, comm.rank).backward()
    assert count() == before == 1
    for one in (overlap, *others):
        one.remove()
    end = threading.Event()

    def another():
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text("paceline")
        end.wait(30)

    thread = threading.Thread(target=another)
    thread.start()
    while count() < 2:  # a second one would be seen
        time.sleep(0.001)
    end.set()
    thread.join()


def check_updates_read_the_store(comm):
    """With optimizer= no average is copied: not to be clipped, either."""
    class Looks(torch.optim.SGD):
        seen = []

        def step(self, closure=None):
            self.seen.extend(p.grad.data_ptr() for g in self.param_groups for p in g["params"])
            super().step(closure)

    for mode in kvstore.TYPES:
        for clip in (None, 0.1):
            model = network()
            optimizer = Looks(model.parameters(), 0.05, momentum=0.9)
            overlap = paceline.torch.overlap(model, mode, optimizer=optimizer, clip_norm=clip)
            overlap.store.pull = None  # nobody calls it
            for step in range(STEPS):
                Looks.seen.clear()
                loss_of(model, step, comm.rank).backward()
                overlap.wait()
                assert sorted(Looks.seen) == sorted(
                    overlap.store.buffer(name).data_ptr() for name, _ in model.named_parameters())
            equal_everywhere(comm, model)
            same_weights(model, alone(comm.size, clip=clip))
            overlap.remove()


def check_accumulation_and_clipping(comm):
    for set_to_none in (True, False):
        model, optimizer, overlap = overlapped()
        for step in range(STEPS):
            optimizer.zero_grad(set_to_none=set_to_none)
            with overlap.no_sync():
                loss_of(model, 2 * step, comm.rank).backward()
            loss_of(model, 2 * step + 1, comm.rank).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        same_weights(model, alone(comm.size, parts=2, clip=0.1))
        overlap.remove()


def check_what_is_not_cleared_adds_up(comm):
    """Without zero_grad() a pass adds to the average: as with gradients of one's own."""
    model, _, overlap = overlapped()
    reference = network()
    for step in range(3):
        loss_of(model, step, comm.rank).backward()
        for rank in range(comm.size):
            (loss_of(reference, step, rank) / comm.size).backward()
    for mine, other in zip(model.parameters(), reference.parameters(), strict=True):
        close(mine.grad, other.grad)
    overlap.remove()


def check_a_failed_pass_leaves_nothing_behind(comm):
    """Also where gradients are cleared in place while its sums are still under way."""
    for set_to_none in (True, False):
        model, optimizer, overlap = overlapped()
        for step in range(STEPS):
            optimizer.zero_grad(set_to_none=set_to_none)
            if step % 2:
                raises(ValueError, "a bad batch",
                       loss_of(model, 77, comm.rank, 1 + comm.rank % 2).backward)
                optimizer.zero_grad(set_to_none=set_to_none)
            loss_of(model, step, comm.rank).backward()
            optimizer.step()
        same_weights(model, alone(comm.size))
        overlap.remove()


def check_gradients_of_one_s_own_are_copied(comm):
    """A gradient that the program puts in the place of the store's is taken as it is."""
    model, optimizer, overlap = overlapped()
    for step in range(STEPS):
        loss_of(model, step, comm.rank).backward()
        optimizer.step()
        for p in model.parameters():
            p.grad = torch.zeros_like(p) if step % 2 else p.grad.clone().zero_()
    same_weights(model, alone(comm.size))
    overlap.remove()


def check_mixed_precision(comm):
    """autocast and GradScaler: a step whose gradients overflow is left out on all ranks."""
    model, optimizer, overlap = overlapped()
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1000)
    reference = network()
    alone_optimizer = sgd(reference)
    for step in range(STEPS):
        overflow = step == 3
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        loss = loss_of(model, step, comm.rank)
        scaler.scale(loss * float("inf") if overflow and comm.rank == 0 else loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if overflow:
            continue
        alone_optimizer.zero_grad()
        for rank in range(comm.size):
            (loss_of(reference, step, rank) / comm.size).backward()
        alone_optimizer.step()
    assert scaler.get_scale() == 4.0
    equal_everywhere(comm, model)
    same_weights(model, [p.detach() for p in reference.parameters()])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x, labels = batch(0, comm.rank)
        loss = nn.functional.cross_entropy(model(x).float(), labels)
    loss.backward()
    assert all(in_place(model, overlap))
    overlap.remove()


if __name__ == "__main__":
    import place_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(place_checks), paceline.init(), leaks=False)  # torch keeps groups in C++
    dist.destroy_process_group()
