"""`python -m paceline.hello.step SPEC`: a training step on one rank, in three ways by turns.

Times are seconds of the monotonic clock, which the ranks of a machine share.
"""

import copy
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import paceline.torch
from paceline import on_ranks
from paceline.hello import ALONE, GLOO, OVERLAP

LAYERS, WIDTH, BATCH, RATE = 16, 620, 16, 1e-3
WARM_UP = 5  # steps until plans are made and memory has been touched
ROUND_S = 2.0  # that a round takes at most


class Way:
    """A copy of the network that is trained in one way."""

    def __init__(self, net, wrap):
        net = copy.deepcopy(net)
        self.last_s, self.losses, self.edges = 0.0, [], []
        for parameter in net.parameters():
            parameter.register_post_accumulate_grad_hook(self.note)
        self.wrapped = wrap(net)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=RATE)

    def note(self, _):
        """Notes that a gradient has been computed; computing ends with the last one."""
        self.last_s = time.monotonic()

    def step(self, inputs, labels):
        """Trains a step. Notes its loss, its start, and the ends of the forward pass, of computing,
        of the backward pass and of the update."""
        self.optimizer.zero_grad()
        dist.barrier()
        start = time.monotonic()
        loss = nn.functional.cross_entropy(self.wrapped(inputs), labels)
        forward = time.monotonic()
        loss.backward()
        backward = time.monotonic()
        self.optimizer.step()
        self.edges.append((start, forward, self.last_s, backward, time.monotonic()))
        self.losses.append(loss.item())


def network():
    """A network whose gradients take about as long as computing; the same on all ranks."""
    torch.manual_seed(1)
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)]
    for layer in layers:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return nn.Sequential(*(part for layer in layers for part in (layer, nn.ReLU())))


def overlapped(net):
    """The network, whose gradients overlap() averages from now on."""
    paceline.torch.overlap(net)
    return net


def noting(group, spans):
    """A hook that averages buckets as DDP does, and notes when each was on its way."""

    def average(_, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        start, buffer = time.monotonic(), bucket.buffer().div_(dist.get_world_size())

        def done(_):
            spans.append((start, time.monotonic()))
            return buffer

        return dist.all_reduce(buffer, group=group, async_op=True).get_future().then(done)

    return average


def measure(rounds, steps):
    """Trains in all ways; returns this rank's measurements."""
    net, gloo, spans = network(), dist.new_group(backend="gloo"), []
    ways = {ALONE: Way(net, lambda net: net), OVERLAP: Way(net, overlapped),
            GLOO: Way(net, lambda net: DistributedDataParallel(net, process_group=gloo))}
    torch.manual_seed(2 + dist.get_rank())
    data = torch.randn(BATCH, WIDTH), torch.randint(WIDTH, (BATCH,))

    def turns(count):
        for _ in range(count):
            for way in ways.values():
                way.step(*data)
        return {name: way.edges[-count:] for name, way in ways.items()}

    turn_s = torch.tensor(sum(edges[-1][-1] - edges[-1][0] for edges in turns(WARM_UP).values()))
    dist.all_reduce(turn_s, dist.ReduceOp.MAX)
    steps = min(steps, max(1, int(ROUND_S / turn_s.item())))
    edges = turns(rounds * steps)
    ways[GLOO].wrapped.register_comm_hook(None, noting(gloo, spans))
    return {"steps": steps, "edges": edges, "spans": spans,
            "drawn": {name: edges[-1] for name, edges in turns(2).items()},
            "losses": {name: way.losses for name, way in ways.items()},
            "bytes": sum(4 * parameter.numel() for parameter in net.parameters())}


if __name__ == "__main__":
    spec = on_ranks.told()
    torch.set_num_threads(spec["threads"])
    dist.init_process_group("paceline")
    on_ranks.tell(spec, dist.get_rank(), measure(spec["rounds"], spec["steps"]))
    dist.barrier()
    dist.destroy_process_group()
