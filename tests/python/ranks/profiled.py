"""Collectives to be profiled. Arguments: what, and the folder where that takes one.

api      a block of the Python API, in which rank 1 is late
orders   calls of which rank 1 begins the last one first, each on a communicator of its own
torch    data-parallel steps, in which rank 1 is late
die      rank 1 ends without a word in the middle
barriers
"""

import os
import sys
import time

import numpy as np

import paceline

CALLS, LATE_S = 15, 0.06


def api(folder):
    comm = paceline.init()
    data = np.ones(1000, dtype=np.float32)
    with paceline.profile(folder, bytes=1 << 20) as profile:
        for _ in range(CALLS):
            if comm.rank == 1:
                time.sleep(LATE_S)
            with profile.label("step"):
                comm.allreduce(data)
            comm.ibroadcast(data).wait()
        comm.split(comm.rank % 2).allreduce(data)
        plan = comm.plan("allreduce", data)
        for _ in range(2):
            plan.start()
            plan.wait()
        comm.allreduce(data, tag="weights")
    comm.allreduce(data)  # not in it
    if comm.rank == 0:
        print(profile.report())


def orders(folder):
    world = paceline.init()
    comms = [world.dup() for _ in range(3)]
    short, long = np.ones(10, "float64"), np.ones(100, "float64")
    begins = [lambda: comms[0].iallreduce(short), lambda: comms[1].iallreduce(long),
              comms[2].ibarrier]
    with paceline.profile(folder, bytes=1 << 20):
        started = [begin() for begin in (begins if world.rank == 0 else begins[::-1])]
        for request in started:
            request.wait()


def train():
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("paceline")
    model = DistributedDataParallel(torch.nn.Linear(64, 8))
    for _ in range(CALLS):
        if dist.get_rank() == 1:
            time.sleep(LATE_S)
        model(torch.ones(4, 64)).sum().backward()
    dist.destroy_process_group()


def die():
    comm = paceline.init()
    data = np.ones(10, dtype=np.float32)
    for call in range(CALLS):
        if comm.rank == 1 and call == CALLS // 2:
            os._exit(3)
        comm.allreduce(data)


def barriers():
    comm = paceline.init()
    for _ in range(CALLS):
        comm.barrier()


if __name__ == "__main__":
    {"api": api, "orders": orders, "torch": train, "die": die,
     "barriers": barriers}[sys.argv[1]](*sys.argv[2:])
