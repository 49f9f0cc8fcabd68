"""`paceline bench overlap`: a training step whose gradients overlap() averages, beside DDP.

All ways take turns in one launch, each with a copy of the network. A step is the forward pass and
the backward pass, to the moment when every gradient is the average of all ranks; its time is the
slowest rank's. Averages of each way are compared with DDP's over gloo. A figure that a busy machine
changes little is counted, too: how often a thread of a rank goes to sleep.
"""

import copy
import math
import os
import statistics
import tempfile
import time

from paceline import on_ranks

from paceline_bench.measure.store import sleeps

ALONE, GLOO = "computing alone", "DDP over gloo"
DDP, SHARED = "DDP", "DDP, views of shared buckets"
AUTO, OTHERS = "overlap", ("funnel", "depcha", "concom")
WAYS = (ALONE, GLOO, DDP, SHARED, AUTO, *(f"overlap, {kind}" for kind in OTHERS))
WARM = 4  # steps until DDP and auto have made their plans, and all memory has been touched
TOLERANCE = 1e-5  # of the norm: sums of float32 in another order


def width_of(parameters, nbytes):
    """Width of square layers with a bias, so that all parameters take about `nbytes`."""
    return max(1, round((math.sqrt(1 + 4 * nbytes / 4 / max(1, parameters // 2)) - 1) / 2))


def stack(parameters, nbytes):
    """A network of equal linear layers, each a weight and a bias; gradients keep their size."""
    from torch import nn

    width, layers = width_of(parameters, nbytes), []
    for _ in range(max(1, parameters // 2)):
        layer = nn.Linear(width, width)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        layers += [layer, nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def made(spec, rank):
    """The network, and a function that makes a loss with it or a wrapper of it."""
    import torch

    torch.manual_seed(spec["seed"])
    if spec["model"]:
        from paceline_bench.networks import branched, models

        net = models.made(spec["model"])
        torch.manual_seed(spec["seed"] + 1 + rank)
        images = spec["batch"] or models.known(spec["model"]).images
        inputs, labels = models.batch_of(spec["model"], images)
        return net, lambda wrapped: branched.loss_of(wrapped(inputs), labels)
    net = stack(spec["parameters"], spec["bytes"])
    torch.manual_seed(spec["seed"] + 1 + rank)
    inputs = torch.randn(spec["batch"] or 64, net[0].in_features)
    return net, lambda wrapped: wrapped(inputs).square().mean()


def ways_of(net):
    """By way: the module of the forward pass, and the network in it. Collective."""
    import torch.distributed as dist
    from paceline.torch import overlap, share_buckets
    from torch.nn.parallel import DistributedDataParallel

    nets = {way: copy.deepcopy(net) for way in WAYS}
    gloo = DistributedDataParallel(nets[GLOO], process_group=dist.new_group(backend="gloo"))
    plain = DistributedDataParallel(nets[DDP])
    shared = DistributedDataParallel(nets[SHARED], gradient_as_bucket_view=True)
    share_buckets(shared)
    overlap(nets[AUTO])
    for kind in OTHERS:
        overlap(nets[f"overlap, {kind}"], kind)
    return {**{way: (one, one) for way, one in nets.items()}, GLOO: (gloo, nets[GLOO]),
            DDP: (plain, nets[DDP]), SHARED: (shared, nets[SHARED])}


def check(way, net, reference):
    """Raises RuntimeError if gradients are not those of the reference."""
    import torch

    for (name, mine), theirs in zip(net.named_parameters(), reference.parameters(), strict=True):
        off = torch.linalg.vector_norm(mine.grad - theirs.grad).item()
        if not off <= TOLERANCE * torch.linalg.vector_norm(theirs.grad).item():
            raise RuntimeError(f"bench overlap: {way}: the gradient of {name} is off by {off:g} "
                               f"from that of {GLOO}.")


def measure(spec):
    """On one rank: seconds and sleeps of every step, by way, and the network's size."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // dist.get_world_size()))
    net, loss_of = made(spec, dist.get_rank())
    ways, times, slept = ways_of(net), {way: [] for way in WAYS}, {way: [] for way in WAYS}
    for step in range(WARM + spec["repeats"]):
        for way, (wrapped, inner) in ways.items():
            inner.zero_grad()
            dist.barrier()
            before, begin = sleeps(), time.perf_counter()
            loss_of(wrapped).backward()
            took, more = time.perf_counter() - begin, sleeps() - before
            if step >= WARM:
                times[way].append(took)
                slept[way].append(more)
        for way, (_, inner) in ways.items():
            if way != ALONE:
                check(way, inner, ways[GLOO][1])
    parameters = list(net.parameters())
    return {"times": times, "sleeps": slept, "parameters": len(parameters),
            "bytes": sum(p.numel() * p.element_size() for p in parameters)}


def rows_of(results):
    """Per way: the median over steps of the slowest rank's milliseconds, the part of it that
    computing alone does not take, the ratio of medians to DDP's, and the sleeps of a rank (the mean
    over ranks and steps)."""
    ms = {way: 1e3 * statistics.median(map(max, zip(*(one["times"][way] for one in results),
                                                    strict=True))) for way in WAYS}
    return [{"way": way, "ms": ms[way], "exposed_ms": ms[way] - ms[ALONE],
             "to_ddp": ms[way] / ms[DDP], "sleeps": statistics.mean(
                 statistics.mean(one["sleeps"][way]) for one in results)} for way in WAYS]


def run(told, ranks):
    """Starts the ranks; the number of parameters, their bytes, and rows."""
    from paceline_bench.measure.launching import run_module

    with tempfile.TemporaryDirectory(prefix="paceline-overlap-") as folder:
        found = run_module("paceline_bench.measure.overlap", {**told, "folder": folder}, ranks,
                           folder)
        return found[0]["parameters"], found[0]["bytes"], rows_of(found)


def table(rows, about):
    """The table for the terminal."""
    from rich.table import Table

    out = Table("way", "ms a step", "not hidden, ms", f"x {DDP}", "sleeps", title=about)
    for column in out.columns[1:]:
        column.justify = "right"
    for row in rows:
        out.add_row(row["way"], f"{row['ms']:.1f}", f"{row['exposed_ms']:.1f}",
                    f"{row['to_ddp']:.2f}", f"{row['sleeps']:.1f}")
    return out


def main():
    """One rank."""
    import paceline.torch  # noqa: F401  Importing it registers the backend's name.
    import torch.distributed as dist

    spec = on_ranks.told()
    dist.init_process_group("paceline")
    on_ranks.tell(spec, dist.get_rank(), measure(spec))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
