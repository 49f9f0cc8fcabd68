"""When each gradient of a real backward pass is ready: the order, the sizes, the times."""

import time

import numpy as np
import torch
from torch.nn import functional

WARM_UP = 1


def one_pass(net, images, labels):
    """(seconds of forward, seconds of backward, {name: seconds from backward's begin})."""
    ready = {}

    def hook_of(name):
        def note(_):
            ready[name] = time.perf_counter()
        return note

    hooks = [parameter.register_post_accumulate_grad_hook(hook_of(name))
             for name, parameter in net.named_parameters()]
    net.zero_grad(set_to_none=True)
    begin = time.perf_counter()
    loss = functional.cross_entropy(net(images), labels)
    middle = time.perf_counter()
    loss.backward()
    end = time.perf_counter()
    for hook in hooks:
        hook.remove()
    return middle - begin, end - middle, {name: at - middle for name, at in ready.items()}


def recorded(net, images, labels, passes):
    """Medians of several passes, one thread: forward_s, backward_s, and in the order in which they
    are ready [name, elements, ready_s] of all gradients."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = [one_pass(net, images, labels) for _ in range(WARM_UP + passes)][WARM_UP:]
    finally:
        torch.set_num_threads(threads)
    forward, backward, ready = zip(*found)
    rows = [[name, parameter.numel(), float(np.median([times[name] for times in ready]))]
            for name, parameter in net.named_parameters()]
    return {
        "forward_s": round(float(np.median(forward)), 6),
        "backward_s": round(float(np.median(backward)), 6),
        "gradients": [[name, count, round(at, 6)]
                      for name, count, at in sorted(rows, key=lambda row: row[2])],
    }  # fmt: skip
