"""Under Slurm: in a job's first run ranks wait for one that never calls; in its second they end."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy

import paceline

how, ending, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
run = os.environ.get("SLURM_RESTART_COUNT", "0")
rank, ranks = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
if how == "torch":
    import torch.distributed as dist

    dist.init_process_group("paceline")
comm = paceline.init(rank, ranks, str(folder / "store")) if how == "folder" else paceline.init()
total = comm.allreduce(numpy.array([rank + 1]))[0]
if run == "0":
    (folder / str(rank)).touch()
    if rank == ranks - 1:
        while not all((folder / str(r)).exists() for r in range(ranks)):
            time.sleep(0.01)
        if ending == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    comm.barrier()
sys.stdout.write(f"run {run}: rank {comm.rank} of {comm.size}: {total}, nodes {comm._core.nodes}\n")
