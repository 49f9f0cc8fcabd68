"""What the publication claims about training, and what this page's figures say about it."""

import re
from importlib.util import find_spec

from paceline.report import horovod_gpus
from paceline.report.horovod import NETWORKS, PUBLISHED
from paceline.report.horovod_gpus import BLOCKING as BLOCKING_GPU
from paceline.report.horovod_gpus import IN_PARTS, PICTURES, STRAIGHT
from paceline.report.horovod_steps import (
    AUTO, CASES, OURS, PARTS, RING, call_s, fused, record_of, speeds, step_of)
from paceline.report.replays import BLOCKING
from paceline.report.verdicts import Claim, Outcome, beyond, judged, left_out

FITTED = ("computing: as long as AUTO communicates with 32 pictures on 8 nodes, twice as long with "
          "64, since the document gives no time.")
FILES = "no file of measurements was given"
ENOUGH = 10  # launches of a verdict
LEAST = {"alexnet": 1.05, "resnet50": 1.05, "vgg11": 1.05, "resnet110": 1.5}  # published gains
ALIKE = ("with 8 nodes both send the same bytes, and the simulator knows nothing of what makes an "
         "MPI's rabenseifner slow; with 9 nodes it sends more")
FITTED_GPU = ("computing: the rate at which a GPU computes, to what ResNet50 is known to take on a "
              "V100; the document gives no time.")
GPU_SUMS = "copies and sums take a smaller share of a step in the model"
CLEARLY, NEGLIGIBLE, LEAST_GPU, NEAR_NCCL = 1.2, 1.05, 1.5, 1.2
SHORT = ("its step is so short that what Horovod itself takes for each round counts, and that is "
         "not simulated")


def span(low, high):
    """1.02 to 1.25, or 1.02."""
    return f"{low:.2f} to {high:.2f}" if high - low >= 0.005 else f"{low:.2f}"


def gains(way, over, networks=tuple(PUBLISHED)):
    """{network: (least, most) of how many times as fast}."""
    found = {}
    for name in networks:
        times = [speeds(name, *case) for case in CASES]
        ratios = [one[over] / one[way] for one in times]
        found[name] = (min(ratios), max(ratios))
    return found


def words(found):
    """alexnet 1.02 to 1.04, ..."""
    return ", ".join(f"{name} {span(low, high)}" for name, (low, high) in found.items())


def measured(figure):
    """[(panel's title, launches, {label: how many times as fast as the blocking call})]."""
    found = []
    for panel in figure.of("measured"):
        launches = int(re.search(r"(\d+) launch", panel.title)[1])
        ratios = dict(line.label.rsplit(": ", 1) for line in panel.lines)
        found.append((panel.title, launches, {label: float(v) for label, v in ratios.items()}))
    return found


def from_files(figure, label, most=1.0):
    """The Outcome of what was measured about a way; more than `most` reproduces."""
    found = [(launches, ratios[label]) for _, launches, ratios in measured(figure)
             if label in ratios]
    if not found:
        return left_out(FILES)
    ratios, launches = [ratio for _, ratio in found], min(many for many, _ in found)
    said = f"{min(ratios):.2f} to {max(ratios):.2f} times as fast as {BLOCKING}, {len(found)} runs"
    if launches < ENOUGH:
        return Outcome("measured", said, "not reproduced",
                       f"no verdict: fewer than {ENOUGH} launches of a run")
    return judged("measured", said, min(ratios) > most, "it is slower in one of the runs")


def near(kind, found, published):
    """The Outcome of {network: number} beside the published ones; they may be 2 % apart."""
    off = {name: found[name] / number - 1 for name, number in published.items()}
    said = ", ".join(f"{name} {found[name]:,} ({100 * share:+.2f} %)"
                     for name, share in off.items())
    return judged("counted", f"{kind}: {said}", max(map(abs, off.values())) < 0.02,
                  "layers differ")


def table_2():
    """The networks' numbers; flops where there is torch to build them."""
    parameters = {name: sum(row[1] for row in record_of(name)["keys"]) for name in PUBLISHED}
    outcomes = [near("parameters", parameters, {name: row[0] for name, row in PUBLISHED.items()})]
    if find_spec("torch"):
        from paceline.train import models

        flops = {name: models.sizes_of(name)[1] for name in PUBLISHED}
        outcomes.append(near("flops", flops, {name: row[1] for name, row in PUBLISHED.items()}))
    return Claim("table 2", "Parameters, and flops of a forward pass, of AlexNet, ResNet50, VGG11 "
                 "and ResNet110.", tuple(outcomes))


