"""Checks that BSP calls what its algorithm and method say, on tensors of several segments."""

import torch
import torch.distributed as dist
from overlap_checks import close, equal_everywhere, sgd
from support import checks_in, raises, run_checks
from torch import nn

import paceline
from paceline.torch import bsp

SEGMENT = 64 << 10
# As the documents name them: how broadcast, reduce and allreduce are done, and whether in segments.
NAMED = {
    "linear_pipeline": ("chain", "chain", "chain", True),
    "minimum_spanning_tree": ("binomial", "binomial", "binomial", False),
    "bidirectional_exchange": ("scatter_allgather", "scatter_gather", "rabenseifner", False),
}
CALLS = {1: ("broadcast", "reduce"), 2: ("broadcast", "reduce"), 3: ("broadcast", "allreduce")}


class Told:
    """A communicator that writes down what is asked of it."""

    def __init__(self, comm):
        self._comm, self.calls = comm, []

    def __getattr__(self, name):
        found = getattr(self._comm, name)
        if not callable(found):
            return found

        def call(*arguments, **options):
            if options.get("algorithm") is not None:
                self.calls.append((name.removeprefix("i"), arguments[0].nbytes,
                                   options["algorithm"], options["segments"]))
            return found(*arguments, **options)

        return call


def network():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(300, 400), nn.ReLU(), nn.Linear(400, 7))   # 480,000 B and less


def steps(model, trainer, optimizer, comm, count=3):
    for step in range(count):
        x = torch.randn(8, 300, generator=torch.Generator().manual_seed(100 * step + comm.rank))
        optimizer.zero_grad()
        model(x).square().mean().backward()
        trainer.step()
    trainer.synchronise()


def check_bsp_calls_what_it_is_named_after(comm):
    reference = network()
    alone = sgd(reference)
    for step in range(3):
        alone.zero_grad()
        for rank in range(comm.size):
            x = torch.randn(8, 300, generator=torch.Generator().manual_seed(100 * step + rank))
            (reference(x).square().mean() / comm.size).backward()
        alone.step()
    for algorithm, collectives in CALLS.items():
        for method, (*names, is_cut) in NAMED.items():
            model = network()
            trainer = bsp.BSP(model, optimizer := sgd(model), algorithm, method, every=2)
            trainer._comm = told = Told(trainer._comm)
            steps(model, trainer, optimizer, comm)
            named = dict(zip(("broadcast", "reduce", "allreduce"), names, strict=True))
            wanted = {(collective, w.nbytes, named[collective],
                       -(-w.nbytes // SEGMENT) if is_cut else 1)
                      for collective in collectives for w in model.parameters()}
            assert set(told.calls) == wanted, (algorithm, method, told.calls)
            equal_everywhere(comm, model)
            for mine, theirs in zip(model.parameters(), reference.parameters(), strict=True):
                close(mine.detach(), theirs.detach())


def check_weights_are_broadcast_every_so_many_steps(comm):
    """By step() alone: ranks drift apart before each, and are together after every second."""
    def together(model):
        mine = nn.utils.parameters_to_vector(model.parameters()).detach()
        theirs = mine.clone()
        comm.broadcast(theirs)
        differ = torch.tensor([float(not torch.equal(mine, theirs))])
        comm.allreduce(differ)
        return not differ.item()

    for every, wanted in ((1, [True] * 4), (2, [False, True] * 2), (0, [False] * 4)):
        model = network()
        trainer = bsp.BSP(model, optimizer := sgd(model), every=every)
        found = []
        for _ in range(4):
            with torch.no_grad():
                model[0].bias += comm.rank
            optimizer.zero_grad()
            model(torch.ones(2, 300)).sum().backward()
            trainer.step()
            found.append(together(model))
        assert comm.size == 1 or found == wanted, (every, found)


def check_an_algorithm_that_is_named_reaches_the_call(comm):
    """What the core does not know is refused: by what calls it, and by nothing else."""
    for algorithm, collectives in CALLS.items():
        for collective in ("broadcast", "reduce", "allreduce"):
            model = network()
            trainer = bsp.BSP(model, optimizer := sgd(model), algorithm, {collective: "nonesuch"},
                              every=1)

            def run(model=model, trainer=trainer, optimizer=optimizer):
                steps(model, trainer, optimizer, comm, 1)

            if collective in collectives:
                raises(paceline.UsageError, "nonesuch", run)
            else:
                run()


if __name__ == "__main__":
    import method_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(method_checks), paceline.init(), leaks=False)  # torch keeps groups in C++
    dist.destroy_process_group()
