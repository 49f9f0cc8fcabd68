"""A ResNet for 8x8 digits: large enough that its gradients are worth sending in several buckets."""

from torch import nn


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut; `stride` 2 halves the picture's side."""

    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        # GroupNorm keeps no running statistics, so the gradients are all that ranks must share.
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False),
            nn.GroupNorm(8, channels_out),
            nn.ReLU(inplace=True),
            nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False),
            nn.GroupNorm(8, channels_out),
        )
        # A silent body makes each block the identity at first, which trains several times faster.
        nn.init.zeros_(self.body[-1].weight)
        self.shortcut = nn.Identity()
        if channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, images):
        """Maps (batch, channels, side, side) to the same form, perhaps smaller and deeper."""
        return nn.functional.relu(self.shortcut(images) + self.body(images))


class DigitResNet(nn.Module):
    """Three stages of `blocks` blocks each: 6 * blocks + 2 layers, as in He et al. (2015).

    It has 32 layers and 1.86 million parameters: 7.4 MB of float32 gradients.
    """

    def __init__(self, classes, blocks=5, width=32):
        super().__init__()
        layers = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.GroupNorm(8, width), nn.ReLU()]
        channels = width
        for stage in range(3):
            for block in range(blocks):
                halve = stage > 0 and block == 0
                layers.append(Block(channels, width << stage, 2 if halve else 1))
                channels = width << stage
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classify = nn.Linear(channels, classes)

    def forward(self, images):
        """Maps (batch, 3, 8, 8) pictures to (batch, classes) scores."""
        return self.classify(self.features(images))
