"""`paceline report device`: a publication about linear pipelines between GPUs, again.

L. Wang, W. Wu, G. Bosilca, R. Vuduc, Z. Xu: Efficient communications in training large scale neural
networks, arXiv 1611.04255: table 1, theorem 3.1, figures 3 and 4.
"""

import math
from functools import lru_cache

from paceline import _core

from paceline_bench.measure import devices
from paceline_bench.report import device_measured
from paceline_bench.report.lines import Figure, Line, Model, Panel, Point
from paceline_bench.report.simulated import Way, bound_s, seconds

TITLE = "Linear pipelines between devices"
ABOUT = (
    "A linear pipeline sends a message block by block down a line of devices: each receives one "
    "block while it sends another, so that the time hardly depends on the number of devices. This "
    "page has table 1, theorem 3.1 and figures 3 and 4 of the publication that proposed it.",
    "Emulated: the copies and sums of the real program, as enqueued on streams, with the model "
    "times of two copy engines for each device. Simulated: the schedules under the same machine "
    "model, without streams. Measured: files of `paceline bench --device cuda` or `./dev gpu`, on "
    "GPUs, and of `paceline bench --device staged`, through the host.",
)
# PCI Express 3.0 x16 as the publication has it: about 10 GB/s, and a start-up of 0.1 us.
MACHINE = "alpha_us=0.1,gbit_per_s=80,reduce_gbyte_per_s=0"
EMULATED = Model("PCIe x16, emulated", MACHINE, "emulated")
SIMULATED = Model("PCIe x16, simulated", MACHINE)
LARGEST, MOST_DEVICES = 256 << 20, 8
SCALED_BYTES = 64 << 20
FEW = 4  # devices of figure 3
COUNTS = (2, 4, 8)  # of table 1 and theorem 3.1
NO_GPU = ("No file has measurements of a GPU. `./dev gpu` or `paceline bench --device cuda --json` "
          "on a machine with a GPU writes one, and --measured FILE reads it.")
NO_STAGES = ("No file has the stages. `paceline bench allreduce --device staged -n 2 --json FILE` "
             "writes one, also without a GPU, and --measured FILE reads it.")
NAMES = {"LP": "linear pipeline", "MST": "spanning tree", "BE": "bidirectional exchange",
         devices.OWN_BLOCK: "linear pipeline, own block", devices.CHOSEN: "chosen"}


@lru_cache(maxsize=None)
def took(collective, way, count, nbytes):
    """Seconds between so many emulated devices."""
    algorithm = devices.WAYS[collective].get(way, "")
    options = devices.options_of(way, nbytes, devices.BLOCK)
    return devices.seconds(collective, algorithm, count, nbytes, MACHINE, options)


def emulated(collective, way, counts, sizes):
    """A Line over numbers of devices, or over sizes."""
    points = tuple(Point(count, nbytes, took(collective, way, count, nbytes))
                   for count in counts for nbytes in sizes)
    return Line(NAMES[way], EMULATED, points)


def pipeline_of(collective, nbytes):
    """The simulated linear pipeline."""
    return Way(collective, "chain", segments=devices.options_of("LP", nbytes, devices.BLOCK)[
        "segments"])


def message_sizes(largest):
    """The document's: 4 KiB and so on, four times as much each."""
    return [1 << power for power in range(12, largest.bit_length(), 2)]


def over_sizes(collective, largest):
    """A panel of figure 3."""
    sizes = message_sizes(largest)
    lines = tuple(emulated(collective, way, [FEW], sizes) for way in NAMES)
    short = [nbytes for nbytes in sizes if nbytes <= 16 << 20]
    points = tuple(Point(FEW, nbytes, seconds(pipeline_of(collective, nbytes), FEW, nbytes,
                                              SIMULATED)) for nbytes in short)
    return Panel(f"{collective}, {FEW} devices", collective,
                 (*lines, Line(NAMES["LP"], SIMULATED, points)),
                 {nbytes: bound_s(collective, FEW, nbytes, SIMULATED) for nbytes in sizes})


def over_devices(collective, most, nbytes):
    """A panel of figure 4."""
    counts = list(range(2, most + 1))
    lines = tuple(emulated(collective, way, counts, [nbytes]) for way in ("LP", "MST", "BE"))
    return Panel(f"{collective} of {_core.human_bytes(nbytes)}", collective, lines,
                 {count: bound_s(collective, count, nbytes, SIMULATED) for count in counts},
                 "ranks")


def theorem(most, nbytes):
    """Theorem 3.1: how many times as long the other two take."""
    counts = [count for count in COUNTS if count <= most]
    made = []
    for collective in devices.WAYS:
        lines = [Line(f"{NAMES[way]} / linear pipeline", EMULATED, tuple(
            Point(count, nbytes, took(collective, way, count, nbytes)
                  / took(collective, "LP", count, nbytes)) for count in counts))
            for way in ("MST", "BE")]
        lines.append(Line("log2 p", SIMULATED, tuple(
            Point(count, nbytes, math.log2(count)) for count in counts)))
        made.append(Panel(f"{collective} of {_core.human_bytes(nbytes)}", collective, tuple(lines),
                          {}, "ranks"))
    return tuple(made)


def make(files, largest=LARGEST, most_devices=MOST_DEVICES, scaled=SCALED_BYTES):
    """The figures; `files`: Measured."""
    on_gpus = device_measured.over_sizes(files)
    return [
        Figure("figure 3", "over the length of the message",
               "Short messages need few steps, long messages many blocks. From about 1 MiB on, "
               "linear pipelines of broadcast and reduce come near the bound of the links. An "
               "allreduce by bidirectional exchange sends less, 2 (p-1)/p of the message instead "
               "of 2; so does this library's choice. The choice on GPUs of 2026-11-26 started too "
               "many tasks; today's, which knows what a start costs, is not measured on a GPU.",
               (*(over_sizes(collective, largest) for collective in devices.WAYS), *on_gpus),
               "" if on_gpus else NO_GPU),
        Figure("figure 4", "over the number of devices",
               "The time of the linear pipeline stays the same; that of the spanning tree grows "
               "with log2 p. Two devices send to each other at the same time, so that their "
               "allreduce takes half.",
               (*(over_devices(collective, most_devices, scaled)
                  for collective in devices.WAYS), *device_measured.over_devices(files))),
        Figure("theorem 3.1", "how many times as long the others take",
               "The claim, for long messages without start-up: log2 p for the spanning tree, and "
               "up to 2 for the bidirectional exchange.",
               theorem(most_devices, scaled),
               drawn="ratios"),
        through_the_host(files)]


def through_the_host(files):
    """Figure 6 of the ring's publication: calls between ranks, with the stages of the pipeline."""
    table = device_measured.stage_table(files)
    return Figure("stages", "from device to device through the host",
                  "Y. Ueno's ring between nodes (2018) pins memory, copies out, sends, receives, "
                  "sums and copies in as a software pipeline. The table has the share of the "
                  "calls' time in which each stage worked; stages overlap, so the sum may exceed "
                  "100 %. The first calls pin memory, and a pool keeps it.",
                  device_measured.stage_panels(files), "" if table else NO_STAGES, table=table)


read = device_measured.read
