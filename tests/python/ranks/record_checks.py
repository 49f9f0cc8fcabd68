"""Ranks that come to differ and leave flight records; the first argument says how."""

import os
import signal
import sys
import time

import numpy

import paceline


def differ(comm):
    """The third call is another one on the last rank."""
    comm.allreduce(numpy.ones(10))
    comm.broadcast(numpy.ones(4), root=1)
    try:
        if comm.rank == comm.size - 1:
            comm.broadcast(numpy.ones(10), root=0)
        else:
            comm.allreduce(numpy.ones(10))
        comm.barrier()
        comm.barrier()
    except paceline.Error as error:
        print(f"{type(error).__name__} {error}")


def wait_for_files(paths):
    """For at most 20 s."""
    paths = list(paths)
    limit = time.monotonic() + 20
    while time.monotonic() < limit and not all(map(os.path.exists, paths)):
        sum(range(1000))


def hang(comm):
    """Rank 1 computes for long; somebody outside asks all ranks what they do."""
    comm.allreduce(numpy.ones(10))
    folder = os.environ["PACELINE_RECORD_DIR"]
    if comm.rank == 1:
        wait_for_files(f"{folder}/rank-{rank}.{kind}"
                       for rank in (0, 1) for kind in ("json", "txt"))
        comm.allreduce(numpy.ones(3))
        return
    request = comm.iallreduce(numpy.ones(3))
    # A child, since this rank is about to wait for the call.
    if os.fork() == 0:
        time.sleep(0.5)
        for name in os.listdir(folder):
            if name.startswith("process-"):
                os.kill(int(name.removeprefix("process-")), signal.SIGUSR2)
        os._exit(0)
    request.wait()


def asked(comm):
    """A program asks for its own record; rank 1 comes to the call when rank 0 has its record."""
    folder = os.environ["PACELINE_RECORD_DIR"]
    comm.barrier()
    request = comm.iallreduce(numpy.ones(5)) if comm.rank == 0 else None
    found = comm.flight_record(folder)
    calls = next(c for c in found["communicators"] if len(c["ranks"]) == comm.size)["calls"]
    print([call["call"] for call in calls], any("under_way" in call for call in calls))
    if request is None:
        wait_for_files([f"{folder}/rank-0.json"])
        request = comm.iallreduce(numpy.ones(5))
    request.wait()
    try:
        comm.flight_record("/proc/nowhere")
    except paceline.ResourceError as error:
        print(error)


def main():
    comm = paceline.init()
    folder = os.environ["PACELINE_RECORD_DIR"]
    open(f"{folder}/process-{os.getpid()}", "w").close()
    comm.barrier()
    globals()[sys.argv[1]](comm)


if __name__ == "__main__":
    main()
