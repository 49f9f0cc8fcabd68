"""Checks of training without DistributedDataParallel: paceline.torch.overlap and .bsp."""

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
                share = len(range(way, p, 2)) / p
                close(model.ways[way].weight.grad, share * weights.expand(4, 4))
        overlapped.remove()


def check_bsp_like_ddp(comm):
    expected, weights = of_ddp(comm)
    ring = {"allreduce": "ring", "broadcast": "circulant"}
    for algorithm in (1, 2, 3):
        for method in (*bsp.METHODS, None, ring):
            model = network()
            trainer = bsp.BSP(model, optimizer := sgd(model), algorithm, method)
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
    turned = nn.Linear(3, 4)
    turned.weight = nn.Parameter(turned.weight.detach().t())
    raises(refusal, "weight is not contiguous", lambda: paceline.torch.overlap(turned))
    model = network()
    raises(usage, "no algorithm 4", lambda: bsp.BSP(model, sgd(model), 4))
    raises(usage, "no method 'star'", lambda: bsp.BSP(model, sgd(model), 1, "star"))
    raises(usage, "names 'gather'", lambda: bsp.BSP(model, sgd(model), 1, {"gather": "ring"}))
    raises(usage, "every is -1", lambda: bsp.BSP(model, sgd(model), 3, every=-1))
    trainer = bsp.BSP(model, sgd(model), 1)
    raises(usage, "without a backward pass", trainer.step)


if __name__ == "__main__":
    import overlap_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(overlap_checks), paceline.init(), leaks=False)  # torch keeps groups in C++
    dist.destroy_process_group()
