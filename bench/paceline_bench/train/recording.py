"""Times a real pass: when each layer begins its forward pass, and when each gradient is ready."""

import json
import time

import numpy as np
import torch

from paceline_bench.networks import branched

WARM_UP = 1


def one_pass(net, inputs, labels):
    """(seconds of forward, of backward, {name: from the begin of forward on when its layer begins},
    {name: from the begin of backward on when its gradient is ready})."""
    needed, ready, hooks = {}, {}, []

    def before(own):
        def note(*_):
            now = time.perf_counter()
            for name in own:
                needed.setdefault(name, now)
        return note

    def after(name):
        def note(_):
            ready[name] = time.perf_counter()
        return note

    for path, module in net.named_modules():
        own = [f"{path}.{name}" if path else name
               for name, _ in module.named_parameters(recurse=False)]
        if own:
            hooks.append(module.register_forward_pre_hook(before(own)))
    hooks += [parameter.register_post_accumulate_grad_hook(after(name))
              for name, parameter in net.named_parameters()]
    net.zero_grad(set_to_none=True)
    begin = time.perf_counter()
    loss = branched.loss_of(net(inputs), labels)
    middle = time.perf_counter()
    loss.backward()
    end = time.perf_counter()
    for hook in hooks:
        hook.remove()
    return (middle - begin, end - middle, {name: at - begin for name, at in needed.items()},
            {name: at - middle for name, at in ready.items()})


def recorded(net, inputs, labels, passes):
    """Medians of several passes on one thread: forward_s, backward_s, and for every parameter, as
    numbered from the first layer on, [name, elements, needed_s, ready_s]."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = [one_pass(net, inputs, labels) for _ in range(WARM_UP + passes)][WARM_UP:]
    finally:
        torch.set_num_threads(threads)
    forward, backward, needed, ready = zip(*found)

    def median(times):
        return round(float(np.median(times)), 6)

    return {"forward_s": median(forward), "backward_s": median(backward), "keys": [
        [name, parameter.numel(), median([one[name] for one in needed]),
         median([one[name] for one in ready])] for name, parameter in net.named_parameters()]}


def write(path, content):
    """A line for each key."""
    rows = content.pop("keys")
    text = json.dumps(content, indent=1)[:-2]
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    path.write_text(f'{text},\n "keys": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
