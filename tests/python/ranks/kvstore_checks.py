"""Checks of paceline.kvstore on several ranks."""

import os
import random
import time
from unittest import mock

import numpy
from support import checks_in, data, raises, run_checks

import paceline
from paceline import kvstore
from paceline.engine import Engine
from paceline.kvstore import cores, plan

SHAPES = {"conv": (3, 5), 1: (70,), "bias": (), 3: (1, 2, 3), "fc": (257,)}


def same(x, wanted):
    numpy.testing.assert_array_equal(x, wanted)


def stores(comm):
    for kind in kvstore.TYPES:
        yield kvstore.create(kind, comm)


def value(rank, key, step=0):
    shape = SHAPES[key]
    count = int(numpy.prod(shape, dtype=int))
    return (data(rank, count) + 10_000 * step).astype("float32").reshape(shape)


def check_steps(comm):
    """init gives rank 0's values to all; every step's sums come back, whatever the order."""
    keys = list(SHAPES)
    for store in stores(comm):
        values = [value(comm.rank, key) for key in keys]
        store.init(keys, values)
        for key, array in zip(keys, values, strict=True):
            same(array, value(0, key))
        for step in range(3):
            grads = [value(comm.rank, key, step) for key in keys]
            store.push(keys, grads)
            outs = [numpy.zeros(SHAPES[key], "float32") for key in keys]
            store.pull(keys, outs, priority=step)
            store.wait()
            for key, out in zip(keys, outs, strict=True):
                same(out, sum(value(r, key, step) for r in range(comm.size)))
        store.barrier()
        store.close()


def plan_of_steps(comm):
    """auto: pushed from the first layer on, ready from the last on; pulls before and between. The
    text of its plan."""
    chance = random.Random(7)
    keys = [f"layer{i}" for i in range(20)]
    counts = [chance.randrange(1, 9000) for _ in keys]
    with Engine(compute=1) as engine:
        store = kvstore.create("auto", comm, engine=engine, outstanding=2)
        store.init(keys, [numpy.zeros(n, "float32") for n in counts])
        for step in range(6):
            grads = [numpy.zeros(n, "float32") for n in counts]
            for i in reversed(range(20)):
                def fill(i=i, step=step):
                    time.sleep(0.0005)
                    grads[i][:] = data(comm.rank, counts[i]) + step

                engine.push(fill, write=[grads[i]])
            if step == 4:  # one at a time
                for key, grad in zip(keys, grads, strict=True):
                    store.pushpull(key, grad)
            elif step == 5:  # a part of them only
                store.pushpull(keys[3:9], grads[3:9])
            else:
                store.pushpull(keys, grads)
            store.wait()
            for i in range(3 if step == 5 else 0, 9 if step == 5 else 20):
                total = sum(data(r, counts[i]) + step for r in range(comm.size))
                same(grads[i], total.astype("float32"))
            assert bool(store.plan) == (step > 0)
        found = " ".join(store.plan.split())
        store.close()
    assert "those pushed last come first" in found, found
    return found


def check_steps_in_buckets(comm):
    with mock.patch.object(cores.Cores, "of", lambda comm: None):
        found = plan_of_steps(comm)
    assert "auto: 20 keys, " in found and "in 20 buckets" not in found, found


def check_steps_in_one_call(comm):
    """Where the ranks fill the cores of their node. All know of the others' cores and threads."""
    allowed = sorted(os.sched_getaffinity(0))
    mine = {allowed[comm.rank % len(allowed)]}
    count = min(comm.size, len(allowed))
    for threads, told in ((1 + comm.rank, True), (0, False)):
        with mock.patch.object(os, "sched_getaffinity", lambda pid: mine), \
                mock.patch.object(cores, "_threads", lambda threads=threads: threads):
            found = plan_of_steps(comm)
        sentence = ("computing hides nothing, since "
                    f"{comm.size * (comm.size + 1) // 2} threads of the ranks compute on the "
                    f"{count} cores of their node")
        assert (sentence in found) == (told and comm.size > 1), found


