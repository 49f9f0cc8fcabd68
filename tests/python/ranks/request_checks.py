"""Checks of what is not a plain call: requests, plans, parts of the world, threads."""

import gc
import signal
import sys
import threading
import time

import numpy
from support import DLPackOnly, checks_in, data, raises, run_checks, same

import paceline
from paceline import _core


def check_outstanding(comm):
    """Many under way at once, ended in another order."""
    xs = [data(comm.rank, 1 + 97 * i) for i in range(20)]
    requests = [comm.iallreduce(x) for x in xs]
    requests.append(comm.ibarrier())
    for i in reversed(range(20)):
        assert requests[i].wait() is xs[i]
        same(xs[i], sum(data(r, 1 + 97 * i) for r in range(comm.size)))
    assert requests[-1].wait() is None
    assert all(request.test() for request in requests)


def check_every_kind(comm):
    p, me = comm.size, comm.rank
    x, ones = data(me, 2 * p), [1] * p
    requests = {
        "allreduce": comm.iallreduce(x.copy()),
        "reduce": comm.ireduce(x.copy(), root=p - 1),
        "broadcast": comm.ibroadcast(x.copy(), root=p - 1),
        "reduce_scatter": comm.ireduce_scatter(x),
        "allgather": comm.iallgather(x),
        "alltoall": comm.ialltoall(x),
        "alltoallv": comm.ialltoallv(data(me, p), ones, ones),
        "gather": comm.igather(x),
        "gatherv": comm.igatherv(data(me, me), range(p)),
        "scatter": comm.iscatter(data(0, p) if me == 0 else None, numpy.empty(1)),
        "scatterv": comm.iscatterv(data(0, p), ones, numpy.empty(1)),
    }
    total = sum(data(r, 2 * p) for r in range(p))
    results = {name: request.wait() for name, request in requests.items()}
    same(results["allreduce"], total)
    same(results["broadcast"], data(p - 1, 2 * p))
    same(results["reduce_scatter"], total[2 * me :][:2])
    same(results["allgather"], numpy.concatenate([data(r, 2 * p) for r in range(p)]))
    same(results["alltoall"], numpy.concatenate([data(r, 2 * p)[2 * me :][:2] for r in range(p)]))
    same(results["alltoallv"], [data(r, p)[me] for r in range(p)])
    same(results["scatter"], data(0, p)[me : me + 1])
    same(results["scatterv"], data(0, p)[me : me + 1])
    assert (results["gather"] is None) == (me != 0)
    if me == p - 1:
        same(results["reduce"], total)
    if me == 0:
        same(results["gatherv"], numpy.concatenate([data(r, r) for r in range(p)]))


def check_goes_on_by_itself(comm):
    """Also where the thread was woken before for what somebody then waited for."""
    if _core.option("progress") == "caller":
        return
    count = 1 << 20
    total = sum(data(r, count) for r in range(comm.size))
    for _ in range(5):
        comm.barrier()
        time.sleep(0.1)  # longer than the thread looks up by itself
        some = [comm.iallreduce(data(comm.rank, count)) for _ in range(3)]
        for request in some:
            request.wait()
        time.sleep(0.1)
        x = data(comm.rank, count)
        request = comm.iallreduce(x)
        deadline = time.monotonic() + 15
        while not numpy.array_equal(x, total) and time.monotonic() < deadline:
            time.sleep(0.02)  # and asks for nothing
        same(x, total)
        request.wait()


def check_given_up(comm):
    """Requests that nobody waits for: their buffers live on until the core is done with them."""
    for i in range(30):
        comm.iallreduce(numpy.full(50_000, float(comm.rank)))
        gc.collect()
        junk = numpy.full(50_000, -1.0)
    same(comm.allreduce(numpy.full(5, 1.0)), [comm.size] * 5)
    assert (junk == -1).all()


def check_buffers_are_held(comm):
    x = bytearray(1000)
    request = comm.iallreduce(x, op="max")
    raises(BufferError, "re-sized", lambda: x.append(1))
    request.wait()
    x.append(1)


def check_no_references_are_left(comm):
    """What was passed is let go: after the call, after an error, after wait(), with the plan."""
    x = numpy.ones(100)
    for argument in (x, DLPackOnly(x), memoryview(x)):
        before = sys.getrefcount(argument), sys.getrefcount(x)
        for _ in range(3):
            comm.allreduce(argument)
            comm.iallreduce(argument).wait()
            comm.iallreduce(argument)
            plan = comm.plan("allreduce", argument)
            plan.start()
            plan.wait()
            raises(paceline.UsageError, "out", lambda: comm.allreduce(argument, x[:3]))
            del plan
        for _ in range(50):  # each looks for requests that have ended and that nobody waits for
            comm.barrier()
        after = sys.getrefcount(argument), sys.getrefcount(x)
        assert after == before, (type(argument), before, after)


