"""Checks of tensors whose memory is not what it looks like, in every call; and of what becomes of a
result that cannot be copied back."""

import os
from datetime import timedelta
from unittest import mock

import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks
from torch_checks import same
from torch_names import all_gather_single, reduce_scatter_single, tensor

import paceline
import paceline.torch
from paceline.torch import minors

LONG = bool(os.environ.get("PACELINE_LONG"))
SHAPE = (2, 2, 2, 2)
GROUP = None  # in which the calls below are made; None: in the group of all ranks


def _inference(values):
    with torch.inference_mode():
        return values.clone()


# Each makes a tensor of another kind that holds these values.
class Named(torch.Tensor):
    """What a program may derive: memory like any other's, and a name."""


class Hollow(torch.Tensor):
    """One whose numbers are in another, as a DTensor's are."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, call, types, args=(), kwargs=None):
        raise NotImplementedError(f"{call} of a tensor that is hollow")


KINDS = {
    "contiguous": torch.clone,
    "channels_last": lambda v: v.clone(memory_format=torch.channels_last),
    "a parameter": lambda v: torch.nn.Parameter(v.clone()),
    "a parameter in channels_last": lambda v: torch.nn.Parameter(
        v.clone(memory_format=torch.channels_last)),
    "transposed": lambda v: v.transpose(0, 3).contiguous().transpose(0, 3),
    "every second": lambda v: torch.stack([v, v], -1)[..., 0],
    "negated": lambda v: torch._neg_view(-v),
    "of inference": _inference,
    "of inference, channels_last": lambda v: _inference(
        v.clone(memory_format=torch.channels_last)),
    "of a subclass": lambda v: v.clone().as_subclass(Named),
    "of a subclass, transposed": lambda v: v.mT.contiguous().mT.as_subclass(Named),
    "a parameter of a subclass": lambda v: torch.nn.Parameter(v.clone().as_subclass(Named)),
    "a buffer": lambda v: torch.nn.Buffer(v.clone()),
    "strides that interleave": lambda v: torch.empty(40).as_strided(SHAPE, (3, 2, 6, 20)).copy_(v),
}  # fmt: skip


def _conjugated(values):
    return torch.complex(values, values).conj()


# Several elements are one place in memory; or it says other than its memory holds.
REFUSED = {
    "expanded": lambda v: v[:1].clone().expand(SHAPE),
    "windows": lambda v: torch.zeros(20).as_strided(SHAPE, (1, 2, 2, 4)),
    "a conjugate view": _conjugated,
    "nested": lambda v: torch.nested.nested_tensor([v[0], v[1]]),
    "hollow": Hollow,
}

# Where we are a group's backend, torch hands every backend a copy of these and drops the result.
if minors.Base is not minors.AsGroup:
    del KINDS["negated"], REFUSED["a conjugate view"]

# Of those above, and one more, what there is without dimensions.
SCALARS = {
    **{kind: KINDS[kind] for kind in ("contiguous", "a parameter", "negated", "of inference",
                                      "of a subclass", "every second") if kind in KINDS},
    "an element": lambda v: torch.stack([v, v])[1],
}  # fmt: skip


def _rows(p, make):
    return [make(torch.zeros(SHAPE)) for _ in range(p)]


def _mine(me, number=0):
    return tensor(me, *SHAPE) + 1000 * number


# Each makes calls with tensors from make(values), and returns them beside what they hold then.
# A parameter is a leaf of autograd: what is copied into it must not be recorded.
def _all_reduce(p, me, make, begun):
    x = make(_mine(me))
    begun(dist.all_reduce(x, group=GROUP, async_op=True))
    return [(x, sum(_mine(r) for r in range(p)))]


def _all_reduce_coalesced(p, me, make, begun):
    xs = [make(_mine(me)), make(_mine(me, 1))]
    begun(dist.all_reduce_coalesced(xs, group=GROUP, async_op=True))
    return [(x, sum(_mine(r, i) for r in range(p))) for i, x in enumerate(xs)]


def _broadcast(p, me, make, begun):
    x = make(_mine(me))
    begun(dist.broadcast(x, p - 1, group=GROUP, async_op=True))
    return [(x, _mine(p - 1))]


def _reduce(p, me, make, begun):
    x = make(_mine(me))
    begun(dist.reduce(x, p - 1, group=GROUP, async_op=True))
    return [(x, sum(_mine(r) for r in range(p)))] if me == p - 1 else []


def _all_gather(p, me, make, begun):
    rows = _rows(p, make)
    begun(dist.all_gather(rows, make(_mine(me)), group=GROUP, async_op=True))
    return [(row, _mine(r)) for r, row in enumerate(rows)]


def _gather(p, me, make, begun):
    rows = _rows(p, make)
    given = rows if me == 0 else None
    begun(dist.gather(make(_mine(me)), given, 0, group=GROUP, async_op=True))
    return [(row, _mine(r)) for r, row in enumerate(rows)] if me == 0 else []


def _scatter(p, me, make, begun):
    x = make(torch.zeros(SHAPE))
    rows = [make(_mine(0, r)) for r in range(p)]
    begun(dist.scatter(x, rows if me == 0 else None, 0, group=GROUP, async_op=True))
    return [(x, _mine(0, me))]


def _reduce_scatter(p, me, make, begun):
    x = make(torch.zeros(SHAPE))
    parts = [make(_mine(me, r)) for r in range(p)]
    begun(dist.reduce_scatter(x, parts, group=GROUP, async_op=True))
    return [(x, sum(_mine(r, me) for r in range(p)))]


def _all_to_all(p, me, make, begun):
    rows = _rows(p, make)
    parts = [make(_mine(me, r)) for r in range(p)]
    begun(dist.all_to_all(rows, parts, group=GROUP, async_op=True))
    return [(row, _mine(r, me)) for r, row in enumerate(rows)]


def _singles(p, me, make, begun):
    """The calls whose one tensor is as long as those of all ranks; here of each, in turn."""
    x = make(_mine(me))
    whole = torch.empty(2 * p, *SHAPE[1:])
    begun(all_gather_single(whole, x, group=GROUP, async_op=True))
    found = [(part, _mine(r)) for r, part in enumerate(whole.split(2))]
    out = make(torch.zeros(SHAPE))
    begun(reduce_scatter_single(out, whole.clone(), group=GROUP, async_op=True))
    found.append((out, p * _mine(me)))
    if p <= 2:
        turned = make(torch.zeros(SHAPE))
        begun(dist.all_to_all_single(turned, x, group=GROUP, async_op=True))
        found.append((turned, torch.cat([_mine(r).chunk(p)[me] for r in range(p)])))
    return found


def _isend_irecv(p, me, make, begun, source=True):
    if p == 1:
        return []
    x, left = make(torch.zeros(SHAPE)), (me - 1) % p
    works = [dist.isend(make(_mine(me)), (me + 1) % p), dist.irecv(x, left if source else None)]
    for work in works:
        begun(work)
    return [(x, _mine(left))]


def _from_any_source(p, me, make, begun):
    return _isend_irecv(p, me, make, begun, source=False)


def _send_recv(p, me, make, begun):
    if p == 1:
        return []
    x, left = make(torch.zeros(SHAPE)), (me - 1) % p
    if me:
        dist.recv(x, left)
    dist.send(make(_mine(me)), (me + 1) % p)
    if not me:
        dist.recv(x, left)
    return [(x, _mine(left))]


POINTS = (_isend_irecv, _from_any_source, _send_recv)
CALLS = (_all_reduce, _all_reduce_coalesced, _broadcast, _reduce, _all_gather, _gather, _scatter,
         _reduce_scatter, _all_to_all, _singles)  # fmt: skip


def _by_future(work):
    (work.get_future() if hasattr(work, "get_future") else work).wait()


def check_every_kind_in_every_call(comm):
    """What is waited for, and what a future's thread copies back."""
    assert not (wrong := _wrong(comm, (*CALLS, *POINTS), KINDS)), wrong


