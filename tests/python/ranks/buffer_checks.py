"""Checks of what models hold beside their gradients: stores, threads and memory; buffers."""

import copy
import gc
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
from support import checks_in, run_checks
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from train_checks import losses, network

import paceline.torch
from paceline.engine import Engine
from paceline.torch import bsp

BYTES = 8 << 20  # of a model


def held():
    """Threads, and resident memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    return int(found["Threads"]), 1024 * int(found["VmRSS"].split()[0])


class Slow(torch.optim.SGD):
    """Still updates when the model is thrown away and the collector of garbage has been here."""

    def step(self):
        time.sleep(0.3)
        super().step()


def train_one(how, kind=torch.optim.SGD):
    """A model that nobody holds afterwards, and that was trained; watchers of what it held."""
    model = nn.Linear(BYTES >> 12, 1 << 10, bias=False)
    optimizer = kind(model.parameters(), 0.01)
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

    train_one(overlapped)
    gc.collect()
    threads = held()[0]
    for how in overlapped, updating, synchronous:
        for turn in range(10):
            watchers = train_one(how, torch.optim.SGD if turn < 9 else Slow)
            gc.collect()
            assert all(watcher() is None for watcher in watchers), (how, turn)
            comm.barrier()
            if turn == 1:
                before = held()[1]
        # Eight that stay would take four times their size; the allocator keeps some of it. What
        # nobody holds may go on for a while in the background, and the next engine ends it.
        end = time.monotonic() + 10
        while not (is_flat := (after := held())[0] <= threads
                   and after[1] < before + 12 * BYTES) and time.monotonic() < end:
            time.sleep(0.05)
            Engine().close()
        assert is_flat, (how, threads, before, after)


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


def normalised():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(64, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 10))


def evaluated(model):
    model.eval()
    with torch.no_grad():
        found = model(torch.linspace(-1, 1, 128).view(2, 64))
    model.train()
    return found


def of_rank_0(comm, tensor):
    comm.broadcast(first := tensor.clone())
    return first


def check_statistics_are_those_of_rank_0(comm):
    """As under DDP; any rank may evaluate alone. Where they are not sent they differ."""
    wrapped = DistributedDataParallel(normalised())
    losses(wrapped, comm.rank, 6)
    expected = of_rank_0(comm, evaluated(wrapped.module))
    ways = {"overlap": lambda model, optimizer: paceline.torch.overlap(model)}
    for number in 1, 2, 3:
        ways[f"bsp {number}"] = lambda model, optimizer, number=number: bsp.BSP(
            model, optimizer, algorithm=number)
    for name, way in ways.items():
        model = normalised()
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        kept = way(model, optimizer)
        step = kept.step if isinstance(kept, bsp.BSP) else optimizer.step
        losses(model, comm.rank, 6, SimpleNamespace(zero_grad=optimizer.zero_grad, step=step))
        if comm.rank == comm.size - 1:
            evaluated(model)  # nobody waits for the others
        if name == "bsp 1" and comm.rank:  # its weights come with the next forward pass
            continue
        torch.testing.assert_close(evaluated(model), expected, rtol=1e-4, atol=1e-5)
    model = normalised()
    paceline.torch.overlap(model, broadcast_buffers=False)
    losses(model, comm.rank, 6)
    found = evaluated(model)
    assert torch.equal(found, of_rank_0(comm, found)) == (comm.rank == 0)


if __name__ == "__main__":
    import buffer_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(buffer_checks))
    dist.destroy_process_group()
