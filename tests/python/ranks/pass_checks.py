"""Checks of backward passes that do not go by the book, under overlap and BSP's algorithm 1."""

import copy
import gc
import io
import time
import weakref

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


def check_bsp_of_a_model_that_it_knows(comm):
    """A later BSP or overlap() of the model takes the former one away, whatever it was about to do;
    a model that nobody holds goes with its own."""
    expected = alone(comm.size, [0, 1])
    for algorithm, options in ((1, {}), (2, {}), (3, {}), (3, {"overlap": True})):
        model = network()
        former = bsp.BSP(model, sgd(model), 1)
        loss_of(model, 5, comm.rank).backward()   # no step() follows
        trainer = bsp.BSP(model, optimizer := sgd(model), algorithm, **options)
        raises(paceline.UsageError, "step() after remove()", former.step)
        former.remove()
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model, step, comm.rank).backward()
            trainer.step()
        trainer.synchronise()
        same_weights(model, expected)
        raises(paceline.UsageError, "belongs to another model as well, whose BSP exchanges",
               lambda model=model: paceline.torch.overlap(nn.Sequential(model)))

        overlapped = paceline.torch.overlap(model)
        optimizer.zero_grad()
        for step in range(2):
            loss_of(model, step, comm.rank).backward()
        overlapped.remove()
        trainer = bsp.BSP(model, optimizer, algorithm, **options)
        trainer.remove()
        model.zero_grad()
        loss_of(model, 0, comm.rank).backward()
        alike = network()
        alike.load_state_dict(model.state_dict())
        loss_of(alike, 0, comm.rank).backward()
        for mine, other in zip(model.parameters(), alike.parameters(), strict=True):
            close(mine.grad, other.grad)   # of this rank alone

        bsp.BSP(model, sgd(model), algorithm, **options)
        gone = weakref.ref(model)
        del model, trainer, overlapped, mine
        gc.collect()
        assert gone() is None


def check_copies_are_models_of_their_own(comm):
    """A model can be copied, averaged and saved whole; what trains it does not know the copy."""
    for train in ("overlap", "updates", 1, 3):
        model = network()
        optimizer = sgd(model)
        if isinstance(train, int):
            trainer = bsp.BSP(model, optimizer, train, overlap=train == 3)
        else:
            trainer = paceline.torch.overlap(
                model, optimizer=optimizer if train == "updates" else None)
        loss_of(model, 0, comm.rank).backward()
        getattr(trainer, "step", optimizer.step)()
        getattr(trainer, "wait", comm.barrier)()
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        copies = [copy.deepcopy(model), torch.load(file, weights_only=False),
                  torch.optim.swa_utils.AveragedModel(model).module]
        before = [w.detach().clone() for w in model.parameters()]
        for one in copies:
            same_weights(one, before)
            one.zero_grad()
            loss_of(one, 1 + comm.rank, 0).backward()   # other gradients on each rank
            one.load_state_dict(one.state_dict())
            sgd(one).step()
        same_weights(model, before)
        assert comm.size == 1 or not comm.allgather(copies[0][0].bias.grad).reshape(
            comm.size, -1).var(0).sum() == 0
        optimizer.zero_grad()
        loss_of(model, 1, comm.rank).backward()
        trainer.remove()


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


class SlowSGD(torch.optim.SGD):
    """Whoever does not wait for its updates comes before them."""

    def step(self, closure=None):
        time.sleep(0.05)
        return super().step(closure)


def check_what_is_loaded_and_saved_waits_for_updates(comm):
    """Whatever saves or loads between backward() and the next pass finds the updates done."""
    model, fresh = network(), [torch.full_like(w, 7.0) for w in network().parameters()]
    optimizer = SlowSGD(model.parameters(), 0.05, momentum=0.9)
    names = [name for name, _ in model.named_parameters()]
    overlapped = paceline.torch.overlap(model, optimizer=optimizer)

    def weights():
        return [w.detach().clone() for w in model.parameters()]

    def momenta(state):
        return [one["momentum_buffer"].clone() for _, one in sorted(state["state"].items())]

    def passed(step):
        loss_of(model, step, comm.rank).backward()

    passed(0)
    saved = optimizer.state_dict()
    found = momenta(saved)
    overlapped.wait()
    assert len(found) == len(names), "the state lacks layers"
    assert all(map(torch.equal, found, momenta(optimizer.state_dict())))
    for mine, other in zip(found, expected_momenta(comm), strict=True):
        close(mine, other)

    kept = {"state": {i: {"momentum_buffer": torch.ones_like(m)} for i, m in enumerate(found)},
            "param_groups": saved["param_groups"]}
    passed(1)
    optimizer.load_state_dict(kept)
    overlapped.wait()
    assert all(torch.equal(m, torch.ones_like(m)) for m in momenta(optimizer.state_dict()))

    passed(2)
    model.load_state_dict(dict(zip(names, fresh, strict=True)))
    overlapped.wait()
    assert all(map(torch.equal, weights(), fresh))

    passed(3)
    of_a_layer = {name.removeprefix("0."): w for name, w in model.state_dict().items()
                  if name.startswith("0.")}
    assert not torch.equal(of_a_layer["weight"], fresh[0])
    passed(4)
    model[0].load_state_dict({"weight": fresh[0], "bias": fresh[1]})
    overlapped.wait()
    assert all(map(torch.equal, weights()[:2], fresh))
    overlapped.remove()


def expected_momenta(comm):
    """After the first step: its gradients."""
    model = network()
    whole_batch(model, 0, comm.size).backward()
    return [w.grad for w in model.parameters()]


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
