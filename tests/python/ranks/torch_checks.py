"""Checks of the backend of torch.distributed: every collective, by all its names."""

import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
from support import blocks_held, checks_in, raises, run_checks
from torch_names import all_gather_single, reduce_scatter_single, tensor

import paceline
import paceline.torch
from paceline.torch import minors

warnings.filterwarnings("ignore", category=FutureWarning)  # old names are tested on purpose


def total(p, *shape, type="float32"):
    return sum(tensor(r, *shape, type=type).double() for r in range(p))


def same(x, expected):
    torch.testing.assert_close(x.double(), expected.double(), rtol=0, atol=0)


def sizes(p):
    """Lengths that differ between ranks, one of them 0 where there are three."""
    return [(2 * r + 3) % 5 + (r == 0) for r in range(p)]


def check_all_reduce(comm):
    p, me = comm.size, comm.rank
    for type in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "int8"):
        x = tensor(me, 7, type=type)
        dist.all_reduce(x)
        expected = total(p, 7, type=type)
        same(x, expected.to(getattr(torch, type)))
        work = dist.all_reduce(x := tensor(me, 7, type=type), op=dist.ReduceOp.MAX, async_op=True)
        assert work.wait() and work.is_completed() and work.is_success()
        same(x, torch.stack([tensor(r, 7, type=type) for r in range(p)]).amax(0))
    x = tensor(me, 4)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    same(x, (total(p, 4) / p).float())
    counts = torch.tensor([-7, 7, -me, 2**40 + me])
    dist.all_reduce(counts, op=dist.ReduceOp.AVG)  # truncates, as NCCL does
    whole = [-7 * p, 7 * p, -sum(range(p)), p * 2**40 + sum(range(p))]
    assert counts.tolist() == [int(abs(n) // p * (1 if n > 0 else -1)) for n in whole]
    for op, function in {
        "PRODUCT": torch.prod, "BAND": _bits("bitwise_and"), "BOR": _bits("bitwise_or"),
        "BXOR": _bits("bitwise_xor"), "MIN": torch.amin,
    }.items():  # fmt: skip
        x = torch.arange(5) + me + 1
        dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
        same(x, function(torch.stack([torch.arange(5) + r + 1 for r in range(p)]), 0))


def _bits(name):
    def combine(rows, _):
        result = rows[0]
        for row in rows[1:]:
            result = getattr(torch, name)(result, row)
        return result

    return combine


def check_all_reduce_shapes(comm):
    p, me = comm.size, comm.rank
    x = tensor(me, 4, 6)
    dist.all_reduce(x.t())  # not contiguous
    same(x, total(p, 4, 6))
    columns = tensor(me, 4, 6)
    dist.all_reduce(columns[:, 1:3])
    expected = tensor(me, 4, 6).double()
    expected[:, 1:3] = total(p, 4, 6)[:, 1:3]
    same(columns, expected)
    scalar = torch.tensor(float(me))
    dist.all_reduce(scalar)
    assert scalar == sum(range(p))
    dist.all_reduce(torch.empty(0))
    complex_ = torch.complex(tensor(me, 3), tensor(me, 3) + 1)
    dist.all_reduce(complex_)
    same(torch.view_as_real(complex_)[:, 0], total(p, 3))
    flag = torch.tensor([me == 0, False])
    dist.all_reduce(flag)
    assert flag.tolist() == [True, False]
    parameter = torch.nn.Parameter(tensor(me, 3))
    dist.all_reduce(parameter)
    same(parameter.detach(), total(p, 3))


def check_refusals(comm):
    x = torch.ones(3)
    scaled = dist._make_nccl_premul_sum(2.0)
    raises(paceline.RefusalError, "PREMUL_SUM", lambda: dist.all_reduce(x, op=scaled))
    small = torch.ones(3).to(torch.float8_e5m2)
    raises(paceline.RefusalError, "float8_e5m2", lambda: dist.all_reduce(small))
    # Where we are the group's backend, torch itself refuses some that no backend serves.
    whole = minors.Base is minors.AsGroup
    kinds = paceline.RefusalError if whole else (paceline.RefusalError, NotImplementedError)
    words = "to_dense()" if whole else ""
    raises(paceline.RefusalError, "SUM",
           lambda: dist.all_reduce(torch.eye(3).to_sparse(), op=dist.ReduceOp.MAX))
    raises(kinds, words, lambda: dist.all_reduce(torch.eye(3).to_sparse_csr()))
    for sparse in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr()):
        for call in (
            lambda s=sparse: dist.all_reduce_coalesced([s]),
            lambda s=sparse: dist.reduce(s, 0), lambda s=sparse: dist.broadcast(s, 0),
            lambda s=sparse: dist.all_gather([torch.eye(3)] * comm.size, s),
        ):
            raises(kinds, words, call)
    if whole:
        raises(paceline.RefusalError, "x.cpu()",
               lambda: dist.all_reduce(torch.ones(3, device="meta")))
    raises(paceline.RefusalError, "average", lambda: dist.all_reduce(torch.ones(3).bool(),
                                                                     op=dist.ReduceOp.AVG))
    raises(paceline.RefusalError, "itself", lambda: dist.isend(x, comm.rank))
    raises(paceline.UsageError, "for each", lambda: dist.all_gather([x] * (comm.size + 1), x))
    raises(paceline.UsageError, "must have", lambda: all_gather_single(torch.ones(1), x))


def check_reduce_and_broadcast(comm):
    p, me = comm.size, comm.rank
    for root in range(p):
        x = tensor(me, 3, 5)
        dist.reduce(x, root)
        same(x, total(p, 3, 5) if me == root else tensor(me, 3, 5))
        x = tensor(me, 5, 3)
        dist.broadcast(x.t(), root)
        same(x, tensor(root, 5, 3))
        for type in (torch.float8_e4m3fn, torch.complex64, torch.bool):
            x = torch.full((6,), me == root).to(type)
            dist.broadcast(x, root)
            assert bool((x.to(torch.complex64) == 1).all())


def check_all_gather(comm):
    p, me = comm.size, comm.rank
    lists = [torch.empty(2, 3) for _ in range(p)]
    dist.all_gather(lists, tensor(me, 2, 3))
    for r in range(p):
        same(lists[r], tensor(r, 2, 3))
    lengths = sizes(p)
    lists = [torch.empty(n) for n in lengths]
    dist.all_gather(lists, tensor(me, lengths[me]))
    for r in range(p):
        same(lists[r], tensor(r, lengths[r]))
    expected = torch.cat([tensor(r, 2, 3) for r in range(p)])
    for gather in (all_gather_single, dist.all_gather_into_tensor, dist._all_gather_base):
        out = torch.empty(2 * p, 3)
        gather(out, tensor(me, 2, 3))
        same(out, expected)
        out = torch.empty(3, 2 * p).t()  # not contiguous
        gather(out, tensor(me, 2, 3))
        same(out, expected)
    whole = torch.zeros(2 * p, 3)
    whole[2 * me :][:2] = tensor(me, 2, 3)
    all_gather_single(whole, whole[2 * me :][:2])  # in place, as FSDP does
    same(whole, expected)


def check_reduce_scatter(comm):
    p, me = comm.size, comm.rank
    mine = list(tensor(me, p, 2, 3))
    out = torch.empty(2, 3)
    dist.reduce_scatter(out, mine)
    same(out, total(p, p, 2, 3)[me])
    same(torch.stack(mine), tensor(me, p, 2, 3))
    lengths = sizes(p)
    out = torch.empty(lengths[me])
    dist.reduce_scatter(out, list(tensor(me, sum(lengths)).split(lengths)))
    same(out, total(p, sum(lengths)).split(lengths)[me])
    for scatter in (reduce_scatter_single, dist.reduce_scatter_tensor,
                    dist._reduce_scatter_base):  # fmt: skip
        out = torch.empty(2, 3)
        scatter(out, tensor(me, 2 * p, 3), op=dist.ReduceOp.AVG)
        same(out, (total(p, 2 * p, 3) / p).float()[2 * me :][:2])


def check_gather_and_scatter(comm):
    p, me = comm.size, comm.rank
    for root in range(p):
        for lengths in ([4] * p, sizes(p)):
            here = me == root
            lists = [torch.empty(n) for n in lengths] if here else None
            dist.gather(tensor(me, lengths[me]), lists, dst=root)
            for r in range(p if here else 0):
                same(lists[r], tensor(r, lengths[r]))
            parts = list(tensor(root, sum(lengths)).split(lengths))
            out = torch.empty(lengths[me])
            dist.scatter(out, [part.clone() for part in parts] if here else None, src=root)
            same(out, parts[me])


def check_all_to_all(comm):
    p, me = comm.size, comm.rank
    counts = [[(r + 2 * s) % 3 + 1 for s in range(p)] for r in range(p)]
    sent = [list(tensor(r, sum(counts[r]), 2).split(counts[r])) for r in range(p)]
    received = [counts[r][me] for r in range(p)]
    expected = [sent[r][me] for r in range(p)]
    lists = [torch.empty(n, 2) for n in received]
    dist.all_to_all(lists, sent[me])
    for r in range(p):
        same(lists[r], expected[r])
    out = torch.empty(sum(received), 2)
    dist.all_to_all_single(out, torch.cat(sent[me]), received, counts[me])
    same(out, torch.cat(expected))
    out, x = torch.empty(2 * p, 3), tensor(me, 2 * p, 3)
    # Some say what others leave out.
    dist.all_to_all_single(out, x, *(([2] * p, [2] * p) if me == 0 else ()))
    same(out, torch.cat([tensor(r, 2 * p, 3)[2 * me :][:2] for r in range(p)]))
    raises(paceline.UsageError, "sum", lambda: dist.all_to_all_single(out, x, [9] * p, [9] * p))


def check_coalesced(comm):
    p, me = comm.size, comm.rank
    xs = [tensor(me, 3), tensor(me, 2, 2, type="float64"), tensor(me, 5)]
    dist.distributed_c10d._get_default_group().allreduce_coalesced(xs).wait()
    same(xs[0], total(p, 3))
    same(xs[1], total(p, 2, 2))
    same(xs[2], total(p, 5))
    future = dist.all_reduce_coalesced([x := tensor(me, 3), y := tensor(me, 4)], async_op=True)
    future.wait()
    same(x, total(p, 3))
    same(y, total(p, 4))
    lists = [[torch.empty(2), torch.empty(3)] for _ in range(p)]
    dist.all_gather_coalesced(lists, [tensor(me, 2), tensor(me, 3)])
    for r in range(p):
        same(lists[r][0], tensor(r, 2))
        same(lists[r][1], tensor(r, 3))
    manager = dist.distributed_c10d._coalescing_manager
    outs = [torch.empty(2 * p), torch.empty(3 * p)]
    with manager():
        for out, n in zip(outs, (2, 3), strict=True):
            all_gather_single(out, tensor(me, n))
    same(outs[1], torch.cat([tensor(r, 3) for r in range(p)]))
    outs = [torch.empty(2), torch.empty(3)]
    with manager(async_ops=True) as works:
        for out, n in zip(outs, (2, 3), strict=True):
            reduce_scatter_single(out, tensor(me, n * p))
    works.wait()
    same(outs[1], total(p, 3 * p)[3 * me :][:3])
    xs = [tensor(me, 3), tensor(me, 4)]
    with manager(device=torch.device("cpu"), async_ops=True) as works:
        for x in xs:
            dist.all_reduce(x)
    works.wait()
    same(xs[1], total(p, 4))


def check_objects(comm):
    p, me = comm.size, comm.rank
    every = [None] * p
    dist.all_gather_object(every, {"rank": me, "text": "x" * me})
    assert [one["rank"] for one in every] == list(range(p))
    box = ["from 0" if me == 0 else None, me]
    dist.broadcast_object_list(box, src=0)
    assert box == ["from 0", 0]
    out = [None]
    dist.scatter_object_list(out, list(range(p)) if me == 0 else None, src=0)
    assert out == [me]
    gathered = [None] * p if me == 0 else None
    dist.gather_object((me,), gathered, dst=0)
    assert gathered in (None, [(r,) for r in range(p)])


def check_points(comm):
    p, me = comm.size, comm.rank
    if p == 1:
        return
    right, left = (me + 1) % p, (me - 1) % p
    if me == 0:
        dist.send(tensor(0, 5), 1)
    elif me == 1:
        x = torch.empty(5)
        assert dist.recv(x, 0) == 0
        same(x, tensor(0, 5))
    x, y = torch.empty(100_000), torch.empty(2, 3).t()
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.irecv, x, left), dist.P2POp(dist.isend, tensor(me, 100_000), right),
        dist.P2POp(dist.irecv, y, left), dist.P2POp(dist.isend, tensor(me, 3, 2), right),
    ])  # fmt: skip
    for work in works:
        work.wait()
    same(x, tensor(left, 100_000))
    same(y, tensor(left, 3, 2))
    if me == 0:
        sources = []
        for _ in range(2 * (p - 1)):
            source = dist.recv(x := torch.empty(9, 3).t())
            same(x, tensor(source, 3, 9))
            sources.append(source)
        assert sorted(sources) == sorted([*range(1, p), *range(1, p)])
    else:
        for _ in range(2):
            dist.send(tensor(me, 3, 9), 0)
    pg = dist.new_group(timeout=timedelta(milliseconds=50))
    if me == 0:
        raises(TimeoutError, "no rank", pg.recv_anysource([torch.empty(1)], 0).wait)
    dist.barrier()
    sends = [dist.isend(tensor(me, n), right, tag=n) for n in range(1, 20)]
    for n in range(1, 20):
        dist.recv(x := torch.empty(n), left, tag=n)
        same(x, tensor(left, n))
    for work in sends:
        work.wait()