def check_steps_in_pieces(comm):
    """Keys that are long for their links go in pieces, between which others pass."""
    with mock.patch.object(plan, "LEAST_BYTES", 64), \
            mock.patch.object(cores.Cores, "of", lambda comm: None), \
            mock.patch.multiple(plan.Prices, bucket_bytes=lambda _: 2048, cost_s=lambda _, n: n):
        found = plan_of_steps(comm)
    assert " 0 times a call lets others pass" not in found, found


def check_keys_made_while_pushes_are_under_way(comm):
    """Their calls do not meet those of sums that wait for a late gradient."""
    for kind in kvstore.TYPES:
        with Engine() as engine:
            store = kvstore.create(kind, comm, engine=engine)
            store.init("a", numpy.zeros(9))
            for step in range(3):
                grad = numpy.zeros(9)

                def fill(grad=grad):
                    time.sleep(0.1 * comm.rank)
                    grad[:] = comm.rank + 1

                engine.push(fill, write=[grad])
                store.push("a", grad)
                new = numpy.full(9, comm.rank + 5.0)
                store.init(step, new)
                same(new, numpy.full(9, 5.0))
                store.pull("a", grad)
                store.wait()
                same(grad, numpy.full(9, sum(range(1, comm.size + 1))))
            store.close()


def check_long_lists(comm):
    """Keys by the hundred, some twice in a list, with several values, or pushed one by one."""
    count = 300
    for store in stores(comm):
        keys = [*range(count), 7, 200]
        store.init(keys[:count], [numpy.zeros(3, "float32") for _ in range(count)])
        for step in range(4):
            values = [numpy.full(3, step + key + comm.rank, "float32") for key in keys]
            values[150] = [values[150], values[150].copy()]
            outs = [numpy.zeros(3, "float32") for _ in keys]
            if step == 2:
                store.push(keys[:count:2], values[:count:2])
                store.push(keys[1:count:2], values[1:count:2])
            else:
                store.push(keys, values)
            store.pull(keys, outs)
            store.wait()
            for key, out in zip(keys, outs, strict=True):
                times = 2 if key == 150 or (key in (7, 200) and step != 2) else 1
                total = times * sum(step + key + rank for rank in range(comm.size))
                assert (out == total).all(), (store.type, step, key, out, total)
        store.close()


def check_many_steps_under_way(comm):
    """A pull sees what was pushed before it, and not what was pushed later."""
    for store in stores(comm):
        store.init("w", numpy.zeros(50, "float32"))
        outs = []
        for step in range(30):
            store.push("w", numpy.full(50, step + comm.rank, "float32"))
            outs.append(numpy.zeros(50, "float32"))
            store.pull("w", outs[-1])
        store.wait("w")
        for step, out in enumerate(outs):
            same(out, numpy.full(50, sum(step + r for r in range(comm.size))))
        store.close()


def check_devices_are_summed_first(comm):
    for store in stores(comm):
        store.init("fc", value(0, "fc"))
        grads = [value(comm.rank, "fc", k) for k in range(3)]
        outs = [numpy.zeros(257, "float32") for _ in range(2)]
        store.pushpull("fc", grads, outs)
        store.wait()
        total = sum(value(r, "fc", k) for r in range(comm.size) for k in range(3))
        for out in outs:
            same(out, total)
        store.close()


def check_gradients_that_tasks_make(comm):
    """Gradients become ready in another order on each rank, in the caller's own engine."""
    chance = random.Random(comm.rank)
    keys = list(SHAPES)
    for kind in kvstore.TYPES:
        with Engine() as engine:
            store = kvstore.create(kind, comm, engine=engine)
            store.init(keys, [value(0, key) for key in keys])
            grads = {key: numpy.zeros(SHAPES[key], "float32") for key in keys}
            for key in chance.sample(keys, len(keys)):
                def fill(key=key):
                    time.sleep(chance.random() / 1000)
                    grads[key][...] = value(comm.rank, key, 5)

                engine.push(fill, write=[grads[key]])
            for key in keys:
                store.pushpull(key, grads[key])
            store.wait()
            for key in keys:
                same(grads[key], sum(value(r, key, 5) for r in range(comm.size)))
            store.close()


