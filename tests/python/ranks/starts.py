"""How a world can be found: prints what the first argument's way of starting leads to."""

import os
import sys

import numpy

import paceline

how = sys.argv[1]
if how == "init":  # under torchrun, without a word of torch
    comm = paceline.init()
elif how == "both":  # two worlds through one store
    import torch.distributed as dist

    comm = paceline.init()
    dist.init_process_group("paceline")
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, comm.rank)
    assert every == list(range(comm.size)), every
elif how == "autoload":  # the name is known without importing us
    import torch.distributed as dist

    assert "paceline" not in sys.modules or "paceline._core" not in sys.modules
    dist.init_process_group("paceline")
    comm = paceline.init()
elif how == "file":
    import torch.distributed as dist

    import paceline.torch  # noqa: F401

    dist.init_process_group(
        "paceline", init_method=f"file://{sys.argv[2]}",
        rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]),
    )  # fmt: skip
    comm = paceline.init()
elif how == "gloo first":  # a group of ours in a world of theirs
    import torch
    import torch.distributed as dist

    import paceline.torch  # noqa: F401

    dist.init_process_group("gloo")
    group = dist.new_group(backend="paceline")
    x = torch.ones(2)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [dist.get_world_size()] * 2
    comm = paceline.init(dist.get_rank(), dist.get_world_size(), sys.argv[2])

total = comm.allreduce(numpy.array([comm.rank + 1]))
sys.stdout.write(f"rank {comm.rank} of {comm.size}: {total[0]}\n")
sys.stdout.flush()
if "torch" in sys.modules and how != "init":
    dist.destroy_process_group()
