"""GoogLeNet, Inception-BN and DenseNet-201 at their published shapes."""

import torch
from torch import nn
from torch.nn import functional


class Branches(nn.Module):
    """Several ways through; their channels lie side by side."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        """All of them."""
        return torch.cat([branch(x) for branch in self.branches], 1)


def plain(channels_in, channels, side, stride=1):
    """A convolution with a bias, and its activation."""
    return nn.Sequential(nn.Conv2d(channels_in, channels, side, stride, padding=side // 2),
                         nn.ReLU())


def normed(channels_in, channels, side, stride=1):
    """The same with a batch norm between."""
    return nn.Sequential(nn.Conv2d(channels_in, channels, side, stride, padding=side // 2),
                         nn.BatchNorm2d(channels), nn.ReLU())


def shrink():
    """Half the side."""
    return nn.MaxPool2d(3, 2, padding=1)


# --- GoogLeNet ------------------------------------------------------------------------------------

# Channels in; of the 1, before and of the 3, before and of the 5, after the pool. 0: half the side.
GOOGLE = ((192, 64, 96, 128, 16, 32, 32), (256, 128, 128, 192, 32, 96, 64), 0,
          (480, 192, 96, 208, 16, 48, 64), (512, 160, 112, 224, 24, 64, 64),
          (512, 128, 128, 256, 24, 64, 64), (512, 112, 144, 288, 32, 64, 64),
          (528, 256, 160, 320, 32, 128, 128), 0,
          (832, 256, 160, 320, 32, 128, 128), (832, 384, 192, 384, 48, 128, 128))
HEADS = {3: 512, 6: 528}  # after which entry of GOOGLE, with how many channels


def inception(channels, one, before3, three, before5, five, pooled):
    """Szegedy et al. 2014, figure 2b."""
    return Branches(
        plain(channels, one, 1),
        nn.Sequential(plain(channels, before3, 1), plain(before3, three, 3)),
        nn.Sequential(plain(channels, before5, 1), plain(before5, five, 5)),
        nn.Sequential(nn.MaxPool2d(3, 1, padding=1), plain(channels, pooled, 1)))


def head(channels, classes):
    """An auxiliary classifier."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(4), plain(channels, 128, 1), nn.Flatten(),
                         nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, classes))


class GoogLeNet(nn.Module):
    """Szegedy et al. 2014, with both auxiliary classifiers: in training all three are returned."""

    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(plain(3, 64, 7, 2), shrink(), plain(64, 64, 1), plain(64, 192, 3),
                                  shrink())
        self.blocks = nn.ModuleList(inception(*row) if row else shrink() for row in GOOGLE)
        self.heads = nn.ModuleDict({str(at): head(n, classes) for at, n in HEADS.items()})
        self.end = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, classes))

    def forward(self, x):
        """Logits; in training (logits, those of the heads)."""
        x, aside = self.stem(x), []
        for place, block in enumerate(self.blocks):
            x = block(x)
            if self.training and str(place) in self.heads:
                aside.append(self.heads[str(place)](x))
        return (self.end(x), *aside) if self.training else self.end(x)


# --- Inception-BN ---------------------------------------------------------------------------------

# Channels in; of the 1 (0: none, and half the side); before and of the 3; before and of the two 3;
# after the pool, and its kind.
INCEPTION_BN = ((192, 64, 64, 64, 64, 96, 32, "avg"), (256, 64, 64, 96, 64, 96, 64, "avg"),
                (320, 0, 128, 160, 64, 96, 0, "max"), (576, 224, 64, 96, 96, 128, 128, "avg"),
                (576, 192, 96, 128, 96, 128, 128, "avg"),
                (576, 160, 128, 160, 128, 160, 128, "avg"),
                (608, 96, 128, 192, 160, 192, 128, "avg"), (608, 0, 128, 192, 192, 256, 0, "max"),
                (1056, 352, 192, 320, 160, 224, 128, "avg"),
                (1024, 352, 192, 320, 192, 224, 128, "max"))


def inception_block(channels, one, before3, three, before33, double, pooled, kind):
    """Ioffe, Szegedy 2015, as MXNet has it."""
    stride = 1 if one else 2
    pool = nn.AvgPool2d(3, 1, padding=1) if kind == "avg" else nn.MaxPool2d(3, stride, padding=1)
    branches = [normed(channels, one, 1)] if one else []
    branches += [
        nn.Sequential(normed(channels, before3, 1), normed(before3, three, 3, stride)),
        nn.Sequential(normed(channels, before33, 1), normed(before33, double, 3),
                      normed(double, double, 3, stride)),
        nn.Sequential(pool, normed(channels, pooled, 1)) if pooled else pool]
    return Branches(*branches)


def inception_bn(classes=1000):
    """Ioffe, Szegedy 2015, as MXNet has it."""
    return nn.Sequential(
        normed(3, 64, 7, 2), shrink(), normed(64, 64, 1), normed(64, 192, 3), shrink(),
        *(inception_block(*row) for row in INCEPTION_BN),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, classes))


# --- DenseNet -------------------------------------------------------------------------------------


class Dense(nn.Module):
    """A layer whose result joins its input."""

    def __init__(self, channels, growth):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth), nn.ReLU(),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        """The input, and what is new."""
        return torch.cat((x, self.body(x)), 1)


def densenet201(classes=1000, growth=32, counts=(6, 12, 48, 32)):
    """Huang et al. 2016."""
    layers = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              shrink()]
    channels = 64
    for number, count in enumerate(counts):
        if number:
            layers += [nn.BatchNorm2d(channels), nn.ReLU(),
                       nn.Conv2d(channels, channels // 2, 1, bias=False),
                       nn.AvgPool2d(2, ceil_mode=True)]
            channels //= 2
        for _ in range(count):
            layers.append(Dense(channels, growth))
            channels += growth
    return nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(channels, classes))


def loss_of(found, labels):
    """Cross entropy; that of auxiliary classifiers counts 0.3 each."""
    first, *aside = found if isinstance(found, tuple) else (found,)
    loss = cross(first, labels)
    for other in aside:
        loss = loss + 0.3 * cross(other, labels)
    return loss


def cross(logits, labels):
    """Cross entropy of pictures, or of every place of a text."""
    return functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))