def check_torch(comm):
    import torch

    for store in stores(comm):
        w = torch.full((4, 3), float(comm.rank))
        store.init("w", w)
        assert w.eq(0).all()
        g = torch.full((4, 3), comm.rank + 1, dtype=torch.float32)
        store.pushpull("w", g)
        store.wait()
        assert g.eq(sum(range(1, comm.size + 1))).all()
        store.close()


def check_keys_differ(comm):
    """Another key, shape or number of keys on one rank: an error that says which, on all."""
    last = comm.rank == comm.size - 1
    if comm.size == 1:
        return
    cases = [
        (["a", "b" if last else "c"], [3, 3], "rank 0 makes key 'c', rank|key 'b' in its place"),
        (["a", "b"], [3, 5 if last else 4], "key 'b' has shape (4,) and type float32|(5,)"),
        (["a", "b", "c"][: 3 if last else 2], [3] * 3, "rank 0 makes 2 keys, rank|makes 3"),
    ]
    for store in stores(comm):
        for keys, counts, words in cases:
            values = [numpy.zeros(n, "float32") for n in counts[: len(keys)]]
            raises(paceline.MismatchError, words, lambda: store.init(keys, values))
        store.init("a", numpy.zeros(3, "float32"))  # nothing was made, and nothing is broken
        store.close()


def check_order_of_pushes_differs(comm):
    """Two keys of one shape in another order on one rank: an error, never a wrong sum."""
    if comm.size == 1:
        return
    for kind in kvstore.TYPES:
        store = kvstore.create(kind, comm, **{"communicators": 1} if kind == "concom" else {})
        zeros = numpy.zeros(9, "float32")
        store.init(["a", "b"], [zeros, zeros.copy()])
        keys = ["a", "b"] if comm.rank == 0 else ["b", "a"]

        def step():
            for key in keys:
                store.push(key, numpy.full(9, 1 + ord(key), "float32"))
            store.wait()

        raises(paceline.MismatchError, "the tag differs", step)


def check_ranks_that_push_in_orders_of_their_own(comm):
    """Keys that have buckets; a later plan puts keys on all ranks where rank 0 has them."""
    store = kvstore.create("auto", comm)
    store.init(["a", "b"], [numpy.zeros(9, "float32") for _ in range(2)])

    def step(*keys):
        store.push(keys, [numpy.full(9, (comm.rank + 1) * 10 ** "abcd".index(key), "float32")
                          for key in keys])
        store.wait()
        total = comm.size * (comm.size + 1) // 2
        for key in keys:
            same(store.buffer(key), numpy.full(9, total * 10 ** "abcd".index(key)))

    step("a", "b")
    for new in "cd":   # a key without a bucket: a plan is made at the end of this round
        store.init(new, numpy.zeros(9, "float32"))
        step(*("ab" if comm.rank % 2 == 0 else "ba"), new)
    for _ in range(3):
        step(*random.Random(comm.rank).sample("abcd", 4))
    store.close()


def check_a_plan_that_differs_is_told(comm):
    """Buckets of the same length with keys in another order would be summed without a word."""
    if comm.size == 1:
        return
    store, keys, values = kvstore.create("auto", comm), ["a", "b"], [numpy.ones(9), numpy.ones(9)]
    store.init(keys, values)
    store.push(keys, values)
    make = plan.Plan.make
    with mock.patch.object(plan.Plan, "make", lambda entries, *rest: make(
            entries[::-1] if comm.rank == 1 else entries, *rest)):
        store.push(keys, values)
    raises(paceline.MismatchError, "the tag differs", store.wait)


