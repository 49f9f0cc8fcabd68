"""A script that names another backend, or none: who serves it. FEIGN=cuda: a device is there, too;
FEIGN=newer: a torch that makes groups by other means."""

import os
import sys

import torch
import torch.distributed as dist

if os.environ.get("FEIGN") == "cuda":
    torch.cuda.is_available = lambda: True
elif os.environ.get("FEIGN") == "newer":
    dist.distributed_c10d.BackendConfig.get_device_backend_map = lambda self: (
        self.device_backend_map)
dist.init_process_group(*sys.argv[1:])
x = torch.ones(3)
dist.all_reduce(x, group=dist.new_group())
from paceline.torch import minors  # noqa: E402  (the rest is a script as it stands)

by = type(minors.part_of(dist.group.WORLD)).__name__
sys.stdout.write(f"{by} {dist.get_backend()} {x.tolist()}\n")
sys.stdout.flush()
dist.destroy_process_group()
