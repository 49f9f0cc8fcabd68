"""The networks by name, and their inputs."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from paceline.errors import UsageError

from paceline_bench.networks import branched, digits, gpt, nets


@dataclass(frozen=True)
class Model:
    """`make(classes)` has random weights; `side`: of its pictures as published, 0 for a text."""

    make: Callable
    side: int
    classes: int
    images: int  # of a batch of a rank, by default


MODELS = {
    "resnet110": Model(nets.resnet110, 32, 10, 32),
    "resnet20": Model(nets.resnet20, 32, 10, 32),
    "resnet50": Model(nets.resnet50, 224, 1000, 4),
    "alexnet": Model(nets.alexnet, 224, 1000, 8),
    "vgg11": Model(nets.vgg11, 224, 1000, 4),
    "vgg16": Model(nets.vgg16, 224, 1000, 4),
    "googlenet": Model(branched.GoogLeNet, 224, 1000, 8),
    "inception-bn": Model(branched.inception_bn, 224, 1000, 8),
    "densenet201": Model(branched.densenet201, 224, 1000, 4),
    "gpt": Model(gpt.Gpt, 0, gpt.LETTERS, 8),
    "digits-resnet": Model(digits.DigitResNet, 8, 10, 32),
}


def known(name):
    """The Model of that name. Raises UsageError."""
    if name not in MODELS:
        raise UsageError(f"train: there is no model {name!r}; models are {', '.join(MODELS)}.")
    return MODELS[name]


def made(name, classes=None):
    """A network with random weights."""
    model = known(name)
    return model.make(model.classes if classes is None else classes)


def check_side(name, side, images, classes):
    """Least bytes of a rank's training: weights, gradients, momentum, and the outputs of
    convolutions and linear layers that the backward pass needs. Raises UsageError if pictures of
    that side, or so few, do not go through the network."""
    kept = []
    with torch.device("meta"):
        net = made(name, classes)
        for module in net.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
                module.register_forward_hook(lambda *found: kept.append(found[2].numel()))
        seen = (torch.empty(images, 3, side, side) if known(name).side
                else torch.zeros(images, gpt.CONTEXT, dtype=torch.int64))
        try:
            net(seen)
        except (RuntimeError, ValueError) as error:
            raise UsageError(f"train: {name} does not take {images} pictures of {side}x{side} a "
                             f"step ({str(error).splitlines()[0]}); take a larger --side or "
                             "--batch.") from None
    return 4 * (sum(kept) + 3 * sum(weights.numel() for weights in net.parameters()))


def batch_of(name, images, generator=None):
    """(inputs, labels) by chance, in the published size."""
    model = known(name)
    if not model.side:
        text = torch.randint(gpt.LETTERS, (images, gpt.CONTEXT + 1), generator=generator)
        return text[:, :-1], text[:, 1:]
    return (torch.randn(images, 3, model.side, model.side, generator=generator),
            torch.randint(model.classes, (images,), generator=generator))


def sizes_of(name, side=None, classes=None):
    """(parameters, flops); as published, if nothing else is asked for. Flops are of a forward
    pass of one picture or text: each product and each sum of the convolutions and the linear
    layers."""
    count = 0

    def note(module, inputs, output):
        nonlocal count
        weights = module.weight
        each = weights.numel() if isinstance(module, torch.nn.Linear) else weights[0].numel()
        outputs = output.numel() // (module.out_features if isinstance(module, torch.nn.Linear)
                                     else 1)
        count += 2 * outputs * each

    side = known(name).side if side is None else side
    with torch.device("meta"):
        net = made(name, classes).eval()
        for module in net.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
                module.register_forward_hook(note)
        net(torch.empty(1, 3, side, side) if side
            else torch.zeros(1, gpt.CONTEXT, dtype=torch.int64))
    return sum(weights.numel() for weights in net.parameters()), count
