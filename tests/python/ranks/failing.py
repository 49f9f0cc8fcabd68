"""Worlds in which something goes wrong; the first argument says what. Survivors print one line."""

import contextlib
import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy
from notes import await_notes, note

import paceline


def told(call):
    """Prints the class and the message of what `call` raises, and after how many seconds."""
    begin = time.monotonic()
    try:
        call()
    except paceline.Error as error:
        print(f"{type(error).__name__} {time.monotonic() - begin:.2f} {error}")
    else:
        print("nothing")


def killed(comm):
    """The last rank is killed in the middle of work; the others wait for it."""
    comm.allreduce(numpy.ones(10))
    if comm.rank == comm.size - 1:
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    told(lambda: comm.allreduce(numpy.ones(100_000)))
    told(lambda: comm.allreduce(numpy.ones(1)))


def killed_while_sending(comm):
    """As above, but the message is on its way when it happens."""
    if comm.rank == comm.size - 1:
        comm.iallreduce(numpy.ones(8_000_000))
        os.kill(os.getpid(), signal.SIGKILL)
    told(lambda: comm.iallreduce(numpy.ones(8_000_000)).wait())


def killed_unnoticed(comm):
    """Nobody waits when it happens; the next call tells."""
    if comm.rank == comm.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    told(comm.barrier)


def await_continuation(comm):
    """CONTINUED is "after" so many seconds, or "when" the other ranks have heard."""
    how, _, seconds = os.environ["CONTINUED"].partition(" ")
    if how == "after":
        time.sleep(float(seconds))
    else:
        await_notes(range(comm.size - 1))


def stop_last(comm):
    """The last rank is stopped; a child of it, which is not, lets it go on after a while."""
    comm.allreduce(numpy.ones(10))
    if comm.rank != comm.size - 1:
        return
    rank = os.getpid()
    if "CONTINUED" in os.environ and os.fork() == 0:
        await_continuation(comm)
        os.kill(rank, signal.SIGCONT)
        os._exit(0)
    os.kill(rank, signal.SIGSTOP)


def stopped(comm):
    """The last rank is stopped in the middle of work and stays so; the others wait for it."""
    print("process", os.getpid())
    stop_last(comm)
    told(lambda: comm.allreduce(numpy.ones(100_000)))
    told(lambda: comm.allreduce(numpy.ones(1)))
    print("broken", comm.broken)
    sys.exit(3)


def stopped_and_continued(comm):
    """As above, but somebody continues it; the others have waited for it, or hear why not."""
    stop_last(comm)
    told(lambda: comm.allreduce(numpy.ones(100_000)))
    note(comm)
    told(comm.barrier)


def freeze(how):
    """Freezes its own control group, GROUP, or lets it go on."""
    group = Path(os.environ["GROUP"])
    unified = (group / "cgroup.freeze").exists()
    file = group / ("cgroup.freeze" if unified else "freezer.state")
    file.write_text(("1" if how else "0") if unified else "FROZEN" if how else "THAWED")


def frozen(comm):
    """The last rank is frozen for a while, as if its container were; the others wait for it."""
    comm.allreduce(numpy.ones(10))
    if comm.rank == comm.size - 1:
        if os.fork() == 0:   # outside of the group
            await_continuation(comm)
            freeze(False)
            os._exit(0)
        (Path(os.environ["GROUP"]) / "cgroup.procs").write_text(str(os.getpid()))
        freeze(True)
    told(lambda: comm.allreduce(numpy.ones(100_000)))
    note(comm)
    told(comm.barrier)


def out_of_memory(comm):
    """The last rank takes more memory than its control group has: the system kills it."""
    comm.allreduce(numpy.ones(10))
    if comm.rank == comm.size - 1:
        (Path(os.environ["GROUP"]) / "cgroup.procs").write_text(str(os.getpid()))
        taken = [numpy.ones(1_000_000) for _ in range(1000)]
        print("not killed", len(taken))
    told(lambda: comm.allreduce(numpy.ones(100_000)))
    told(lambda: comm.allreduce(numpy.ones(1)))


