"""Worlds under mpiexec in which something goes wrong; the first argument says what."""

import os
import signal
import sys
import time

import numpy

import paceline
import paceline.mpi


def told(call):
    """Prints what `call` raises."""
    try:
        call()
    except paceline.Error as error:
        sys.stdout.write(f"{type(error).__name__}: {error}\n")
        sys.stdout.flush()
        sys.exit(3)
    sys.stdout.write("nothing\n")


what = sys.argv[1]
if what == "init":
    told(paceline.init)
elif what == "init without store":  # as if no launcher of ours had been there
    for name in ("PACELINE_RANK", "PACELINE_RANKS", "PACELINE_STORE"):
        del os.environ[name]
    told(paceline.init)
elif what == "mpi4py first":  # which finds an MPI of its own
    from mpi4py import MPI

    assert MPI.Is_initialized()
    told(paceline.init)
elif what == "no library":  # nowhere on this machine
    paceline.mpi.libraries_to_start = lambda: []
    told(paceline.init)
elif what == "absent":
    rank = int(os.environ["PACELINE_RANK"])
    if rank:
        told(paceline.init)
elif what == "killed":
    comm = paceline.init()
    comm.allreduce(numpy.ones(4))
    if comm.rank == comm.size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    told(lambda: comm.allreduce(numpy.ones(100_000)))
    time.sleep(300)  # the launcher does not let it
elif what == "raises":  # the others wait for it in an allreduce, and then in MPI_Finalize
    comm = paceline.init()
    if comm.rank == 0:
        raise KeyError("something of the user's own")
    comm.allreduce(numpy.ones(4))
elif what == "left":  # a broken world must not end in a wait for ever
    comm = paceline.init()
    comm.barrier()
    if comm.rank == 0:
        try:
            comm.allreduce(numpy.ones(4))
        except paceline.Error as error:
            print(type(error).__name__, flush=True)
elif what == "alone":
    comm = paceline.init()
    print(comm.rank, comm.size, "mpi" if paceline._core.has_mpi() else "no mpi")