def check_scalars_in_every_call(comm):
    """Tensors of no dimension; all_gather_single and its like want one."""
    with mock.patch.dict(globals(), SHAPE=()):
        assert not (wrong := _wrong(comm, (*CALLS[:-1], *POINTS), SCALARS)), wrong


def _wrong(comm, calls, kinds):
    wrong = []
    for ending in (lambda work: work.wait(), _by_future):
        for call in calls:
            for kind, make in kinds.items():
                for holds, should in call(comm.size, comm.rank, make, ending):
                    if not torch.equal(holds.detach(), should):
                        wrong.append(f"{call.__name__} of one that is {kind}")
    return wrong


def check_what_is_refused_is_refused_before_it_is_sent(comm):
    for call in CALLS[:4]:
        for make in REFUSED.values():
            raises((paceline.RefusalError, RuntimeError), "ensor",  # by us, or by torch itself
                   lambda call=call, make=make: call(
                       comm.size, comm.rank, make, lambda work: work.wait()))
            x = _mine(comm.rank)
            dist.all_reduce(x)  # nobody's call is left over
            same(x, sum(_mine(r) for r in range(comm.size)))


def _on_one_rank(make, me):
    return make if me == 0 else torch.clone


def _refused_by_torch():
    """The kinds that torch itself refuses, before it asks a backend (docs/conformance.md has which
    does so when); found by a call that all ranks make."""
    kinds = {}
    for kind, make in REFUSED.items():
        try:
            dist.all_reduce(make(_mine(0)))
        except paceline.RefusalError:  # by us
            continue
        except RuntimeError:
            kinds[kind] = make
    return kinds