def check_plan(comm):
    x = numpy.zeros(1001)
    plan = comm.plan("allreduce", x, op="max", segments=3)
    for i in range(50):
        x[:] = data(comm.rank, 1001) + i
        plan.start()
        assert plan.wait() is x
        same(x, data(comm.size - 1, 1001) + i)
    whole = comm.plan("allgather", numpy.full(2, comm.rank))
    whole.start()
    while not whole.test():
        pass
    same(whole.wait(), numpy.repeat(numpy.arange(comm.size), 2))
    gathered = comm.plan("gather", numpy.ones(2), root=0)
    gathered.start()
    assert (gathered.wait() is None) == (comm.rank != 0)


def check_plan_order(comm):
    plan = comm.plan("allreduce", numpy.ones(3))
    raises(paceline.UsageError, "start()", plan.wait)
    plan.start()
    raises(paceline.UsageError, "wait()", plan.start)
    plan.wait()
    raises(paceline.UsageError, "allreduce, reduce", lambda: comm.plan("all_reduce"))
    raises(paceline.UsageError, "allreduce", lambda: comm.plan("allreduce"))


def check_plan_waits_that_do_not_come_to_an_end(comm):
    """A signal's exception ends the wait alone; what ends the call ends its start as well."""
    if comm.size == 1:
        return
    x, other = numpy.ones(3), comm.dup()
    plan = comm.plan("allreduce", x)
    if comm.rank == 0:
        before = signal.signal(signal.SIGALRM, _interrupted)
        plan.start()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        raises(InterruptedError, "enough", plan.wait)
        signal.signal(signal.SIGALRM, before)
        other.barrier()
    else:
        other.barrier()  # behind the interrupted wait
        plan.start()
    assert plan.wait() is x
    same(x, [comm.size] * 3)
    if comm.rank == 0:
        plan.start()
        raises(paceline.TimeoutError, "0.1 s", lambda: plan.wait(timeout_ms=100))
        other.barrier()
        raises(paceline.UsageError, "start()", plan.wait)  # it has ended
        raises(paceline.TimeoutError, "0.1 s", plan.start)  # and so has the communicator
    else:
        other.barrier()
        raises(paceline.TimeoutError, "rank 0", lambda: (plan.start(), plan.wait()))


def _interrupted(*_):
    raise InterruptedError("enough")


def check_plan_waits_beside_other_threads(comm):
    """Who comes back late from the wait for one start leaves the next one alone.

    Python's handler of a signal runs inside the wait of the main thread and keeps it there, while
    another thread waits for the same start and makes the next.
    """
    if comm.size == 1:
        return
    x, other = numpy.ones(3), comm.dup()
    plan = comm.plan("allreduce", x)
    if comm.rank == 0:
        wait_late(plan, x, other)
    else:
        for _ in range(2):
            other.barrier()
            plan.start()
            plan.wait()
    same(x, [comm.size**2] * 3)
    raises(paceline.UsageError, "start()", plan.wait)


def wait_late(plan, x, other):
    inside, go, wrong, line = threading.Event(), threading.Event(), [], 0

    def keep(_, frame):
        if frame.f_lineno == line:  # else it is about to wait
            inside.set()
            go.wait(20)

    def overtake():
        try:
            while not inside.wait(0.1):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            other.barrier()  # the other ranks' first start
            assert plan.wait() is x
            plan.start()
        except BaseException as error:
            wrong.append(error)
        go.set()

    before = signal.signal(signal.SIGUSR1, keep)
    plan.start()
    thread = threading.Thread(target=overtake, daemon=True)
    thread.start()
    line = sys._getframe().f_lineno + 1
    assert plan.wait() is x
    thread.join(20)
    signal.signal(signal.SIGUSR1, before)
    assert not wrong, wrong
    assert not plan.test()  # the second one, which the others have yet to make
    other.barrier()
    plan.wait()


def check_split(comm):
    half = comm.split(comm.rank % 2, key=-comm.rank)
    members = [r for r in range(comm.size) if r % 2 == comm.rank % 2][::-1]
    assert half.size == len(members) and members[half.rank] == comm.rank
    same(half.allgather(numpy.array([comm.rank])), members)
    alone = comm.split(0 if comm.rank == 0 else -1)
    assert (alone is None) == (comm.rank != 0)
    if alone is not None:
        same(alone.allreduce(numpy.ones(1)), [1])


def check_priorities(comm):
    """Calls of any urgency are right; one that differs between ranks is an error, not a hang."""
    arrays = [data(comm.rank, 1000 + k) for k in range(6)]
    requests = [comm.iallreduce(x, priority=k % 3 - 1) for k, x in enumerate(arrays)]
    for k, request in enumerate(requests):
        same(request.wait(), sum(data(r, 1000 + k) for r in range(comm.size)))
    for wrong in (1 << 21, -(1 << 21), 1.5, "high"):
        words = "priority is |from -1048576 to 1048576"
        raises(paceline.UsageError, words, lambda w=wrong: comm.iallreduce(arrays[0], priority=w))
    if comm.size == 1:
        return
    part = comm.dup()
    raises(
        paceline.MismatchError, "the priority",
        lambda: part.iallreduce(arrays[0], priority=comm.rank).wait(),
    )  # fmt: skip


