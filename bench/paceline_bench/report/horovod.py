"""`paceline report training`: a publication's figures about training with Horovod, again.

A. Castelló and others: table 2 and the figures 8 to 10 of the publication about pipelined
collectives, whose other figures `paceline report pipelining` has.
"""

from collections import Counter

from paceline_bench.report import horovod_gpus, paired, replays
from paceline_bench.report.horovod_steps import AUTO, CASES, record_of, speeds, step_of
from paceline_bench.report.lines import Counted, Figure, Line, Panel, Point
from paceline_bench.report.measured import nothing
from paceline_bench.report.networks import EDR
from paceline_bench.train import perfect, replay
from paceline_bench.train.published import PUBLISHED

TITLE = "Pipelined collectives in training"
ABOUT = (
    "Horovod's thread sums gradients over all nodes during the backward pass. Gradients that are "
    "ready go into one allreduce of at most 64 MB, and allreduces follow each other. This page has "
    "table 2 and figures 8 to 10 of a publication that used other allreduces there.",
    "Simulated: the times at which gradients are ready were recorded in real passes of these "
    "networks on one core, and are scaled, so that with 32 pictures a step computes as long as "
    "AUTO communicates. Each allreduce takes its time in this library's simulator under the "
    "published network. In that model blocking and non-blocking calls are the same. Measured: "
    "Horovod's loop, or DDP's buckets, of the same recordings are replayed between nodes "
    "(`paceline train replay`).",
)
NETWORKS = (*PUBLISHED, "gpt")
COUNTED = Counted("the networks", "their weights, layer by layer, as `paceline train record` "
                  "wrote them")


def panel(name, ranks, pictures):
    """A network in figure 9; labels give the speed as a multiple of AUTO's."""
    times = speeds(name, ranks, pictures)
    lines = tuple(Line(f"{label}: {times[AUTO] / took:.3f}", EDR, (Point(ranks, 0, took),))
                  for label, took in times.items())
    return Panel(f"{name}, {ranks} nodes of {pictures} pictures, EDR", "", lines,
                 {0: step_of(name, pictures).compute_s})


def sizes(name):
    """Figure 8: the number of gradients of at most 1 KiB, 2 KiB and so on."""
    counted = Counter(max(10, (perfect.ELEMENT_BYTES * row[1] - 1).bit_length())
                      for row in record_of(name)["keys"])
    return Line(name, COUNTED, tuple(Point(0, 1 << power, None, value=counted[power])
                                     for power in sorted(counted)))


def make(files):
    """All figures; `files`: what replays.read() made."""
    found = [panel for file in files for panel in file.panels()]
    compared = tuple(one for file in files for one in file.compared)
    return [
        Figure("figure 8", "gradients by their size",
               "Without fusion each gradient is a message. All networks have many short gradients; "
               "their few long ones differ by a factor of a thousand.",
               (Panel("gradients of a step", "", tuple(map(sizes, NETWORKS)), {},
                      value="gradients"),), drawn="counts"),
        paired.Paired(
            "figure 9", "a step of training, and how many times as fast as AUTO",
            "AUTO is Open MPI's choice, which the publication found to be rabenseifner's "
            "algorithm. The dashed line is computing alone. VGG11 and gpt are only simulated, from "
            "recordings like the others; gpt is not in the publication. The table has ratios of "
            "times of the same launch; a verdict takes ten launches.",
            (*(panel(name, *case) for case in CASES for name in NETWORKS), *found),
            "" if found else nothing("training"), drawn="bars", table=paired.table(compared),
            compared=compared),
        horovod_gpus.figure()]


read = replays.read


FOLDER = "build/training"


def commands():
    """The commands that make the files, in the lab. Eight nodes at 250 Mbit/s send as many bytes a
    second as four at 500 Mbit/s: more, and the cores that they share would be the limit. DDP's
    buckets end with their step, so two in a row are enough if a step is long."""
    ways = ",".join(f"ddp:{library}" for library in replay.LIBRARIES)
    fused = ",".join(f"horovod:{library}" for library in (*replay.LIBRARIES, *replay.RINGS))
    yield f"mkdir -p {FOLDER}"
    for nodes, mpi, launches, work in ((8, "openmpi5", 10, "--images 32 --ratio 1"),
                                       (9, "mpich5", 3, "--images 64 --ratio 2")):
        yield f"./dev lab up {nodes} --rate 250mbit"
        for model, steps in (("resnet110", 5), ("resnet50", 2), ("alexnet", 2)):
            yield (f"./dev lab train --mpi {mpi} --models {model} --launches {launches} "
                   f"--steps {steps} {work} --ways {ways} "
                   f"--json {FOLDER}/{model}-{nodes}-{mpi}.json")
        if mpi == "openmpi5":  # whose ring is the document's RNG
            yield (f"./dev lab train --mpi {mpi} --models resnet110 --launches 3 --steps 5 {work} "
                   f"--ways {fused} --json {FOLDER}/horovod-resnet110-{nodes}-{mpi}.json")
        yield "./dev lab down"
