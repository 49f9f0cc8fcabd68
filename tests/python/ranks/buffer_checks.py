"""Checks of what models hold beside their gradients: stores, threads and memory; buffers."""

import copy
import gc
import weakref
from pathlib import Path

import torch
import torch.distributed as dist
from support import checks_in, run_checks
from torch import nn
from train_checks import losses, network

import paceline.torch
from paceline.torch import bsp

BYTES = 8 << 20  # of a model


def held():
    """Threads, and resident memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return int(found["Threads"]), 1024 * int(found["VmRSS"].split()[0])


def train_one(how):
    """A model that nobody holds afterwards, and that was trained; watchers of what it held."""
    model = nn.Linear(BYTES >> 12, 1 << 10, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    watched = how(model, optimizer)
    model(torch.ones(2, BYTES >> 12)).sum().backward()
    if isinstance(watched, bsp.BSP):
        watched.step()
    return [weakref.ref(model), weakref.ref(watched)]


def check_models_without_remove_are_freed(comm):
    """Whatever is trained and thrown away: threads and memory stay as they are."""
    def overlapped(model, optimizer):
        return paceline.torch.overlap(model)

    def updating(model, optimizer):
        return paceline.torch.overlap(model, optimizer=optimizer)

    def synchronous(model, optimizer):
        return bsp.BSP(model, optimizer, algorithm=1)

    for how in overlapped, updating, synchronous:
        for turn in range(10):
            watchers = train_one(how)
            gc.collect()
            assert all(watcher() is None for watcher in watchers), (how, turn)
            comm.barrier()
            if turn == 1:
                before = held()
        after = held()
        assert after[0] <= before[0], (how, before, after)
        # Eight that stay would take four times their size; the allocator keeps some of it.
        assert after[1] < before[1] + 12 * BYTES, (how, before, after)


def check_nobody_keeps_what_overlap_returns(comm):
    """The model does, and not its copies."""
    model = network()
    paceline.torch.overlap(model)
    gc.collect()
    copy.deepcopy(model)(torch.zeros(1, 64)).sum().backward()
    losses(model, comm.rank, 3)
    for weights in model.parameters():
        comm.broadcast(mine := weights.detach().clone())
        assert torch.equal(mine, weights.detach())


if __name__ == "__main__":
    import buffer_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(buffer_checks))
    dist.destroy_process_group()
