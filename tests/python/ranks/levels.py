"""A program of mpi4py that asks MPI for a level of threads (the argument) and uses us within it.

A second argument makes it go wrong in one way, which the test must notice.
"""

import os
import sys
import threading

import mpi4py

mpi4py.rc.thread_level = sys.argv[1]
import numpy  # noqa: E402
from mpi4py import MPI  # noqa: E402

import paceline  # noqa: E402

LEVELS = {"single": MPI.THREAD_SINGLE, "funneled": MPI.THREAD_FUNNELED,
          "serialized": MPI.THREAD_SERIALIZED, "multiple": MPI.THREAD_MULTIPLE}  # fmt: skip
THREADS, TURNS = 3, 30
MUTANT = sys.argv[2] if len(sys.argv) > 2 else ""


def calls(ours, theirs, mine):
    """Right sums of ours and of MPI's, side by side."""
    expected = mine * ours.size
    spoilt = MUTANT == "wrong" and mine == TURNS - 1 and ours.rank == 1
    request = ours.iallreduce(numpy.full(100, float(mine) + spoilt))
    found = [ours.allreduce(numpy.full(5, float(mine)))[0], request.wait()[0],
             theirs.allreduce(mine)]  # fmt: skip
    if found != [expected] * 3:
        wrong.append((mine, found))


def in_threads(body):
    threads = [threading.Thread(target=body, args=((i + MPI.COMM_WORLD.rank) % THREADS,))
               for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def tasks():
    """The threads of this process, those that are not Python's included."""
    return set(os.listdir("/proc/self/task"))


wrong = []
wanted = LEVELS[sys.argv[1]]
if MUTANT == "lower":
    wanted = max(LEVELS.values()) + 1  # more than MPI has granted
theirs = [MPI.COMM_WORLD.Dup() for _ in range(THREADS)]
# At its first call of this kind mpi4py duplicates the communicator, with Python's lock held:
# threads that come to it in another order on another rank would wait for each other for ever.
for comm in theirs:
    comm.allreduce(0)
before = tasks()
ours = [paceline.Communicator(comm) for comm in theirs]
if MUTANT == "thread":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
# Over MPI alone a thread of ours would call it: only where any thread may.
if os.environ.get("PACELINE_TRANSPORT") == "mpi" and wanted < MPI.THREAD_MULTIPLE:
    wrong += tasks() - before
if wanted == MPI.THREAD_SERIALIZED:
    passed, turn = threading.Condition(), 0

    def body(number):
        global turn
        for i in range(TURNS):
            with passed:
                passed.wait_for(lambda: turn % THREADS == number)
                calls(ours[number], theirs[number], i)
                turn += 1
                passed.notify_all()

    in_threads(body)
elif wanted == MPI.THREAD_MULTIPLE:
    in_threads(lambda number: [calls(ours[number], theirs[number], i) for i in range(TURNS)])
else:
    over = threading.Event()
    other = threading.Thread(
        target=lambda: [numpy.ones(100).sum() for _ in iter(over.is_set, True)])
    if wanted == MPI.THREAD_FUNNELED:
        other.start()
    for i in range(TURNS):
        calls(ours[i % THREADS], theirs[i % THREADS], i)
    over.set()
    if wanted == MPI.THREAD_FUNNELED:
        other.join()
print(f"{sys.argv[1]}: {MPI.Query_thread() >= wanted} {wrong}", flush=True)
