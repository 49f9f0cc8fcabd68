"""A small GPT over bytes: four layers of width 256, a context of 128."""

import torch
from torch import nn
from torch.nn import functional

LETTERS, CONTEXT, WIDTH, HEADS, LAYERS = 256, 128, 256, 4, 4


class Attention(nn.Module):
    """Masked self-attention of several heads."""

    def __init__(self):
        super().__init__()
        self.inputs, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        """x: (batch, places, WIDTH)."""
        batch, places, _ = x.shape
        parts = self.inputs(x).view(batch, places, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.output(found.transpose(1, 2).reshape(batch, places, WIDTH))


class Block(nn.Module):
    """Attention, then two linear layers, each around a shortcut."""

    def __init__(self):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
        self.wide = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                  nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        """The same form."""
        x = x + self.attention(x)
        return x + self.wide(x)


class Gpt(nn.Module):
    """Radford et al. 2018 in small; the next byte for every place."""

    def __init__(self, classes=LETTERS):
        super().__init__()
        self.letters, self.places = nn.Embedding(classes, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.end = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, classes))

    def forward(self, x):
        """x: (batch, places) of bytes."""
        where = torch.arange(x.shape[1])
        return self.end(self.blocks(self.letters(x) + self.places(where)))
