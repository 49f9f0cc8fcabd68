"""Checks of training without DistributedDataParallel: paceline.torch.overlap and .bsp."""

import contextlib
import threading

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from train_checks import batch, losses, network

import paceline
import paceline.torch
from paceline import kvstore
from paceline.torch import bsp

STEPS = 12


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)


def of_ddp(comm, steps=STEPS):
    """The losses of DDP, and its weights."""
    model = DistributedDataParallel(network())
    found = losses(model, comm.rank, steps)
    return found, [p.detach() for p in model.parameters()]


def equal_everywhere(comm, model):
    """Whether all ranks have the same bits."""
    for weights in model.parameters():
        mine = weights.detach().clone()
        comm.broadcast(mine)
        assert torch.equal(mine, weights.detach()), "weights differ between ranks"


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)


def check_overlap_like_ddp(comm):
    expected, weights = of_ddp(comm)
    for mode in kvstore.TYPES:
        model = network()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(comm.rank)  # all begin with rank 0's
        overlapped = paceline.torch.overlap(model, mode)
        close(losses(model, comm.rank, STEPS), expected)
        equal_everywhere(comm, model)
        for mine, theirs in zip(model.parameters(), weights, strict=True):
            close(mine.detach(), theirs)
        overlapped.remove()


def check_overlap_of_a_model_that_it_knows(comm):
    """Called again it begins anew, and nothing is exchanged twice; not so of a model around it."""
    expected, _ = of_ddp(comm)
    for first in ({}, {"mode": "funnel"}, {"optimizer": True}):
        model = network()
        if first.pop("optimizer", False):
            first = {"optimizer": sgd(model)}
        former = paceline.torch.overlap(model, **first)
        overlapped = paceline.torch.overlap(model)
        former.remove()  # nothing is left of it
        close(losses(model, comm.rank, STEPS), expected)
        equal_everywhere(comm, model)
        raises(paceline.UsageError, "belongs to another model as well",
               lambda model=model: paceline.torch.overlap(nn.Sequential(model)))
        overlapped.remove()
        paceline.torch.overlap(nn.Sequential(model)).remove()


def check_overlap_with_accumulation_and_clipping(comm):
    def train(model, quietly):
        optimizer = sgd(model)
        for step in range(4):
            optimizer.zero_grad()
            with quietly():
                images, labels = batch(2 * step, comm.rank)
                nn.functional.cross_entropy(model(images), labels).backward()
            images, labels = batch(2 * step + 1, comm.rank)
            nn.functional.cross_entropy(model(images), labels).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        return [p.detach() for p in model.parameters()]

    theirs = DistributedDataParallel(network())
    expected = train(theirs, theirs.no_sync)
    for mode in kvstore.TYPES:
        model = network()
        overlapped = paceline.torch.overlap(model, mode)
        for mine, other in zip(train(model, overlapped.no_sync), expected, strict=True):
            close(mine, other)
        overlapped.remove()


def check_updates_as_tasks_like_ddp(comm):
    expected, weights = of_ddp(comm)
    for mode in kvstore.TYPES:
        model = network()
        overlapped = paceline.torch.overlap(model, mode, optimizer=sgd(model))
        close(losses(model, comm.rank, STEPS, NoOptimizer()), expected)
        overlapped.wait()
        equal_everywhere(comm, model)
        for mine, theirs in zip(model.parameters(), weights, strict=True):
            close(mine.detach(), theirs)
        overlapped.remove()


class NoOptimizer:
    """Updates happen by themselves."""

    def zero_grad(self):
        pass

    step = zero_grad


def check_updates_wait_for_their_own_layer_only(comm):
    """The first layer's forward pass goes on while the last one's update still waits."""
    held, begun = threading.Event(), []

    class Slow(torch.optim.SGD):
        def step(self, closure=None):
            parameter = self.param_groups[0]["params"][0]
            if parameter.shape == model[4].weight.shape:
                assert held.wait(20), "nobody let go of the last layer's update"
            super().step(closure)

    model = network()
    optimizer = Slow(model.parameters(), 0.05)
    engine = paceline.engine.Engine(compute=2)  # the held update has a thread of its own
    overlapped = paceline.torch.overlap(model, "depcha", optimizer=optimizer, engine=engine)
    images, labels = batch(0, comm.rank)
    nn.functional.cross_entropy(model(images), labels).backward()

    def let_go(*_):
        begun.append(2)
        held.set()

    model[2].register_forward_hook(let_go)
    before = model[4].weight.detach().clone()
    nn.functional.cross_entropy(model(images), labels).backward()
    assert begun == [2] and not torch.equal(before, model[4].weight)
    overlapped.wait()
    overlapped.remove()
    engine.close()


