"""Puts DDP's gradients in memory that all ranks of a node reach, and measures the gain here.

    paceline run -n 2 examples/shared_buckets.py
    torchrun --nproc-per-node=2 examples/shared_buckets.py

One line changes a training script: share_buckets(model), right after DistributedDataParallel().
The gradients of all ranks are then summed where they lie, instead of being sent.

Printed are medians, of the rank that took longest: a training step of a perceptron with and
without, by turns in one process; and an all_reduce of 25 MiB, the size of DDP's buckets, on a
tensor like any other and on one from paceline.torch.empty(), written anew before each call.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import paceline.torch


def perceptron(width, layers):
    torch.manual_seed(1)
    hidden = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, 10))


def trainer(model, batch, width):
    """A function that takes one training step."""
    torch.manual_seed(2 + dist.get_rank())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(batch, width), torch.randint(10, (batch,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    return step


def seconds(prepare, action):
    """Seconds of `action` on the slowest rank, all beginning together after `prepare`."""
    prepare()
    dist.barrier()
    begin = time.perf_counter()
    action()
    took = torch.tensor(time.perf_counter() - begin)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return took.item()


def compare(pairs, repeats):
    """The median of each of the (prepare, action), run by turns; the first three times are not
    counted: DDP makes its buckets anew then."""
    times = torch.tensor([[seconds(*pair) for pair in pairs] for _ in range(repeats + 3)])
    return times[3:].median(0).values.tolist()


def show(what, private, shared):
    if dist.get_rank() == 0:
        print(f"{what:<34} {private:>10} {shared:>10}", flush=True)


def show_times(what, times):
    show(what, *(f"{1e3 * t:.2f} ms" for t in times))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=1024, help="of each layer")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32, help="samples per rank and step")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--mib", type=int, default=25, help="length of the all_reduce")
    options = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    private, shared = (
        DistributedDataParallel(perceptron(options.width, options.layers)) for _ in range(2)
    )
    buckets = paceline.torch.share_buckets(shared)  # all there is to it

    steps = [trainer(model, options.batch, options.width) for model in (private, shared)]
    show(f"{dist.get_world_size()} ranks, float32", "private", "shared")
    times = compare([(lambda: None, step) for step in steps], options.repeats)
    show_times("a training step", times)
    samples = options.batch * dist.get_world_size()
    show("samples per second", *(f"{samples / t:.0f}" for t in times))
    show("bytes of buckets in shared memory", 0, buckets.nbytes)

    values = torch.rand(options.mib << 18)
    tensors = torch.empty_like(values), paceline.torch.empty(values.shape)
    pairs = [
        (lambda x=x: x.copy_(values), lambda x=x: dist.all_reduce(x)) for x in tensors
    ]  # fmt: skip
    show_times(f"all_reduce of {options.mib} MiB", compare(pairs, options.repeats))
    # Both have done the same on two ranks, bit for bit.
    for mine, theirs in zip(private.parameters(), shared.parameters(), strict=True):
        assert torch.allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
