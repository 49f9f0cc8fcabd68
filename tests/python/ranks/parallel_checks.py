"""Checks of torch's own ways to spread a model over ranks: each against one process alone."""

import copy
import os
import shutil
import tempfile

import torch
import torch.distributed as dist
from support import checks_in, run_checks
from torch import nn

import paceline.torch  # noqa: F401

WIDTH = 8


def network(layers=2):
    """Equal on all ranks."""
    torch.manual_seed(5)
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
                           for _ in range(layers)))  # fmt: skip


def inputs(rank, count=4):
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(100 + rank))


def mesh_of(comm):
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh("cpu", (comm.size,))


def check_sharded_checkpoints(comm):
    """FSDP2's shards, saved by all ranks and loaded into another model, are the same weights."""
    from torch.distributed import checkpoint
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    from torch.distributed.fsdp import fully_shard

    folder = [tempfile.mkdtemp(prefix="paceline-checkpoint-") if comm.rank == 0 else None]
    dist.broadcast_object_list(folder, 0)
    model, other = network(), network()
    expected = copy.deepcopy(model)
    for one in (model, other):
        fully_shard(one, mesh=mesh_of(comm))
    with torch.no_grad():
        for weights in other.parameters():
            weights.zero_()
    checkpoint.save(get_model_state_dict(model), checkpoint_id=folder[0])
    assert os.listdir(folder[0])
    state = get_model_state_dict(other)
    checkpoint.load(state, checkpoint_id=folder[0])
    set_model_state_dict(other, state)
    for mine, true in zip(other.parameters(), expected.parameters(), strict=True):
        assert torch.equal(mine.full_tensor(), true)
    dist.barrier()
    if comm.rank == 0:
        shutil.rmtree(folder[0])


def check_tensor_parallelism(comm):
    """A layer split by columns and one by rows give the outputs and gradients of the whole."""
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    model = nn.Sequential(nn.Linear(WIDTH, 12), nn.ReLU(), nn.Linear(12, WIDTH)).double()
    with torch.no_grad():
        for i, weights in enumerate(model.parameters()):
            dice = torch.Generator().manual_seed(i)
            weights.copy_(torch.randn(weights.shape, dtype=weights.dtype, generator=dice))
    alone = copy.deepcopy(model)
    parallelize_module(model, mesh_of(comm), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = inputs(0).double()
    found, true = model(x), alone(x)
    torch.testing.assert_close(found, true)
    found.square().sum().backward()
    true.square().sum().backward()
    for mine, one in zip(model.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.full_tensor(), one.grad)


def check_pipelining(comm):
    """1F1B: a stage on each rank; the gradients are those of the whole model."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    p, me = comm.size, comm.rank
    if p == 1:
        return
    whole = network(p)
    stage = copy.deepcopy(whole[me])
    pipe = Schedule1F1B(PipelineStage(stage, me, p, torch.device("cpu")), n_microbatches=2 * p,
                        loss_fn=lambda found, true: (found - true).square().mean())
    x, target = inputs(0, 4 * p), inputs(1, 4 * p)
    losses = []
    if me == p - 1:
        pipe.step(*([x] if me == 0 else []), target=target, losses=losses)
        assert len(losses) == 2 * p
    else:
        pipe.step(*([x] if me == 0 else []))
    (whole(x) - target).square().mean().backward()
    for mine, one in zip(stage.parameters(), whole[me].parameters(), strict=True):
        torch.testing.assert_close(mine.grad, one.grad)


def check_join(comm):
    """DDP with uneven data: who has none left joins the collectives of the others."""
    from torch.distributed.algorithms.join import Join

    model = nn.parallel.DistributedDataParallel(network())
    steps = 0
    with Join([model]):
        for step in range(1 + comm.rank):
            model(inputs(step)).square().mean().backward()
            steps += 1
    assert steps == 1 + comm.rank
    every = [None] * comm.size
    dist.all_gather_object(every, steps)
    assert every == [1 + rank for rank in range(comm.size)]


if __name__ == "__main__":
    import parallel_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(parallel_checks))
    dist.destroy_process_group()
