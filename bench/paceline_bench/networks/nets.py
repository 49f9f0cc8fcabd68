"""AlexNet, VGG and ResNets at their published shapes.

Batch norms and biases are as in the papers; parts without parameters are as short as can
be (no dropout). AlexNet is of one column, without the groups that split the first one between two
GPUs. Pictures of another side than the published one are pooled to what the last layers expect.
"""

from torch import nn
from torch.nn import functional


def convolution(channels_in, channels, side, stride=1):
    """A convolution that keeps the picture's side, but for its stride, and its batch norm."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, side, stride, padding=side // 2, bias=False),
        nn.BatchNorm2d(channels))


def alexnet(classes=1000):
    """Krizhevsky et al. 2012."""
    layers = [nn.Conv2d(3, 96, 11, 4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
              nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
              nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(),
              nn.Conv2d(384, 384, 3, padding=1), nn.ReLU(),
              nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
              nn.AdaptiveAvgPool2d(6), nn.Flatten()]
    return nn.Sequential(*layers, *classifier(256 * 6 * 6, classes))


def vgg(widths, classes):
    """Simonyan, Zisserman 2014; 0 halves the side."""
    layers, channels = [], 3
    for width in widths:
        layers += ([nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()] if width
                   else [nn.MaxPool2d(2)])
        channels = width or channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(),
                         *classifier(512 * 7 * 7, classes))


def vgg11(classes=1000):
    """Configuration A."""
    return vgg((64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0), classes)


def vgg16(classes=1000):
    """Configuration D."""
    return vgg((64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0),
               classes)


def classifier(features, classes):
    """The last layers of AlexNet and VGG, with most of their parameters."""
    return (nn.Linear(features, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, classes))


class Residual(nn.Module):
    """A body, and a shortcut around it: a projection, or the input itself in other channels."""

    def __init__(self, body, channels_in, channels, stride, projects):
        super().__init__()
        self.body, self.stride, self.added = body, stride, channels - channels_in
        changes = self.added or stride > 1
        self.shortcut = convolution(channels_in, channels, 1, stride) if projects and changes \
            else None

    def forward(self, x):
        """The same form, or a smaller and deeper one."""
        if self.shortcut is not None:
            around = self.shortcut(x)
        else:
            around = functional.pad(x[:, :, :: self.stride, :: self.stride],
                                    (0, 0, 0, 0, 0, self.added))
        return functional.relu(self.body(x) + around)


def bottleneck(channels_in, width, stride):
    """Three convolutions, 1 3 1; four times as many channels come out as are inside."""
    body = nn.Sequential(convolution(channels_in, width, 1), nn.ReLU(),
                         convolution(width, width, 3, stride), nn.ReLU(),
                         convolution(width, 4 * width, 1))
    return Residual(body, channels_in, 4 * width, stride, projects=True)


def basic(channels_in, width, stride):
    """Two convolutions of 3; the shortcut has no parameters."""
    body = nn.Sequential(convolution(channels_in, width, 3, stride), nn.ReLU(),
                         convolution(width, width, 3))
    return Residual(body, channels_in, width, stride, projects=False)


def stages(block, channels, first_width, counts, grows):
    """All blocks; from one stage to the next the width doubles and the side halves."""
    blocks = []
    for stage, count in enumerate(counts):
        for place in range(count):
            width = first_width << stage
            blocks.append(block(channels, width, 2 if stage and not place else 1))
            channels = grows * width
    return blocks


def resnet50(classes=1000):
    """He et al. 2015, for ImageNet."""
    return nn.Sequential(
        convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1),
        *stages(bottleneck, 64, 64, (3, 4, 6, 3), grows=4),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes))


def resnet_of_cifar(blocks, classes):
    """He et al. 2015: three stages of so many blocks."""
    return nn.Sequential(
        convolution(3, 16, 3), nn.ReLU(), *stages(basic, 16, 16, (blocks,) * 3, grows=1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def resnet20(classes=10):
    """The smallest one for CIFAR-10."""
    return resnet_of_cifar(3, classes)


def resnet110(classes=10):
    """The one that the documents train on CIFAR-10."""
    return resnet_of_cifar(18, classes)
