"""Checks of what a real backend brings, in torches that let Python derive from Backend: groups with
other backends beside ours, torch's flight recorder, and works that answer through its wrapper."""

import json

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks
from torch_checks import same, tensor, total
from torch.distributed import distributed_c10d

import paceline.torch
from paceline.torch import minors


def ours(group):
    return minors.part_of(group)


def check_the_backend_is_ours(comm):
    group = dist.group.WORLD
    assert type(group) is dist.ProcessGroup
    assert type(ours(group)).__name__ == "PacelineGroup"
    assert ours(group) is group._get_backend(torch.device("cpu"))
    assert dist.get_backend(group) == "paceline"
    options = ours(group).options
    assert options.backend == "paceline" and options._timeout == distributed_c10d.default_pg_timeout


def check_mixed_groups(comm):
    """cpu:paceline beside a backend for another device: here gloo, which needs none to start."""
    p, me = comm.size, comm.rank
    group = dist.new_group(backend="cpu:paceline,cuda:gloo")
    assert type(group._get_backend(torch.device("cuda"))).__name__ == "ProcessGroupGloo"
    dist.all_reduce(x := tensor(me, 9), group=group)
    same(x, total(p, 9))
    work = dist.all_reduce(x := tensor(me, 9), group=group, async_op=True)
    assert work.wait() and work.is_completed() and work.is_success()
    same(x, total(p, 9))
    if p > 1 and me == 0:
        assert dist.recv(y := torch.empty(4), group=group) == 1  # from whoever sends
        same(y, tensor(1, 4))
    elif me == 1:
        dist.send(tensor(1, 4), 0, group=group)
    every = [None] * p
    dist.all_gather_object(every, me, group=group)
    assert every == list(range(p))
    shared = paceline.torch.empty(3, group=group)
    dist.all_reduce(shared + 1, group=group)
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def check_works_of_others(comm):
    """gloo's works answer as they did before we looked behind torch's wrapper."""
    group = dist.new_group(backend="gloo")
    work = dist.all_reduce(x := tensor(comm.rank, 3), group=group, async_op=True)
    work.wait()
    assert work.is_completed() and work.is_success()
    same(x, total(comm.size, 3))


def check_flight_recorder(comm):
    """Each call is in torch's own record. (That it ended torch does not learn of any backend that
    is written in Python.)"""
    if not hasattr(distributed_c10d, "_maybe_attach_flight_recorder"):
        return  # torch 2.14 attaches it to no group by itself
    before = len(recorded())
    for count in (5, 6):
        dist.all_reduce(tensor(comm.rank, count))
    dist.broadcast(tensor(comm.rank, 7), 0)
    found = [(entry["profiling_name"], entry["input_sizes"]) for entry in recorded()[before:]]
    assert found == [("paceline:all_reduce", [[5]]), ("paceline:all_reduce", [[6]]),
                     ("paceline:broadcast", [[7]])], found  # fmt: skip


def recorded():
    dump = torch._C._distributed_c10d._dump_fr_trace_json(backend="paceline")
    return json.loads(dump).get("entries", [])


def check_an_error_reaches_the_caller(comm):
    if comm.size == 1:
        return
    group = dist.new_group()
    wrong = torch.ones(2 + comm.rank)
    work = group.allreduce([wrong])
    raises(paceline.MismatchError, "count differs", work.wait)
    assert work.is_completed() and not work.is_success() and work.exception() is not None


if __name__ == "__main__":
    import minor_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(minor_checks))
    dist.destroy_process_group()
