"""`paceline report ring`: a ring as a software pipeline, an MPI's allreduce, and a plain ring.

Published were 256 MB on 8 nodes, the median of 10 runs and its interval.
"""

from dataclasses import replace

from paceline import _core
from paceline.cli.common import how, unit_count
from paceline.report import measured, networks
from paceline.report.lines import Figure, Line, Panel, Point
from paceline.report.simulated import ELEMENT, Way, bound_s, line

TITLE = "A ring as a software pipeline"
ABOUT = (
    "Allreduce on 8 ranks: what this library chooses, the MPI's own, and a ring as one writes it "
    "over MPI_Sendrecv, a whole block at a time and its sum afterwards. Published were 256 MB over "
    "two links of 56 Gbit/s; of ten runs the median and its interval.",
    "In the lab the message is shorter, since its links are 200 Mbit/s: what is compared is the "
    "fraction of the bound.",
)
RANKS, BYTES = 8, 256_000_000
NONE = ("Nothing was measured. `paceline report ring --lab` prints the commands that make the "
        "files, and --measured FILE takes them.")
NAMES = {"paceline": "paceline, chosen", "mpi": "the MPI's own allreduce",
         "mpi ring of Sendrecv": "plain ring over Sendrecv"}


def chosen(model):
    """What a call would take, under the model."""
    choice = _core.choose("allreduce", RANKS, BYTES, machine=model.machine)
    world = _core.World("allreduce", choice["algorithm"], RANKS, fused=True, **how(choice))
    count = unit_count("allreduce", RANKS, BYTES)
    took = world.simulate(count, ELEMENT, model.machine).span_s
    label = f"{NAMES['paceline']}: {choice['algorithm']} x {choice['segments']}"
    return Line(label, model, (Point(RANKS, BYTES, took),))


def at_published_rates():
    """The simulated Panel."""
    model, sizes = networks.FDR, [BYTES]
    lines = (
        chosen(model),
        line(Way("allreduce", "ring"), RANKS, sizes, model, NAMES["mpi ring of Sendrecv"]),
        line(Way("allreduce", "rabenseifner"), RANKS, sizes, model, "rabenseifner, not cut"),
        line(Way("allreduce", "recursive_doubling"), RANKS, sizes, model,
             "recursive doubling, not cut"))
    return Panel(f"allreduce of 256 MB, {RANKS} ranks, {model.name}", "allreduce", lines,
                 {BYTES: bound_s("allreduce", RANKS, BYTES, model)})


def takes(file, row):
    """Whatever adds up."""
    return row.get("combines", True)


def largest(panel):
    """The same with the largest message of a file alone: bars show one."""
    nbytes = max(point.bytes for line in panel.lines for point in line.points)
    lines = tuple(
        replace(line, label=NAMES.get(line.label, line.label),
                points=tuple(point for point in line.points if point.bytes == nbytes))
        for line in panel.lines)
    bounds = {at: bound for at, bound in panel.bounds.items() if at == nbytes}
    return replace(panel, title=f"{_core.human_bytes(nbytes)}: {panel.title}", bounds=bounds,
                   lines=tuple(line for line in lines if line.points))


def make(files):
    """The figures; `files`: Measured."""
    found = [largest(panel) for panel in measured.panels(files, "allreduce", takes)]
    return [
        Figure("at the published rates", "simulated",
               "A model has no spread: the same schedule takes the same time again. No MPI is "
               "modelled; algorithms that MPIs take stand in for them. The rate of one link is "
               "taken, since the fastest published run, 97 ms, is that of one.",
               (at_published_rates(),), drawn="bars"),
        Figure("measured", "the median and its 95 % interval",
               "Between the whiskers lies the median of all runs, with a confidence of 95 %; "
               "nothing is assumed about the shape of the noise. The dashed line is the bound.",
               tuple(found), "" if found else NONE, drawn="bars")]


FOLDER = "bench/results/ring"


def commands():
    """What makes the files, in the lab: ten launches, scaled down."""
    yield f"./dev lab up {RANKS} --rate 200mbit"
    for mpi in ("openmpi5", "mpich5", "impi"):
        yield (f"./dev lab bench allreduce --mpi {mpi} -n {RANKS} --sizes 16MiB --launches 10 "
               f"--repeats 1 --peer-segments 4 --peer-ring --json {FOLDER}/{mpi}.json")
    yield "./dev lab down"
