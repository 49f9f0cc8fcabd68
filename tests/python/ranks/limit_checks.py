"""Checks of time-outs: of one wait, which breaks nothing, and of a group, which does."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks

from paceline.torch.minors import part_of

NAME = "gloo" if os.environ.get("PACELINE_REPLACE") == "gloo" else "paceline"
INIT = timedelta(seconds=10)
SHORT = timedelta(milliseconds=40)
_turns = iter(range(1000))


def gives_up_then_ends(comm, begin):
    """begin() starts calls; rank 0 waits in vain for them before the other ranks do so."""
    store, key = dist.distributed_c10d._get_default_store(), f"turn {next(_turns)}"
    if comm.rank != 0:
        store.wait([key])
    works = begin()
    if comm.rank == 0 and comm.size > 1:
        for _ in range(2):
            for work in works:
                raises(TimeoutError, "40 ms|it goes on", lambda work=work: work.wait(SHORT))
                assert not work.is_completed() and work.exception() is None
    store.set(key, "")
    for work in works:
        assert work.wait(timedelta(seconds=9)) and work.wait() and work.is_success()


def check_a_group_that_was_given_up_is_made_again(comm):
    """Also once more, and another one beside it: groups go by their ranks, which torch's names do
    not where a rank has tried more often than another."""
    if comm.size == 1:
        return
    for _ in range(2):
        tries = 0
        if comm.rank == 0:  # whom the others wait for
            dist.barrier()
        while True:
            try:
                group = dist.new_group(timeout=timedelta(seconds=0.3 if tries < 2 else 9))
                break
            except TimeoutError:
                tries += 1
                if tries == 2:
                    dist.barrier()
        assert tries == (0 if comm.rank == 0 else 2), tries
        for one in (group, dist.new_group([0, comm.size - 1])):
            if dist.get_rank(one) < 0:
                continue
            x = torch.ones(3)
            dist.all_reduce(x, group=one)
            assert x.tolist() == [dist.get_world_size(one)] * 3


def check_a_wait_that_gives_up_leaves_the_call(comm):
    p = comm.size
    x, several = torch.ones(1000), [torch.ones(7), torch.ones(70)]
    gives_up_then_ends(comm, lambda: [dist.all_reduce(x, async_op=True)])
    assert x.tolist() == [p] * 1000
    wide = torch.ones(4, 6)
    gives_up_then_ends(comm, lambda: [dist.all_reduce(wide.t(), async_op=True)])
    assert (wide == p).all()
    pair = [torch.ones(5), torch.ones(5, dtype=torch.int64)]
    part = part_of(dist.group.WORLD)
    gives_up_then_ends(comm, lambda: [part.allreduce_coalesced(pair)])
    assert all((one == p).all() for one in pair)
    gives_up_then_ends(comm, lambda: _coalesced(several))
    assert all((one == p).all() for one in several)
    dist.all_reduce(z := torch.ones(3))
    assert z.tolist() == [p] * 3


def _coalesced(tensors):
    with dist.distributed_c10d._coalescing_manager(async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    return manager.works


def check_a_future_goes_on_as_well(comm):
    x, seen = torch.ones(1000), []

    def begin():
        work = dist.all_reduce(x, async_op=True)
        seen.append(work.get_future().then(lambda future: future.value()[0].sum().item()))
        return [work]

    gives_up_then_ends(comm, begin)
    assert seen[0].wait() == 1000 * comm.size


def check_messages_go_on_as_well(comm):
    if comm.size == 1:
        return
    for source in (1, None):
        x = torch.zeros(5)
        gives_up_then_ends(
            comm,
            lambda x=x, source=source: [dist.irecv(x, source)] if comm.rank == 0
            else [dist.isend(torch.ones(5), 0)] if comm.rank == 1 else [],
        )  # fmt: skip
        assert comm.rank != 0 or x.tolist() == [1] * 5


def check_a_group_that_was_given_less_time(comm):
    group, other = dist.new_group(), dist.new_group(timeout=timedelta(milliseconds=300))
    dist.distributed_c10d._set_pg_timeout(timedelta(milliseconds=400), group)
    if comm.rank == 0 and comm.size > 1:
        raises(TimeoutError, "has waited 0.4 s", lambda: dist.barrier(group))
        raises(TimeoutError, "has waited 0.3 s", lambda: dist.barrier(other))
    dist.all_reduce(x := torch.ones(3))
    assert x.tolist() == [comm.size] * 3
    if comm.size > 1:  # and as soon as it has broken it is so for all
        raises(TimeoutError, "has waited 0.4 s", lambda: dist.barrier(group))


def check_the_time_that_init_was_given(comm):
    """The last: it breaks the default group."""
    if comm.size > 1 and comm.rank == 0:
        raises(TimeoutError, "has waited 10 s", lambda: dist.all_reduce(torch.ones(3)))


if __name__ == "__main__":
    import limit_checks

    torch.set_num_threads(1)
    dist.init_process_group(NAME, timeout=INIT)
    run_checks(checks_in(limit_checks))
    dist.destroy_process_group()