def check_updates_with_accumulation_and_clipping(comm):
    def train(model, quietly, optimizer, clips):
        for step in range(4):
            optimizer.zero_grad()
            with quietly():
                images, labels = batch(2 * step, comm.rank)
                nn.functional.cross_entropy(model(images), labels).backward()
            images, labels = batch(2 * step + 1, comm.rank)
            nn.functional.cross_entropy(model(images), labels).backward()
            if clips:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        return [weights.clone() for weights in model.state_dict().values()]

    theirs = DistributedDataParallel(network())
    expected = train(theirs, theirs.no_sync, sgd(theirs), True)
    for mode in kvstore.TYPES:
        model = network()
        optimizer = sgd(model)
        overlapped = paceline.torch.overlap(model, mode, optimizer=optimizer, clip_norm=0.1)
        found = train(model, overlapped.no_sync, optimizer, False)  # its step() does nothing
        for mine, other in zip(found, expected, strict=True):
            close(mine, other)
        overlapped.remove()


def check_updates_follow_schedules_and_groups(comm):
    def train(model, optimizer):
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.1)
        for step in range(5):
            images, labels = batch(step, comm.rank)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            schedule.step()
        return [weights.clone() for weights in model.state_dict().values()]

    def adam(model):
        first, *rest = model.parameters()
        return torch.optim.Adam([{"params": rest}, {"params": [first], "lr": 0.1}], 0.01)

    theirs = DistributedDataParallel(network())
    expected = train(theirs, adam(theirs))
    model = network()
    optimizer = adam(model)
    overlapped = paceline.torch.overlap(model, optimizer=optimizer)
    for mine, other in zip(train(model, optimizer), expected, strict=True):
        close(mine, other)
    assert len(optimizer.state) == len(list(model.parameters())), "the state is the optimizer's"
    overlapped.remove()


def check_updates_of_layers_that_are_left_out(comm):
    model = Choosy()
    before = [way.weight.detach().clone() for way in model.ways]
    overlapped = paceline.torch.overlap(
        model, optimizer=torch.optim.SGD(model.parameters(), 0.1))
    for step in range(4):
        model(torch.ones(1, 4), (comm.rank + step) % 2).sum().backward()
    overlapped.wait()
    equal_everywhere(comm, model)
    assert all(not torch.equal(a, way.weight) for a, way in zip(before, model.ways, strict=True))
    overlapped.remove()


def check_an_update_that_fails_is_told(comm):
    class Failing(torch.optim.SGD):
        def step(self, closure=None):
            raise ValueError("no such update")

    model = network()
    overlapped = paceline.torch.overlap(model, optimizer=Failing(model.parameters(), 0.1))
    images, labels = batch(0, comm.rank)
    nn.functional.cross_entropy(model(images), labels).backward()
    raises(ValueError, "no such update", lambda: model(images))
    for _ in range(3):  # the others' have failed, too
        with contextlib.suppress(ValueError):
            overlapped.wait()


