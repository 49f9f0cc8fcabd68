"""Computing times of a V100. The publications had V100s, and give no times.

The rates are those of a public benchmark (github.com/u39kun/deep-learning-benchmark: V100, float32,
PyTorch 0.3, 16 pictures), over the networks' flops: VGG16, of 30.9 Gflop a picture forward, trains
them in 83.5 ms, ResNet-152, of 23.0, in 136.5 ms. Networks of wide 3 x 3 convolutions are computed
with fewer multiplications than flops counts. AlexNet, ResNet110 and DenseNet201 are not in it: they
get the rate of the residual network, which is a guess.
"""

from paceline.kvstore.records import read

from paceline_bench.train import perfect
from paceline_bench.train.published import PUBLISHED

PASSES = 3   # forward, and a backward pass that takes twice as long
FLOPS = {name: flops for name, (_, flops) in PUBLISHED.items()} | {  # of a forward pass, a picture
    "vgg16": 30_940_528_640, "densenet201": 8_582_731_776}
FLOP_PER_S = {"vgg11": 17.8e12, "vgg16": 17.8e12}
OTHERS_FLOP_PER_S = 8.1e12
FITTED = "computing: to rates that a public benchmark has of a V100; the document gives no time."


def compute_s(name, pictures):
    """Seconds of both passes of a network of FLOPS."""
    rate = FLOP_PER_S.get(name, OTHERS_FLOP_PER_S)
    return PASSES * FLOPS[name] * pictures / rate


def step_of(name, pictures):
    """The recorded perfect.Step of a network, scaled to these seconds."""
    return perfect.step_of(read(name), compute_s(name, pictures))
