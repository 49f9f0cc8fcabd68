"""Figure 10 of `paceline report training`, simulated: each node computes on a GPU.

Over an MPI a message is copied from the GPU to the host, summed over the nodes by processors, and
copied back. NCCL has no model here: in its place stands the same ring straight between the GPUs, to
which copies and sums cost nothing.
"""

from functools import lru_cache

from paceline_bench.report import gpu, horovod_steps
from paceline_bench.report.horovod_steps import PARTS, RING
from paceline_bench.report.lines import Figure, Line, Panel, Point
from paceline_bench.report.networks import EDR, EDR_ALONE
from paceline_bench.report.simulated import Way, seconds
from paceline_bench.train import perfect
from paceline_bench.train.published import PUBLISHED

NODES, PICTURES = 8, (32, 64)
COPY_BYTES_PER_S = 10e9   # PCI Express 3.0 x16, each way
SEGMENTS = 4
BLOCKING, IN_PARTS, STRAIGHT = "MPI, blocking", "MPI, in four parts", "straight between GPUs"
MODELS = {BLOCKING: EDR, IN_PARTS: EDR, STRAIGHT: EDR_ALONE}


@lru_cache(maxsize=None)
def call_s(label, nbytes):
    """An allreduce of a message in the GPUs' memory."""
    copy_s = nbytes / COPY_BYTES_PER_S
    if label == BLOCKING:
        return copy_s + horovod_steps.call_s(RING, NODES, nbytes) + copy_s
    if label == IN_PARTS:  # copies are faster than the ring, so only the first and last one show
        return (copy_s / SEGMENTS + horovod_steps.call_s(PARTS, NODES, nbytes)
                + copy_s / SEGMENTS)
    return seconds(Way("allreduce", "ring", segments=SEGMENTS), NODES, nbytes, EDR_ALONE)


def speeds(name, pictures):
    """{way: seconds of a step}."""
    step = gpu.step_of(name, pictures)
    return {label: perfect.fused(step, lambda nbytes, label=label: call_s(label, nbytes))[0]
            for label in MODELS}


def panel(name, pictures):
    """A network; labels say how many times as fast as the blocking call."""
    times = speeds(name, pictures)
    lines = tuple(Line(f"{label}: {times[BLOCKING] / took:.3f}", MODELS[label],
                       (Point(NODES, 0, took),)) for label, took in times.items())
    return Panel(f"{name}, {NODES} GPUs, {pictures} pictures each", "", lines,
                 {0: gpu.compute_s(name, pictures)})


def figure():
    """The Figure; nothing of it is measured."""
    return Figure(
        "figure 10", "a step of training on GPUs, and how many times as fast as a blocking MPI",
        "The ring between nodes of one GPU each. Over an MPI a message is copied to the host and "
        f"back, at {COPY_BYTES_PER_S / 1e9:g} GB/s each way, and processors sum. With four parts, "
        "one part is copied while others are exchanged. \"Straight\" stands for the best that NCCL "
        "could do: nothing is copied, and sums cost nothing. The dashed line is computing alone on "
        f"a V100: {gpu.PASSES} times the flops of a forward pass, at "
        f"{gpu.OTHERS_FLOP_PER_S / 1e12:g} TFLOP/s, VGG11 at {gpu.FLOP_PER_S['vgg11'] / 1e12:g}, "
        "the rates of ResNet-152 and VGG16 in a public benchmark. The rate for AlexNet is a guess.",
        tuple(panel(name, pictures) for pictures in PICTURES for name in PUBLISHED), drawn="bars")