def check_priorities_reach_the_calls(comm):
    """Those of keys, and of auto's buckets: calls whose priorities differ are an error."""
    keys = ["a", "b"]
    for kind in ("depcha", "concom", "auto"):
        store = kvstore.create(kind, comm)
        values = [numpy.ones(9, "float32") for _ in keys]
        store.init(keys, [numpy.zeros(9, "float32") for _ in keys])
        for wrong in ((1 << 20) + 1, -(1 << 20) - 1):
            words = f"kvstore: push: priority is {wrong}; it must be from -1048576 to 1048576."
            raises(paceline.UsageError, words,
                   lambda store=store, values=values, wrong=wrong:
                   store.push(keys, values, priority=wrong))
        for priority in (0, 7, -7, 1 << 20, -(1 << 20)):
            store.push(keys[0], values[0])
            store.push(keys[1], values[1], priority=priority)
            store.wait()
            same(store.buffer("b"), numpy.full(9, comm.size))

        def step(store=store, values=values):
            store.push(keys[0], values[0])
            store.push(keys[1], values[1], priority=comm.rank)
            store.wait()

        if comm.size > 1:
            raises(paceline.MismatchError, "the priority", step)


def check_failing_task(comm):
    """A gradient that cannot be computed on one rank: every rank hears of it."""
    bad = comm.size - 1

    def fails():
        if comm.rank == bad:
            raise ArithmeticError("loss is not finite")

    for kind in kvstore.TYPES:
        engine = Engine()
        store = kvstore.create(kind, comm, engine=engine)
        store.init("w", numpy.zeros(9, "float32"))
        comm.barrier()  # what breaks the store must not find a rank in init()
        grad = numpy.ones(9, "float32")
        engine.push(fails, write=[grad])

        def step():
            store.push("w", grad)
            store.wait()

        if comm.rank == bad:
            raises(ArithmeticError, "loss is not finite", step)
        else:
            words = f"rank {bad}|allreduce 'key 'w''|ArithmeticError: loss is not finite"
            raises(paceline.RankLost, words, step)
        engine.close()


def check_a_list_with_a_key_that_is_held_back(comm):
    """auto: what has been pushed to it, and waits for others of its bucket, is summed before."""
    keys, zeros = ["a", "b", "c"], [numpy.zeros(4) for _ in range(3)]
    store = kvstore.create("auto", comm)
    store.init(keys, zeros)
    for _ in range(2):
        store.pushpull(keys, [zero.copy() for zero in zeros])
        store.wait()
    ranks = comm.size * (comm.size + 1) // 2
    for pushed in (["a"], ["a", "b"]):
        store.push(pushed, [numpy.full(4, comm.rank + 1.0) for _ in pushed])
        store.push(["b", "a"], [numpy.full(4, n * (comm.rank + 1.0)) for n in (10, 100)])
        store.pull(keys[:2], zeros[:2])
        store.wait()
        same(zeros[0], numpy.full(4, 100.0 * ranks))
        same(zeros[1], numpy.full(4, 10.0 * ranks))
    store.close()


def check_a_key_that_one_rank_alone_waits_for(comm):
    """By auto's plan it waits for a bucket of which the others never push a part."""
    if comm.size == 1:
        return
    keys = ["a", "b", "c"]
    store, x = kvstore.create("auto", comm), [numpy.ones(4) for _ in keys]
    store.init(keys, x)
    for _ in range(2):
        store.pushpull(keys, x, [numpy.zeros(4) for _ in keys])
        store.wait()
    if comm.rank == 0:
        store.push(keys, x)
        raises(paceline.MismatchError, "count differs", lambda: store.wait("c"))
    else:
        store.push(keys[:2], x[:2])
        raises(paceline.MismatchError, "rank 0", store.wait)
    raises(paceline.MismatchError, "", store.close)


if __name__ == "__main__":
    import kvstore_checks

    run_checks(checks_in(kvstore_checks))
