"""Steps of overlap() in every way, while each rank looks at what it holds.

    steady_overlap.py STEPS [LEAK]     LEAK: gradients of each step are kept, 60 times
"""

import json
import sys

import torch
import torch.distributed as dist
from steady import LOOKS, held
from torch import nn

import paceline
import paceline.torch
from paceline import kvstore


def made(mode, **options):
    """A model, its optimizer, and what exchanges its gradients."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    if options.pop("updates", False):
        options["optimizer"] = optimizer
    return model, optimizer, paceline.torch.overlap(model, mode, **options)


def step(model, optimizer, x, number):
    """Gradients are dropped by turns, or set to zero."""
    optimizer.zero_grad(set_to_none=number % 2 == 0)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    comm = paceline.init()
    steps, kept, looks = int(sys.argv[1]), [], []
    trained = [made(mode) for mode in kvstore.TYPES] + [made("auto", updates=True)]
    x = torch.full((4, 20), 0.1 * (1 + comm.rank))
    first = last = None
    for number in range(1, steps + 1):
        last = [step(model, optimizer, x, number) for model, optimizer, _ in trained]
        first = first or last
        if len(sys.argv) > 2:
            grads = [parameter.grad for model, *_ in trained for parameter in model.parameters()]
            kept.append([grad.expand(60, *grad.shape).clone()
                         for grad in grads if grad is not None])
        if number % (steps // LOOKS) == 0:
            looks.append(held(comm))
    assert all(b < a for a, b in zip(first, last, strict=True)), (first, last)
    for *_, overlap in trained:
        overlap.remove()
    dist.destroy_process_group()
    print(json.dumps(looks))


if __name__ == "__main__":
    main()