def figure_8():
    """Sizes and counts."""
    counts = {name: len(record_of(name)["keys"]) for name in NETWORKS}
    longest = {name: 4 * max(row[1] for row in record_of(name)["keys"]) for name in NETWORKS}
    found = ", ".join(f"{name} {counts[name]} up to {longest[name] / 1e6:.1f} MB"
                      for name in NETWORKS)
    spread = max(longest.values()) / min(longest.values())
    return Claim("figure 8", "Each network has quite different transfers; Horovod fuses short ones "
                 "into 64 MB.", (
                     judged("counted", found, spread > 100, "they are alike"),
                     beyond("simulated", "calls of a step on 8 nodes: " + ", ".join(
                         f"{name} {calls_of(name)}" for name in NETWORKS))))


def calls_of(name):
    """Calls of a step, by the ring."""
    return fused(step_of(name, CASES[0][1]), lambda nbytes: call_s(RING, CASES[0][0], nbytes))[1]


def claims(figures):
    """A Claim for each table and figure of the publication that is about training."""
    figure = figures[1]
    ring, parts, ours = (gains(way, AUTO) for way in (RING, PARTS, OURS))
    return [
        table_2(), figure_8(),
        Claim("figure 9", "The ring makes training considerably faster than AUTO.", (
            judged("simulated", words(ring), all(low > 1.02 for low, _ in ring.values()), ALIKE),
        ), FITTED),
        Claim("figure 9", "The non-blocking call outperforms the blocking one.", (
            left_out("a blocking and a non-blocking call are the same line in the model"),
            from_files(figure, "the MPI, non-blocking"))),
        Claim("figure 9", "In four parts the ring trains ResNet110 1.5 to 1.6 times, ResNet50, "
              "VGG11 and AlexNet up to 1.22 times as fast as AUTO.", (
                  *(judged("simulated", words({name: parts[name]}), parts[name][1] >= least, SHORT)
                    for name, least in LEAST.items()),
                  from_files(figure, "the MPI, non-blocking in four parts")), FITTED),
        Claim("figure 9", "The document has nothing: no other library is in it.", (
            beyond("simulated", f"what we choose: {words(ours)} times as fast as AUTO; gpt "
                   f"{gains(OURS, AUTO, ('gpt',))['gpt'][1]:.2f}"),
            *(one for one in (from_ours(figure),) if one))),
        *figure_10()]


def on_gpus(way, over):
    """{network: (least, most) of how many times as fast}, over PICTURES."""
    found = {}
    for name in PUBLISHED:
        times = [horovod_gpus.speeds(name, pictures) for pictures in PICTURES]
        ratios = [one[over] / one[way] for one in times]
        found[name] = (min(ratios), max(ratios))
    return found


def figure_10():
    """Claims about nodes with GPUs."""
    nccl, parts, left = (on_gpus(*pair) for pair in (
        (STRAIGHT, BLOCKING_GPU), (IN_PARTS, BLOCKING_GPU), (STRAIGHT, IN_PARTS)))
    bound_by_links = ("alexnet", "vgg11")
    gains = max(high for _, high in parts.values())
    return [
        Claim("figure 10", "Where links are the bottleneck, AlexNet and VGG11, NCCL clearly "
              "outperforms MPI; where computing is, ResNet50, the difference is negligible.", (
                  judged("simulated", f"{STRAIGHT}: {words(nccl)}",
                         min(nccl[name][0] for name in bound_by_links) > CLEARLY
                         and nccl["resnet50"][1] < NEGLIGIBLE,
                         "with 64 pictures VGG11 computes for longer than it communicates"),),
              FITTED_GPU),
        Claim("figure 10", "In four parts MPI trains up to 60 % faster.", (
            judged("simulated", words(parts), gains >= LEAST_GPU, GPU_SUMS),), FITTED_GPU),
        Claim("figure 10", "In four parts MPI comes near to NCCL.", (
            judged("simulated", f"{STRAIGHT}, over MPI in four parts: {words(left)}",
                   max(high for _, high in left.values()) < NEAR_NCCL,
                   "what is left are sums and the first and last copy"),), FITTED_GPU)]


def from_ours(figure):
    """Measured, beyond the document."""
    found = [ratios["paceline"] for _, _, ratios in measured(figure) if "paceline" in ratios]
    return beyond("measured", f"paceline: {min(found):.2f} to {max(found):.2f} times as fast as "
                  f"{BLOCKING}, {len(found)} runs") if found else None