def check_kinds_on_one_rank_alone(comm):
    """In every call, where the other ranks' tensors are contiguous."""
    kinds = {kind: _on_one_rank(make, comm.rank) for kind, make in KINDS.items()}
    assert not (wrong := _wrong(comm, CALLS, kinds)), wrong


def check_what_is_refused_on_one_rank_alone(comm):
    """Where it is not served, that rank is refused, and the others hear of it before any of them
    has a result: in this call, or, where that needs nothing of that rank, in a later one."""
    if comm.size == 1:
        return
    by_torch = _refused_by_torch()
    kinds = {kind: make for kind, make in REFUSED.items() if kind not in by_torch}
    assert {"expanded", "windows"} <= set(kinds), by_torch
    for number, call in enumerate(CALLS):
        for kind in kinds if LONG else [list(kinds)[number % len(kinds)]]:  # 0.25 s each
            make = kinds[kind]
            with mock.patch.dict(globals(), GROUP=dist.new_group(timeout=timedelta(seconds=20))):
                said = _said(call, comm, _on_one_rank(make, comm.rank))
            where = f"{call.__name__} of one that is {kind}: {said}"
            assert all(said) or not any(said), where
            assert "ensor" in said[0] or not said[0], where
            assert all("rank 0" in word and "refused" in word for word in said[1:] if word), where


def check_what_torch_itself_refuses_on_one_rank_alone(comm):
    """torch raises before it asks a backend, so the others cannot hear of it: their time-out names
    the rank."""
    if comm.size == 1:
        return
    me, x = comm.rank, tensor(comm.rank, *SHAPE)
    dtype = torch.float64 if me == 0 else x.dtype
    rows = [torch.zeros(SHAPE, dtype=dtype) for _ in range(comm.size)]
    calls = [("different dtypes", lambda group: dist.all_gather(rows, x, group=group))]
    kinds = {"a conjugate view": _conjugated, **_refused_by_torch()}
    for make in list(kinds.values())[:None if LONG else 3]:  # 1 s each
        odd = _on_one_rank(make, me)(x)
        calls.append(("ensor", lambda group, odd=odd: dist.all_reduce(odd, group=group)))
    for words, call in calls:
        group = dist.new_group(timeout=timedelta(seconds=1))
        if me == 0:
            raises((RuntimeError, ValueError), words, lambda call=call, group=group: call(group))
        else:
            raises(paceline.TimeoutError, "rank 0", lambda call=call, group=group: call(group))
        dist.barrier()


