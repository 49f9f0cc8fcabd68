"""Checks of collectives as tasks of paceline.engine."""

import contextlib
import random
import threading
import time

import numpy
from support import checks_in, data, raises, run_checks, same

import paceline
from paceline.engine import Engine


def check_operands_in_any_order(comm):
    """Each rank's arrays become ready in another order; calls pair all the same."""
    chance = random.Random(comm.rank)
    with Engine(compute=2) as engine:
        other = comm.dup()
        for _ in range(5):
            xs = [numpy.zeros(50 + 7 * i) for i in range(12)]
            order = list(range(12))
            chance.shuffle(order)
            made = {}
            for i in order:
                def fill(i=i):
                    time.sleep(chance.random() / 2000)
                    xs[i][:] = data(comm.rank, len(xs[i]))

                made[i] = engine.push(fill, write=[xs[i]])
            for i, x in enumerate(xs):
                engine.call(comm if i % 3 else other, "allreduce", x, priority=i % 4)
            engine.wait(*xs)
            for x in xs:
                same(x, sum(data(r, len(x)) for r in range(comm.size)))


def check_every_collective(comm):
    p, me = comm.size, comm.rank
    x = data(me, 2 * p)
    with Engine() as engine:
        gathered = engine.call(comm, "allgather", x, name="all of it")
        part = engine.call(comm, "reduce_scatter", x)
        engine.call(comm, "barrier")
        root = engine.call(comm, "broadcast", data(me, 3), root=p - 1)
        same(gathered.wait(), numpy.concatenate([data(r, 2 * p) for r in range(p)]))
        total = sum(data(r, 2 * p) for r in range(p))
        same(part.wait(), total[2 * me : 2 * me + 2])
        same(root.wait(), data(p - 1, 3))


def check_failure_is_told_to_all(comm):
    """One rank's operand fails: every rank hears why, and nobody gets a wrong sum."""
    part = comm.dup()
    bad = comm.size - 1
    x, y = data(comm.rank, 10), data(comm.rank, 10)

    def fail_on_one():
        if comm.rank == bad:
            raise ValueError("no gradient for conv1")

    engine = Engine()
    engine.push(fail_on_one, write=[x])
    first = engine.call(part, "allreduce", x, name="conv1")
    second = engine.call(part, "allreduce", y, name="conv2")  # of the same shape
    if comm.rank == bad:
        raises(ValueError, "no gradient for conv1", first.wait)
        raises(paceline.RankLost, "since an operand failed: ValueError: no gradient", second.wait)
    else:
        words = f"rank {bad}|allreduce 'conv1'|ValueError: no gradient for conv1"
        for task in (first, second):
            raises(paceline.RankLost, words, task.wait)
    engine.close()
    comm.barrier()  # which is not broken


def check_refused_call_is_told_to_all(comm):
    """One rank's call is refused when its turn comes: nobody takes the next call for it."""
    part = comm.dup()
    x, y = data(comm.rank, 10), 100 * data(comm.rank, 10)
    target = numpy.zeros(10)
    if comm.rank == 0:
        whole = numpy.concatenate([x, numpy.zeros(10)])
        x, target = whole[:10], whole[5:15]  # which overlap
    engine = Engine()
    first = engine.call(part, "allreduce", x, target)
    second = engine.call(part, "allreduce", y)  # of the same shape
    if comm.rank == 0:
        raises(paceline.UsageError, "overlap", first.wait)
    else:
        raises(paceline.RankLost, "rank 0|its call allreduce, which was refused", first.wait)
    raises(paceline.RankLost, "does not make its call allreduce", second.wait)
    with contextlib.suppress(paceline.Error):
        engine.close()
    comm.barrier()  # which is not broken


def check_order_of_names_differs(comm):
    """Two calls of one shape in another order on one rank: an error that names both, no sum."""
    part = comm.dup()
    names = ["fc.weight", "fc.bias"] if comm.rank == 0 else ["fc.bias", "fc.weight"]
    engine = Engine()
    tasks = [engine.call(part, "allreduce", data(comm.rank, 10), name=name) for name in names]
    if comm.size == 1:
        engine.close()
        return
    error = raises(paceline.MismatchError, "the tag differs", tasks[0].wait)
    raises(paceline.MismatchError, "the tag differs", tasks[1].wait)
    engine.close()
    # A rank that is slow to tell where it is, or late for the call, is not named everywhere.
    both = numpy.array(["#1 'fc.weight'" in str(error) and "#1 'fc.bias'" in str(error)])
    assert comm.allreduce(both, op="logical_or")[0], error


def check_questions_beside_errors_of_the_past(comm):
    """Calls end and write what a task of Python failed to write, while a thread that has Python's
    lock asks their communicator: neither waits for the other."""
    over = threading.Event()

    def ask():
        while not over.is_set():
            assert comm.timeout_ms > 0 and not comm.broken

    asks = threading.Thread(target=ask)
    asks.start()
    with Engine() as engine:
        for i in range(300):
            x = engine.variable()
            raises(ZeroDivisionError, "", engine.push(lambda: 1 / 0, write=[x]).wait)
            engine.call(comm, "allreduce", data(comm.rank, 10), write=[x])
            if i % 10 == 0:
                engine.wait(x)
    over.set()
    asks.join()


def check_given_up(comm):
    """A program that ends in the middle tells its peers."""
    part = comm.dup()
    try:
        with Engine() as engine:
            task = engine.call(part, "allreduce", data(comm.rank, 10))
            if comm.rank == 0 and comm.size > 1:
                raise RuntimeError("out of data")
            if comm.size > 1 and comm.rank > 0:
                engine.call(part, "barrier")
                engine.wait()
    except (RuntimeError, paceline.RankLost) as error:
        assert "out of data" in str(error), error
        assert task.done
    comm.barrier()


if __name__ == "__main__":
    import engine_checks

    run_checks(checks_in(engine_checks))