class Choosy(nn.Module):
    """Takes one of two ways."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.ways = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.last = nn.Linear(4, 1)

    def forward(self, x, way):
        return self.last(self.ways[way](x))


def check_parameters_without_a_gradient_count_as_zero(comm):
    p = comm.size
    for mode in kvstore.TYPES:
        model = Choosy()
        overlapped = paceline.torch.overlap(model, mode)
        x = torch.ones(1, 4)
        for _ in range(3):
            model.zero_grad()
            model(x, comm.rank % 2).sum().backward()
            weights = model.last.weight.detach().view(-1, 1)
            for way in (0, 1):
                grad, share = model.ways[way].weight.grad, len(range(way, p, 2)) / p
                if share == 0:  # no rank has one
                    assert grad is None
                else:
                    close(grad, share * weights.expand(4, 4))
        overlapped.remove()


def check_bsp_like_ddp(comm):
    expected, weights = of_ddp(comm)
    ring = {"allreduce": "ring", "broadcast": "circulant"}
    for algorithm, overlap in ((1, False), (2, False), (3, False), (3, True)):
        for method in (*bsp.METHODS, None, ring):
            model = network()
            trainer = bsp.BSP(model, optimizer := sgd(model), algorithm, method, overlap=overlap)
            found = []
            for step in range(STEPS):
                images, labels = batch(step, comm.rank)
                loss = nn.functional.cross_entropy(model(images), labels)
                optimizer.zero_grad()
                loss.backward()
                trainer.step()
                found.append(loss.item())
            trainer.synchronise()
            close(torch.tensor(found), expected)
            equal_everywhere(comm, model)
            for mine, theirs in zip(model.parameters(), weights, strict=True):
                close(mine.detach(), theirs)


def check_bsp_3_needs_no_broadcasts(comm):
    """Bits are equal on all ranks without them, which the paper could not have."""
    for method in bsp.METHODS:
        model = network()
        trainer = bsp.BSP(model, optimizer := sgd(model), 3, method, every=0)
        for step in range(20):
            images, labels = batch(step, comm.rank)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            trainer.step()
        equal_everywhere(comm, model)


def check_bsp_3_overlaps(comm):
    """Of the second pass on, sums are under way when the first layer's gradients are ready; and
    after backward() all ranks have the averages."""
    model, other = network(), network()
    trainer = bsp.BSP(model, optimizer := sgd(model), 3, {"allreduce": "ring"}, overlap=True)
    under_way = []
    model[0].weight.register_post_accumulate_grad_hook(
        lambda _: under_way.append(len(trainer._behind._calls)))
    for step in range(2):
        optimizer.zero_grad()
        images, labels = batch(step, comm.rank)
        nn.functional.cross_entropy(model(images), labels).backward()
        if step == 0:
            for rank in range(comm.size):
                images, labels = batch(step, rank)
                (nn.functional.cross_entropy(other(images), labels) / comm.size).backward()
            for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
                close(mine.grad, theirs.grad)
        trainer.step()
    assert under_way[0] == 0, "rank 0's first pass says in which order"
    assert under_way[1] >= len(list(model.parameters())) - 2, under_way
    with trainer.no_sync():
        nn.functional.cross_entropy(model(images), labels).backward()
    assert len(under_way) == 3 and not trainer._behind._calls
    raises(paceline.UsageError, "without a backward pass", trainer.step)


def check_bsp_1_ways_that_differ(comm):
    """Ranks take other ways through the model: calls pair all the same."""
    model = Choosy()
    trainer = bsp.BSP(model, optimizer := sgd(model), 1)
    for step in range(4):
        optimizer.zero_grad()
        with trainer.no_sync():
            model(torch.ones(1, 4), comm.rank % 2).sum().backward()
        model(torch.ones(1, 4), (comm.rank + step) % 2).sum().backward()
        trainer.step()
    trainer.synchronise()
    equal_everywhere(comm, model)


def check_refusals(comm):
    usage, refusal = paceline.UsageError, paceline.RefusalError
    raises(usage, "no type 'ring'", lambda: paceline.torch.overlap(network(), "ring"))
    sparse = nn.Embedding(4, 4, sparse=True)
    paceline.torch.overlap(sparse)
    raises(refusal, "gradient of weight: it is sparse",
           lambda: sparse(torch.tensor([1])).sum().backward())
    model = network()
    raises(refusal, "LBFGS uses all", lambda: paceline.torch.overlap(
        model, optimizer=torch.optim.LBFGS(model.parameters())))
    raises(usage, "does not have the parameter 2.weight", lambda: paceline.torch.overlap(
        model, optimizer=torch.optim.SGD(model[0].parameters(), 0.1)))
    raises(usage, "has 2 parameters that the model does not train", lambda: paceline.torch.overlap(
        model[0], optimizer=torch.optim.SGD(model[:3].parameters(), 0.1)))
    raises(usage, "clip_norm goes with optimizer=", lambda: paceline.torch.overlap(
        model, clip_norm=1.0))
    raises(usage, "clip_norm is -1", lambda: paceline.torch.overlap(
        model, optimizer=sgd(model), clip_norm=-1))
    turned = nn.Linear(3, 4)
    turned.weight = nn.Parameter(turned.weight.detach().t())
    raises(refusal, "weight is not contiguous", lambda: paceline.torch.overlap(turned))
    model = network()
    raises(usage, "no algorithm 4", lambda: bsp.BSP(model, sgd(model), 4))
    raises(usage, "no method 'star'", lambda: bsp.BSP(model, sgd(model), 1, "star"))
    raises(usage, "names 'gather'", lambda: bsp.BSP(model, sgd(model), 1, {"gather": "ring"}))
    raises(usage, "overlap goes with algorithm 3, and this is 2", lambda: bsp.BSP(
        model, sgd(model), 2, overlap=True))
    raises(usage, "every is -1", lambda: bsp.BSP(model, sgd(model), 3, every=-1))
    trainer = bsp.BSP(model, sgd(model), 1)
    raises(usage, "without a backward pass", trainer.step)


if __name__ == "__main__":
    import overlap_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(overlap_checks), paceline.init(), leaks=False)  # torch keeps groups in C++
    dist.destroy_process_group()
