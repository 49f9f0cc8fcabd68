"""Checks of what needs a thread that makes progress, where PACELINE_PROGRESS=caller makes none."""

import numpy
import torch
import torch.distributed as dist
from support import checks_in, raises, run_checks

import paceline
import paceline.torch
from paceline import kvstore

MODES = ("auto", "depcha", "concom")  # funnel makes its calls in the thread that pushes


def check_overlap_is_refused_when_it_is_made(comm):
    """Not by a hook in the first backward pass; the model is left as it was."""
    model = torch.nn.Linear(3, 2)
    for mode in MODES:
        for optimizer in (None, torch.optim.SGD(model.parameters(), 0.1)):
            raises(
                paceline.RefusalError, "PACELINE_PROGRESS=thread",
                lambda mode=mode, optimizer=optimizer: paceline.torch.overlap(
                    model, mode=mode, optimizer=optimizer),
            )  # fmt: skip
    model(torch.ones(1, 3)).sum().backward()
    assert model.bias.grad.tolist() == [1, 1]
    dist.barrier()


def check_stores_are_refused_when_they_are_made(comm):
    for kind in MODES:
        raises(paceline.RefusalError, "PACELINE_PROGRESS=thread",
               lambda kind=kind: kvstore.create(kind, comm))
    store = kvstore.create("funnel", comm)
    value = numpy.ones(3)
    store.init("a", value)
    store.pushpull("a", value, value)
    store.wait()
    assert value.tolist() == [comm.size] * 3
    store.close()


if __name__ == "__main__":
    dist.init_process_group("paceline")
    run_checks(checks_in(__import__("__main__")), paceline.init())
    dist.destroy_process_group()
