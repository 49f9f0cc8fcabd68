"""Libraries that sum the buckets of a step: ours, gloo, and the MPI's own calls.

Each starts the sum of a bucket when it is asked to, waits for the moment when the next one is
ready, and finishes what it has started. Waiting stands for computing, so it uses no core.
"""

import contextlib
import ctypes
import os
import time

import numpy as np
from paceline.errors import ResourceError

from paceline_bench.measure.meeting import wait_until

TUNED_RING, STARTED_RING = 4, 1  # Open MPI's numbers for its rings
LOOK_S = 100e-6  # between two looks of a thread that makes an MPI go on


class Ours:
    """paceline.Communicator.iallreduce; its own thread goes on meanwhile."""

    label = "paceline"

    def __init__(self, communicator):
        self.communicator = communicator
        self.pending = []

    def start(self, buffer):
        """Begins the sum over all ranks, in place."""
        self.pending.append(self.communicator.iallreduce(buffer))

    def sum_now(self, buffer):
        """The sum over all ranks, in place, for short buffers."""
        self.communicator.allreduce(buffer, out=buffer)

    def wait_until(self, moment_ns):
        """Returns at that moment of the monotonic clock."""
        wait_until(moment_ns, spin=False)

    def finish(self):
        """Returns when all that was started is done."""
        pending, self.pending = self.pending, []
        for request in pending:
            request.wait()


class Gloo(Ours):
    """torch.distributed with gloo, as DDP calls it."""

    label = "gloo"

    def __init__(self, group):
        super().__init__(None)
        self.group = group

    def start(self, buffer):
        import torch
        import torch.distributed as dist

        work = dist.all_reduce(torch.from_numpy(buffer), group=self.group, async_op=True)
        self.pending.append(work)

    def sum_now(self, buffer):
        self.start(buffer)
        self.finish()


class Blocking(Ours):
    """MPI_Allreduce, one bucket after the other, as Horovod's thread calls it beside the one that
    computes: a bucket that is ready earlier has to wait."""

    label = "mpi"

    def __init__(self, mpi):
        super().__init__(mpi.COMM_WORLD)
        self.mpi = mpi

    def start(self, buffer):
        self.communicator.Allreduce(self.mpi.IN_PLACE, buffer)

    def sum_now(self, buffer):
        self.mpi.COMM_WORLD.Allreduce(self.mpi.IN_PLACE, buffer)


class Ring(Blocking):
    """The same by Open MPI's own ring, which a communicator takes that is made while the MPI's
    parameters say so: RNG of a publication."""

    label = "mpi-ring"

    def __init__(self, mpi):
        super().__init__(mpi)
        with parameter("coll_tuned_use_dynamic_rules", 1, ctypes.c_bool):
            with parameter("coll_tuned_allreduce_algorithm", TUNED_RING):
                self.communicator = mpi.COMM_WORLD.Dup()


class NonBlocking(Blocking):
    """MPI_Iallreduce, and a thread that makes MPI go on until all are done. The input is a copy:
    in place, Open MPI takes a binomial tree of whole buckets."""

    label = "mpi-nonblocking"

    def __init__(self, mpi):
        super().__init__(mpi)
        self.inputs = []  # of what is pending; mpi4py's requests do not keep them

    def start(self, buffer):
        self.inputs.append(buffer.copy())
        self.pending.append(self.communicator.Iallreduce(self.inputs[-1], buffer))

    def wait_until(self, moment_ns):
        while (left := moment_ns - time.monotonic_ns()) > 0:
            if self.pending:
                self.mpi.Request.Testall(self.pending)
            time.sleep(min(LOOK_S if self.pending else left / 1e9, left / 1e9))

    def finish(self):
        pending, self.pending = self.pending, []
        self.mpi.Request.Waitall(pending)
        self.inputs.clear()


class Parts(NonBlocking):
    """The same with each bucket in PARTS calls that are all under way: a publication cuts an
    MPI's allreduce from outside in this way."""

    label = "mpi-parts"
    PARTS = 4

    def start(self, buffer):
        for part in np.array_split(buffer, self.PARTS):
            super().start(part)


class RingParts(Parts):
    """The same by Open MPI's non-blocking ring."""

    label = "mpi-ring-parts"

    def start(self, buffer):
        with parameter("coll_libnbc_iallreduce_algorithm", STARTED_RING):
            super().start(buffer)


OF_MPI = (Blocking, NonBlocking, Parts, Ring, RingParts)


@contextlib.contextmanager
def parameter(name, value, kind=ctypes.c_int):
    """A parameter of the MPI that has that value meanwhile (MPI_T, chapter 15 of MPI 4)."""
    library = ctypes.CDLL(os.environ["MPI4PY_LIBMPI"])

    def call(function, *arguments):
        error = getattr(library, function)(*arguments)
        if error:
            raise ResourceError(f"train: replay: {function} of {name}: error {error}.")

    provided, number, count = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    handle, before = ctypes.c_void_p(), kind()
    call("MPI_T_init_thread", 0, ctypes.byref(provided))
    call("MPI_T_cvar_get_index", name.encode(), ctypes.byref(number))
    call("MPI_T_cvar_handle_alloc", number, None, ctypes.byref(handle), ctypes.byref(count))
    call("MPI_T_cvar_read", handle, ctypes.byref(before))
    call("MPI_T_cvar_write", handle, ctypes.byref(kind(value)))
    try:
        yield
    finally:
        call("MPI_T_cvar_write", handle, ctypes.byref(before))
        call("MPI_T_cvar_handle_free", ctypes.byref(handle))
        call("MPI_T_finalize")


def start_gloo(file, rank, ranks, interface=""):
    """The group of all ranks, which meet in a file."""
    import torch
    import torch.distributed as dist

    if interface:
        os.environ["GLOO_SOCKET_IFNAME"] = interface
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=ranks)
    return dist.group.WORLD


def start_mpi():
    """mpi4py over the MPI that this process has loaded; it finds it started."""
    from paceline import mpi

    os.environ["MPI4PY_LIBMPI"] = mpi.path_of(mpi.load()[1])
    from mpi4py import MPI

    return MPI
