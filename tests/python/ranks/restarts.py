"""Under torchrun: the last rank is killed in the first attempt; of a later one, where it is."""

import os
import signal
import sys

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]

import paceline  # noqa: E402

if sys.argv[1] == "torch":
    import torch.distributed as dist

    dist.init_process_group("paceline")
    part = dist.new_group(range(ranks))
    dist.barrier(group=part)
comm = paceline.init()
if attempt == "0" and rank == ranks - 1:
    os.kill(os.getpid(), signal.SIGKILL)
comm.barrier()
sys.stdout.write(f"attempt {attempt}: rank {comm.rank} of {comm.size}, nodes {comm._core.nodes}\n")