def _said(call, comm, make):
    """By every rank, of a call in a group of its own: the error; empty where results are right."""
    said = ""
    try:
        for holds, should in call(comm.size, comm.rank, make, lambda work: work.wait()):
            assert torch.equal(holds.detach(), should), "a wrong result"
        for _ in range(2):
            dist.barrier(GROUP)
    except (paceline.Error, RuntimeError) as error:
        said = str(error)
    everybodys = [""] * comm.size
    dist.all_gather_object(everybodys, said)
    return everybodys


def check_messages_that_are_refused(comm):
    """What shares its places in memory can be sent, though not received."""
    if comm.size == 1:
        return
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for kind, make in REFUSED.items():
        odd = make(_mine(comm.rank))
        refused = (paceline.RefusalError, RuntimeError)
        raises(refused, "", lambda odd=odd: dist.irecv(odd, left))
        if kind not in ("expanded", "windows"):
            raises(refused, "", lambda odd=odd: dist.isend(odd, right))
            continue
        work, x = dist.isend(odd, right), torch.zeros(SHAPE)
        dist.recv(x, left)
        assert torch.equal(x, make(_mine(left)))
        work.wait()


def check_what_the_root_alone_is_given_and_refused(comm):
    """The others hear why it does not come: in this call, or where that has sent their part of a
    gather and returned, in the next one."""
    p, me = comm.size, comm.rank
    if p == 1:
        return

    def begin(call, given, group):
        getattr(dist, call)(torch.ones(SHAPE), given, 0, group)
        dist.barrier(group)

    plain, by_torch = torch.zeros(SHAPE), _refused_by_torch()
    for kind in ("windows", "hollow"):
        for call in ("gather", "scatter"):
            if kind in by_torch or (call == "scatter" and kind == "windows"):
                continue  # we are not asked; or it can be sent
            rows, group = [*_rows(p - 1, torch.clone), REFUSED[kind](plain)], dist.new_group()
            given = rows if me == 0 else None
            words = f"rank 0|{call}|refused" if me else ""
            raises((paceline.Error, RuntimeError), words,
                   lambda call=call, given=given, group=group: begin(call, given, group))
    dist.all_reduce(x := _mine(me))
    same(x, sum(_mine(r) for r in range(p)))


def check_an_error_of_copying_back_is_its_own_calls(comm):
    """A call that was begun under inference_mode is completed outside; and one that cannot be
    copied back fails whenever it is asked, and no other."""
    with torch.inference_mode():
        rows = _rows(comm.size, torch.clone)
        work = dist.all_gather(rows, _mine(comm.rank), async_op=True)
    work.get_future().wait()
    for r, row in enumerate(rows):
        assert torch.equal(row, _mine(r))
    out = KINDS["channels_last"](torch.zeros(SHAPE))
    failing = dist.all_reduce(out, async_op=True)
    out.resize_(1)  # while it is under way
    raises(RuntimeError, "shape", failing.get_future().wait)
    for _ in range(2):
        raises(RuntimeError, "shape", failing.wait)
        assert failing.is_completed() and not failing.is_success()
    x = _mine(comm.rank)
    dist.all_reduce(x, async_op=True).get_future().wait()
    same(x, sum(_mine(r) for r in range(comm.size)))


if __name__ == "__main__":
    import tensor_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(tensor_checks), paceline.init())
    dist.destroy_process_group()
