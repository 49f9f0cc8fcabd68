"""A program that ends in the way of its first word while its second is under way. Nothing of it
waits for what it has pushed. The last that each rank prints is what it has computed by then."""

import atexit
import os
import signal
import sys
import threading
import time

import numpy

result = numpy.zeros(4)
atexit.register(lambda: print("result", result.tolist(), flush=True))  # runs last

import paceline  # noqa: E402
from paceline import kvstore  # noqa: E402
from paceline.engine import Engine  # noqa: E402

HOW, WHAT, WHO = sys.argv[1:4]
LATE_S = 0.5
BREAKS = ("exception", "ctrl_c", "sigterm", "sighup", "os_exit")
SIGNALS = {"ctrl_c": signal.SIGINT, "sigterm": signal.SIGTERM, "sighup": signal.SIGHUP}
held = []  # what the program still holds when it ends


def start_call(comm, breaks_off):
    """A call that its peer enters late, and that nobody waits for."""
    if breaks_off:
        return
    if comm.rank == 0:
        time.sleep(LATE_S)
    request = comm.iallreduce(numpy.full(4, comm.rank + 1.0), out=result)
    if HOW != "dropped":
        held.append(request)


def push_tasks(comm):
    """A call whose operand comes late, and a task that reads what it has computed."""
    engine = Engine()
    if HOW != "dropped":
        held.append(engine)
    x = numpy.zeros(4)
    engine.push(lambda: (time.sleep(LATE_S), x.fill(comm.rank + 1)), write=[x])
    held.append(comm.dup())
    engine.call(held[-1], "allreduce", x)
    engine.push(lambda: numpy.copyto(result, x), read=[x], write=[result])


def push_to_store(comm, breaks_off, kind):
    """Some steps, and one that is not whole; whoever breaks off does not take part in it."""
    store = kvstore.create(kind, comm)
    if HOW != "dropped":
        held.append(store)
    keys, grads = ["a", "b"], [numpy.full(4, comm.rank + 1.0) for _ in range(2)]
    store.init(keys, [numpy.zeros(4), numpy.zeros(4)])
    for _ in range(2):
        store.pushpull(keys, grads, [numpy.zeros(4), numpy.zeros(4)])
    store.wait()
    if breaks_off:
        return
    grad = numpy.full(4, comm.rank + 1.0)
    if kind in ("auto", "depcha"):
        store._engine.push(lambda: time.sleep(LATE_S), write=[grad])
    store.push("b", grad)  # auto: the other key of its bucket never comes
    store.pull("b", result)


def under_way(comm, breaks_off):
    if WHAT == "idle":
        held.extend([Engine(), kvstore.create("auto", comm)])
    elif WHAT == "call":
        start_call(comm, breaks_off)
    elif WHAT == "tasks":
        push_tasks(comm)
    else:
        push_to_store(comm, breaks_off, WHAT)


def in_a_child():
    """What a child of fork() does with what it has of its parent's, and how it ends."""
    for thing in held:
        if isinstance(thing, Engine):
            thing.close()
            thing.give_up("is a child")
    if HOW == "child_exception":
        sys.stderr = open(os.devnull, "w")
        raise ValueError("a child")
    if HOW == "child_exit":
        sys.exit(3)
    held.clear()


def child_status(child):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "no end"


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    comm = paceline.init()
    breaks_off = HOW in BREAKS and (comm.rank == 0 or WHO == "all")
    under_way(comm, breaks_off)
    if HOW.startswith("child"):
        child = os.fork()
        if child == 0:
            in_a_child()
            return
        print("child", child_status(child), flush=True)
    elif HOW == "finalize":
        paceline.finalize()
    elif HOW == "exit":
        sys.exit(0)
    elif breaks_off:
        if HOW == "exception":
            raise ValueError("out of data")
        if HOW == "os_exit":
            os._exit(5)
        os.kill(os.getpid(), SIGNALS[HOW])
        threading.Event().wait(20)


main()
