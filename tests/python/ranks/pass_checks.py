"""Checks of backward passes that do not go by the book, under overlap and BSP's algorithm 1."""

import torch
import torch.distributed as dist
from overlap_checks import Choosy, close, equal_everywhere, sgd
from support import checks_in, raises, run_checks
from torch import nn
from torch.utils.checkpoint import checkpoint
from train_checks import batch, network

import paceline
import paceline.torch
from paceline import kvstore
from paceline.torch import backward, bsp


class Fails(torch.autograd.Function):
    """Is what it gets; its gradient is an error."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        raise ValueError("a bad batch")


def loss_of(model, step, rank, fails_after=None):
    """fails_after: so many layers have their gradients when the pass fails."""
    x, labels = batch(step, rank)
    for place, layer in enumerate(model):
        if fails_after is not None and place == len(model) - 2 * fails_after:
            x = Fails.apply(x)
        x = layer(x)
    return nn.functional.cross_entropy(x, labels)


def whole_batch(model, step, p):
    """The loss that one process would have of all ranks' parts."""
    return sum(loss_of(model, step, r) for r in range(p)) / p


def alone(p, steps):
    model = network()
    optimizer = sgd(model)
    for step in steps:
        optimizer.zero_grad()
        whole_batch(model, step, p).backward()
        optimizer.step()
    return [w.detach() for w in model.parameters()]


def same_weights(model, expected):
    for mine, other in zip(model.parameters(), expected, strict=True):
        close(mine.detach(), other)


def check_every_gradient_is_taken_as_it_comes(comm):
    """The first, the last, each: none waits for the end of the pass."""
    named = list(network().named_parameters())
    watch = backward.Backward(comm, named, lambda i: None, lambda used: None)
    taken = {}
    for i, (name, parameter) in enumerate(named):  # after the watch's own
        parameter.register_post_accumulate_grad_hook(
            lambda _, i=i, name=name: taken.update({name: watch._is_ready[i]}))
    for _ in range(2):
        sum(parameter.sum() for _, parameter in named).backward()
        assert taken == {name: True for name, _ in named}, taken
        taken.clear()


def check_a_pass_that_fails_on_all_ranks_is_skipped(comm):
    """In the first pass and later; ranks fail after a different number of layers."""
    expected = alone(comm.size, [0, 1, 3, 4])
    for mode in kvstore.TYPES:
        for bad in (-1, 2):
            for updates in (False, True):
                model = network()
                optimizer = sgd(model)
                overlapped = paceline.torch.overlap(
                    model, mode, **({"optimizer": optimizer} if updates else {}))
                for step in (-1, 0, 1, 2, 3, 4):
                    optimizer.zero_grad()
                    if step == bad:
                        raises(ValueError, "a bad batch",
                               loss_of(model, 5, comm.rank, 1 + comm.rank % 2).backward)
                    elif step not in (-1, 2):
                        loss_of(model, step, comm.rank).backward()
                        optimizer.step()
                overlapped.wait()
                equal_everywhere(comm, model)
                same_weights(model, expected)
                overlapped.remove()


def check_a_pass_that_fails_on_one_rank_is_told(comm):
    model = network()
    overlapped = paceline.torch.overlap(model)
    loss_of(model, 0, comm.rank).backward()
    if comm.rank == 0:
        raises(ValueError, "a bad batch", loss_of(model, 1, 0, 1).backward)
    if comm.size > 1 and comm.rank > 0:
        raises(paceline.UsageError, "failed on another rank", loss_of(model, 1, comm.rank).backward)
    loss_of(model, 2, comm.rank).backward()
    overlapped.remove()


def check_bsp_1_skips_a_pass_that_fails(comm):
    expected = alone(comm.size, [0, 1, 2])
    model = network()
    trainer = bsp.BSP(model, optimizer := sgd(model), 1)
    for step in range(3):
        optimizer.zero_grad()
        raises(ValueError, "a bad batch",
               loss_of(model, 5, comm.rank, 1 + comm.rank % 2).backward)
        optimizer.zero_grad()
        loss_of(model, step, comm.rank).backward()
        trainer.step()
    trainer.synchronise()
    equal_everywhere(comm, model)
    same_weights(model, expected)