def check_short_points_take_little(comm):
    """In a group of its own: pairs of another check may have had longer messages."""
    p, me = comm.size, comm.rank
    if p == 1:
        return
    group = dist.new_group(range(p))
    right, left = (me + 1) % p, (me - 1) % p

    def taken_by(*counts):
        dist.barrier(group=group)
        before = blocks_held()  # of own memory, and of what the peers have shown
        dist.barrier(group=group)  # so nobody sends while another still counts
        for n in counts:
            work = dist.isend(tensor(me, n), right, group=group)
            dist.recv(x := torch.empty(n), left, group=group)
            same(x, tensor(left, n))
            work.wait()
        dist.barrier(group=group)
        return blocks_held() - before

    dist.barrier(group=group)  # the group's own memory
    # A direction to one rank, and one from another.
    assert 0 < (taken := taken_by(1, 256, 100, 256)) < 2 * (256 << 10), taken
    assert taken_by(1, 256, 100, 256) == 0
    # What is long on every processor is seen; where slots begin to be long differs.
    assert (taken := taken_by(1 << 16)) > 2 * (256 << 10), taken
    dist.barrier(group=group)
    dist.destroy_process_group(group)


def check_groups(comm):
    p, me = comm.size, comm.rank
    everyone = dist.new_group(range(p))
    backwards = dist.new_group([0]) if p == 1 else dist.new_group([p - 1, 0])
    for group in (everyone, backwards):
        if group is dist.GroupMember.NON_GROUP_MEMBER:
            continue
        members = dist.get_process_group_ranks(group)
        x = tensor(me, 5)
        dist.all_reduce(x, group=group)
        same(x, sum(tensor(r, 5).double() for r in members))
        x = tensor(me, 5)
        dist.broadcast(x, src=members[-1], group=group)
        same(x, tensor(members[-1], 5))
        assert dist.get_backend(group) == "paceline"
        assert group.group_name
        assert dist.get_world_size(group) == len(members)
    dist.destroy_process_group(everyone)
    pairs, _ = dist.new_subgroups(1)
    dist.all_reduce(x := tensor(me, 2), group=pairs)
    same(x, tensor(me, 2))
    raises(paceline.UsageError, "pg_options",
           lambda: dist.new_group([me], pg_options=object(), use_local_synchronization=True))