def no_memory(comm):
    """The last rank may not have the memory that a call needs besides its buffers."""
    x = numpy.ones(8_000_000)
    with contextlib.suppress(paceline.ResourceError):   # who is still in it then hears it here
        comm.allreduce(numpy.ones(10), algorithm="ring")
    if comm.rank == comm.size - 1:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20),) * 2)
    told(lambda: comm.allreduce(x, algorithm="ring"))
    told(comm.barrier)
    print("broken", comm.broken)


def broken_and_closed(comm):
    """Communicators that break in the middle of a call leave nothing; prints what is kept."""
    def breaks(part, turn):
        if comm.rank == 1:
            await_notes([0], turn)
        told(lambda: part.allreduce(numpy.ones(50), timeout_ms=100))
        note(comm, turn)

    kept = []
    for turn in range(6):
        breaks(comm.dup(), turn)
        comm.barrier()
        maps = Path("/proc/self/maps").read_text().count("(deleted)")
        kept.append((maps, len(os.listdir("/proc/self/fd"))))
    print("kept", 0, kept)


def left(comm):
    """The last rank ends in peace; the others still want something of it."""
    comm.barrier()
    if comm.rank != comm.size - 1:
        told(lambda: comm.allreduce(numpy.ones(5)))


def finalized(comm):
    """After finalize() nothing works any more, and init() can start anew."""
    comm.barrier()
    paceline.finalize()
    told(lambda: comm.allreduce(numpy.ones(5)))
    again = paceline.init()
    assert again.allreduce(numpy.ones(1)).tolist() == [again.size]


def late(comm):
    """Rank 1 does not come; the others wait as long as they said."""
    comm.barrier()
    if comm.rank == 1:
        await_notes(rank for rank in range(comm.size) if rank != 1)
        told(comm.barrier)
        return
    told(lambda: comm.allreduce(numpy.ones(50), timeout_ms=700))
    note(comm)


def late_of_two(comm):
    """As above, and the limit is that of a communicator, or of the one that it was made of."""
    part = comm.dup()
    part.timeout_ms = 400
    made = part.dup()
    print("limits", 0, [c.timeout_ms for c in (part, made)])
    for one in part, made:
        if comm.rank != 1:
            told(lambda one=one: one.allreduce(numpy.ones(50)))
    note(comm)
    await_notes([0, 2])
    told(comm.barrier)   # has more time


def late_request(comm):
    """As above with a request, and the limit where it is waited for."""
    if comm.rank == 1:
        await_notes([0])
        told(comm.barrier)
        return
    request = comm.iallreduce(numpy.ones(50))
    told(lambda: request.wait(timeout_ms=500))
    note(comm)
    told(request.wait)


def late_after_a_limited_wait(comm):
    """A limit that one wait of a plan or of a request had says nothing about later ones."""
    x = numpy.ones(50)
    plan = comm.plan("allreduce", x)
    plan.start()
    plan.wait(timeout_ms=300)
    for _ in range(2):
        if comm.rank == 1:
            time.sleep(1)
        plan.start()
        told(plan.wait)
    request = comm.iallreduce(x)
    if comm.rank == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with contextlib.suppress(KeyboardInterrupt):
            comm.ibarrier().wait(timeout_ms=900)
        note(comm)
    else:
        await_notes([0])
        time.sleep(1)
        comm.ibarrier()
    told(request.wait)
    told(comm.barrier)


def interrupted(comm):
    """Ctrl-C ends a wait at once; what it waited for goes on."""
    if comm.rank == 1:
        await_notes([0])
    x = numpy.full(1000, 1.0)
    begin = time.monotonic()
    if comm.rank == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 1)
        try:
            comm.allreduce(x)
        except KeyboardInterrupt:
            print(f"KeyboardInterrupt {time.monotonic() - begin:.2f}")
            note(comm)
    else:
        comm.allreduce(x)
    comm.barrier()
    print("sum", x[0])


def differing(comm):
    """Never called: an option differs between the ranks (see main)."""


def absent(comm):
    """Never called: one rank does not even start (see main)."""


def main():
    what = sys.argv[1]
    if what == "absent" and os.environ["PACELINE_RANK"] == "1":
        return
    if what in ("absent", "differing", "no_room"):
        told(paceline.init)
        return
    globals()[what](paceline.init())


if __name__ == "__main__":
    main()