def check_dup_is_apart(comm):
    """Calls on a copy may be in another order than those on the original."""
    other = comm.dup()
    x, y = data(comm.rank, 100), data(comm.rank, 77)
    if comm.rank % 2:
        first, second = comm.iallreduce(x), other.iallreduce(y)
    else:
        second, first = other.iallreduce(y), comm.iallreduce(x)
    second.wait()
    first.wait()
    same(x, sum(data(r, 100) for r in range(comm.size)))
    same(y, sum(data(r, 77) for r in range(comm.size)))


def check_subgroup(comm):
    ranks = list(range(comm.size))[::-1]
    back = comm.subgroup(ranks, tag=77)
    assert back.rank == comm.size - 1 - comm.rank
    same(back.allgather(numpy.array([comm.rank])), ranks)
    if comm.rank > 0:
        part = comm.subgroup(range(1, comm.size), tag=78)
        same(part.allreduce(numpy.ones(1)), [comm.size - 1])
    raises(paceline.UsageError, "rank", lambda: comm.subgroup([comm.size], 1))
    for back in (back, None):  # while there is that group, and when it is gone
        raises(paceline.UsageError, "its tag has named", lambda: comm.subgroup(ranks, tag=77))


def check_threads(comm):
    """Threads with a communicator each, all waiting at the same time."""
    comms = [comm.dup() for _ in range(4)]
    wrong = []

    def work(own, number):
        for i in range(50):
            x = numpy.full(200, float(number))
            own.allreduce(x)
            if not (x == number * own.size).all():
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(own, i)) for i, own in enumerate(comms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def check_explain(comm):
    text = comm.explain("allreduce", numpy.zeros(1 << 20))
    assert ":" in text, text
    text = comm.explain("allreduce", numpy.zeros(8), algorithm="ring", segments=2)
    assert text.startswith("ring"), text


def check_wait_for(comm):
    request = comm.iallreduce(numpy.ones(3))
    while not request.wait_for(5):
        pass
    same(request.result, [comm.size] * 3)


def check_sleep_for(comm):
    """It ends when any call does, and goes on where nobody else waits."""
    late = comm.rank == comm.size - 1
    comm.barrier()
    one = comm.iallreduce(numpy.ones(100_000))
    time.sleep(0.2 if late else 0)
    other = comm.iallreduce(numpy.ones(3))
    begun = time.monotonic()
    while not one.sleep_for(20_000) or not other.sleep_for(20_000):
        pass
    assert time.monotonic() - begun < 10
    same(one.result, numpy.full(100_000, comm.size))
    same(other.result, [comm.size] * 3)
    assert one.sleep_for(1)


def check_wait_any(comm):
    """Of two communicators: the one whose call all ranks have made, not the first in the list."""
    other = comm.dup()
    late, early = numpy.ones(8), numpy.ones(8)
    requests = [] if comm.rank == 0 else [comm.iallreduce(late)]
    requests.append(other.iallreduce(early))
    if comm.rank != 0:
        assert paceline.wait_any(requests[:1], timeout_ms=20) is None, "rank 0 has not called it"
    assert paceline.wait_any(requests) == len(requests) - 1
    assert paceline.wait_any(requests, timeout_ms=1) == len(requests) - 1, "it stays complete"
    other.barrier()
    if comm.rank == 0:
        requests.insert(0, comm.iallreduce(late))
    assert paceline.wait_any(requests[:1]) == 0
    assert paceline.wait_any(requests) == 0, "the lowest of several"
    same(late, numpy.full(8, comm.size))
    same(early, numpy.full(8, comm.size))


def check_wait_all(comm):
    xs = [data(comm.rank, 1 + 50 * i) for i in range(6)]
    results = paceline.wait_all([comm.iallreduce(x) for x in xs])
    for i, x in enumerate(results):
        assert x is xs[i]
        same(x, sum(data(r, 1 + 50 * i) for r in range(comm.size)))
    assert paceline.wait_all([]) == []


def check_wait_all_raises(comm):
    """What went wrong with one of them, of which a rank may hear when it makes the call already."""
    if comm.size == 1:
        return
    x = numpy.ones(4)
    fine = comm.dup().iallreduce(x)
    raises(paceline.MismatchError, "count differs",
           lambda: paceline.wait_all([comm.iallreduce(numpy.ones(4 + comm.rank)), fine]))
    fine.wait()
    same(x, [comm.size] * 4)


def check_wait_any_refuses(comm):
    request = comm.ibarrier()
    raises(paceline.UsageError, "no requests", lambda: paceline.wait_any([]))
    raises(paceline.UsageError, "requests[1] is a int", lambda: paceline.wait_any([request, 3]))
    raises(paceline.UsageError, "requests[0] is a str", lambda: paceline.wait_all("a"))
    raises(paceline.UsageError, "timeout_ms is -1", lambda: paceline.wait_any([request], -1))
    request.wait()


def check_init_again(comm):
    world = paceline.init()
    assert paceline.init() is world and paceline.is_initialized()
    raises(ValueError, "already", lambda: paceline.init(world.rank, world.size + 1, "/nowhere"))


if __name__ == "__main__":
    import request_checks

    run_checks(checks_in(request_checks))
