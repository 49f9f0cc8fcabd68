"""A short DDP training in an unmodified script; every rank prints its losses, bit for bit."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from train_checks import losses, network

torch.set_num_threads(1)
dist.init_process_group("paceline")
model = DistributedDataParallel(network(), bucket_cap_mb=0.02)
found = losses(model, dist.get_rank(), 8)
bits = " ".join(value.hex() for value in found.tolist())
sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()}: {bits}\n")
sys.stdout.flush()
dist.destroy_process_group()
