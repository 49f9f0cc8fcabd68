"""What checks of torch share: numbers of a rank, and calls that 2.12 knows by an older name."""

import torch
import torch.distributed as dist
from support import data

all_gather_single = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
reduce_scatter_single = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)


def tensor(rank, *shape, type="float32"):
    """A tensor whose numbers no other rank and place has."""
    count = torch.Size(shape).numel()
    return torch.tensor(data(rank, count, type)).reshape(shape).to(getattr(torch, type))