class Shared(nn.Module):
    """Calls one layer twice, each time under reentrant checkpointing."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.first, self.shared, self.last = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x, reentrant):
        x = self.first(x)
        for _ in range(2):
            x = checkpoint(self.shared, x, use_reentrant=reentrant)
        return self.last(x)


def check_a_gradient_that_comes_twice(comm):
    for mode in kvstore.TYPES:
        model, other = Shared(), Shared()
        overlapped = paceline.torch.overlap(model, mode)
        for step in range(3):
            model.zero_grad()
            other.zero_grad()
            x = [torch.full((1, 4), 1.0 + r + step) for r in range(comm.size)]
            raises(paceline.RefusalError, "shared|came twice|use_reentrant=False",
                   model(x[comm.rank], True).sum().backward)
            model.zero_grad()
            model(x[comm.rank], False).sum().backward()
            (sum(other(part, False).sum() for part in x) / comm.size).backward()
            for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
                close(mine.grad, theirs.grad)
        overlapped.remove()


def check_what_nobody_used_has_no_gradient(comm):
    for train in ("overlap", "updates", 1, 2, 3, "bsp 3"):
        model = Choosy()
        optimizer = torch.optim.AdamW(model.parameters(), 0.1, weight_decay=0.5)
        if train == "overlap":
            trainer = paceline.torch.overlap(model)
        elif train == "updates":
            trainer = paceline.torch.overlap(model, optimizer=optimizer)
        elif train == "bsp 3":
            trainer = bsp.BSP(model, optimizer, 3, overlap=True)
        else:
            trainer = bsp.BSP(model, optimizer, train)
        step = getattr(trainer, "step", optimizer.step)
        before = [way.weight.detach().clone() for way in model.ways]
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(1, 4), 0).sum().backward()
            step()
        (trainer.wait if train in ("overlap", "updates") else trainer.synchronise)()
        assert not torch.equal(before[0], model.ways[0].weight)
        assert torch.equal(before[1], model.ways[1].weight), train
        assert model.ways[1].weight.grad is None
        equal_everywhere(comm, model)


def check_layers_that_overlap_does_not_know(comm):
    model = network()
    model[0].requires_grad_(False)
    overlapped = paceline.torch.overlap(model)
    loss_of(model, 0, comm.rank).backward()
    model[0].requires_grad_(True)
    raises(paceline.UsageError, "trains 0.weight", loss_of(model, 0, comm.rank).backward)
    overlapped.remove()


def check_bsp_1_wants_a_step_for_each_pass(comm):
    model = network()
    bsp.BSP(model, sgd(model), 1)
    loss_of(model, 0, comm.rank).backward()
    raises(paceline.UsageError, "a second backward pass|no_sync",
           loss_of(model, 1, comm.rank).backward)


def check_bsp_1_has_reduced_when_backward_returns(comm):
    """On rank 0 the gradients are the averages, whatever happens to them before step()."""
    model, other = network(), network()
    bsp.BSP(model, sgd(model), 1)
    loss_of(model, 0, comm.rank).backward()
    whole_batch(other, 0, comm.size).backward()
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        if comm.rank == 0:
            close(mine.grad, theirs.grad)
        mine.grad.zero_()
    comm.barrier()
    assert all(not p.grad.any() for p in model.parameters())


class ReadsAhead(nn.Module):
    """Uses a weight of a layer that it does not call, and one that is frozen in eval()."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(4)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.tied = nn.Linear(512, 512)
        self.quiet = nn.Sequential(nn.Linear(512, 512)).eval()
        self.order = []

    def forward(self, x):
        x = nn.functional.linear(x, self.tied.weight)
        return self.quiet(x).mean() + self.layers[0](x[:, :8]).sum()


def check_bsp_1_waits_for_weights_that_are_not_called(comm):
    """What a forward pass uses is there, whichever way it uses it."""
    model = ReadsAhead()
    trainer = bsp.BSP(model, optimizer := torch.optim.SGD(model.parameters(), 0.01), 1)
    for _ in range(6):
        optimizer.zero_grad()
        model.train()
        model.quiet.eval()
        found = model(torch.ones(1, 512))
        outputs = found.detach().clone()
        comm.broadcast(outputs)
        assert torch.equal(outputs, found.detach()), "ranks have used other weights"
        found.backward()
        trainer.step()


if __name__ == "__main__":
    import pass_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(pass_checks), paceline.init(), leaks=False)  # torch keeps groups in C++
    dist.destroy_process_group()