def check_barriers(comm):
    dist.barrier()
    dist.barrier(async_op=True).wait()
    pg = dist.distributed_c10d._get_default_group()
    for _ in range(3):
        pg.monitored_barrier()
    same_as_core = paceline.init()  # the world of torch, not a second one
    assert (same_as_core.rank, same_as_core.size) == (comm.rank, comm.size)


def check_functional(comm):
    import torch.distributed._functional_collectives as functional

    p, me = comm.size, comm.rank
    group = dist.group.WORLD
    same(functional.all_reduce(tensor(me, 3), "sum", group) + 0, total(p, 3))
    same(functional.all_gather_tensor(tensor(me, 3), 0, group) + 0,
         torch.cat([tensor(r, 3) for r in range(p)]))
    same(functional.reduce_scatter_tensor(tensor(me, 2 * p), "sum", 0, group) + 0,
         total(p, 2 * p)[2 * me :][:2])
    same(functional.broadcast(tensor(me, 3), p - 1, group) + 0, tensor(p - 1, 3))
    ones = [1] * p
    same(functional.all_to_all_single(tensor(me, p), ones, ones, group) + 0,
         torch.stack([tensor(r, p)[me] for r in range(p)]))
    compiled = torch.compile(lambda x: functional.all_reduce(x * 2, "sum", group), backend="eager")
    same(compiled(tensor(me, 3)) + 0, 2 * total(p, 3))


if __name__ == "__main__":
    import torch_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(torch_checks))
    dist.destroy_process_group()
