"""The publication's claims about training, and their outcomes in this page's figures."""

from importlib.util import find_spec

from paceline_bench.measure import statistics
from paceline_bench.report import gpu, horovod_gpus, paired, replays
from paceline_bench.report.horovod import NETWORKS, PUBLISHED
from paceline_bench.report.horovod_gpus import (
    BLOCKING as BLOCKING_GPU,
    IN_PARTS,
    PICTURES,
    STRAIGHT,
)
from paceline_bench.report.horovod_steps import (
    AUTO,
    CASES,
    OURS,
    PARTS,
    RING,
    call_s,
    fused,
    record_of,
    speeds,
    step_of,
)
from paceline_bench.report.verdicts import Claim, Outcome, beyond, judged, left_out

FITTED = ("computing: as long as AUTO communicates with 32 pictures on 8 nodes, twice as long with "
          "64, since the document gives no time.")
FILES = "no file with the times of each launch was given"
LEAST = {"alexnet": 1.05, "resnet50": 1.05, "vgg11": 1.05, "resnet110": 1.5}  # published gains
ALIKE = ("with 8 nodes both send the same bytes, and the simulator knows nothing of what makes an "
         "MPI's rabenseifner slow; with 9 nodes it sends more")
GPU_SUMS = "copies and sums take a smaller share of a step in the model"
CLEARLY, NEGLIGIBLE, LEAST_GPU, NEAR_NCCL = 1.2, 1.05, 1.5, 1.2
SHORT = ("its step is so short that what Horovod itself takes for each round counts, and that is "
         "not simulated")


def span(low, high):
    """1.02 to 1.25, or 1.02."""
    return f"{low:.2f} to {high:.2f}" if high - low >= 0.005 else f"{low:.2f}"


def gains(way, over, networks=tuple(PUBLISHED)):
    """{network: (least, most) speed as a multiple}."""
    found = {}
    for name in networks:
        times = [speeds(name, *case) for case in CASES]
        ratios = [one[over] / one[way] for one in times]
        found[name] = (min(ratios), max(ratios))
    return found


def words(found):
    """alexnet 1.02 to 1.04, ..."""
    return ", ".join(f"{name} {span(low, high)}" for name, (low, high) in found.items())


def said_of(found):
    """lab of 8 nodes, ..., Open MPI 5: alexnet 1.20 (1.19 to 1.21), ...; of paired.Compared."""
    places = {}
    for one in found:
        verdict = one.verdict
        interval = f" ({1 / verdict.high:.2f} to {1 / verdict.low:.2f})" if verdict else ""
        where = f"{one.network}, {one.peer}"
        places.setdefault(where, []).append(f"{one.model} {one.gain:.2f}{interval}")
    return "; ".join(f"{where}: {', '.join(times)}" for where, times in places.items())


def from_files(figure, way):
    """The Outcome of a way over an MPI that is to be faster than its blocking call. Files with too
    few launches for a verdict are listed, and decide nothing."""
    found = [one for one in figure.compared if (one.way, one.other) == (way, replays.OVER_MPI)]
    if not found:
        return left_out(FILES)
    said = f"times as fast as the blocking call: {said_of(found)}"
    if not (words := {one.word for one in found} - {paired.NO_VERDICT}):
        return Outcome("measured", said, "not reproduced", "no verdict: fewer than "
                       f"{statistics.LEAST_LAUNCHES} launches of each file")
    return judged("measured", said, words == {"faster"}, "launch by launch: "
                  + ", ".join(sorted(words)))


def from_ours(figure):
    """Measured, beyond the document unless we are slower: an Outcome for each peer."""
    ours = [one for one in figure.compared if one.way == replays.OURS]
    for other in dict.fromkeys(one.other for one in ours):
        found = [one for one in ours if one.other == other]
        words = dict.fromkeys(one.word for one in found)
        said = (f"paceline, times as fast as {replays.LABELS[other.removeprefix('ddp:')]}: "
                f"{said_of(found)}; {', '.join(words)}")
        yield beyond("measured", said) if "slower" not in words else judged(
            "measured", said, False, "the document has no other library")


def near(kind, found, published):
    """The Outcome of {network: number} beside the published ones; they may be 2 % apart."""
    off = {name: found[name] / number - 1 for name, number in published.items()}
    said = ", ".join(f"{name} {found[name]:,} ({100 * share:+.2f} %)"
                     for name, share in off.items())
    return judged("counted", f"{kind}: {said}", max(map(abs, off.values())) < 0.02,
                  "layers differ")


def table_2():
    """The networks' numbers; flops if there is torch to build them."""
    parameters = {name: sum(row[1] for row in record_of(name)["keys"]) for name in PUBLISHED}
    outcomes = [near("parameters", parameters, {name: row[0] for name, row in PUBLISHED.items()})]
    if find_spec("torch"):
        from paceline_bench.networks import models

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
            from_files(figure, replays.NON_BLOCKING))),
        Claim("figure 9", "In four parts the ring trains ResNet110 1.5 to 1.6 times, ResNet50, "
              "VGG11 and AlexNet up to 1.22 times as fast as AUTO.", (
                  *(judged("simulated", words({name: parts[name]}), parts[name][1] >= least, SHORT)
                    for name, least in LEAST.items()),
                  from_files(figure, replays.IN_PARTS)), FITTED),
        Claim("figure 9", "The document has nothing: no other library is in it.", (
            beyond("simulated", f"what we choose: {words(ours)} times as fast as AUTO; gpt "
                   f"{gains(OURS, AUTO, ('gpt',))['gpt'][1]:.2f}"),
            *from_ours(figure))),
        *figure_10()]


def on_gpus(way, over):
    """{network: (least, most) speed as a multiple}, over PICTURES."""
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
        Claim("figure 10", "NCCL clearly outperforms MPI if links are the bottleneck, AlexNet and "
              "VGG11; if computing is, ResNet50, the difference is negligible.", (
                  judged("simulated", f"{STRAIGHT}: {words(nccl)}",
                         min(nccl[name][0] for name in bound_by_links) > CLEARLY
                         and nccl["resnet50"][1] < NEGLIGIBLE,
                         "one of the two computes for longer than it communicates"),),
              gpu.FITTED),
        Claim("figure 10", "In four parts MPI trains up to 60 % faster.", (
            judged("simulated", words(parts), gains >= LEAST_GPU, GPU_SUMS),), gpu.FITTED),
        Claim("figure 10", "In four parts MPI comes near to NCCL.", (
            judged("simulated", f"{STRAIGHT}, over MPI in four parts: {words(left)}",
                   max(high for _, high in left.values()) < NEAR_NCCL,
                   "what is left are sums and the first and last copy"),), gpu.FITTED)]
