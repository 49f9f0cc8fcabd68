"""`paceline report ring`: a ring as a software pipeline, an MPI's allreduce, and a plain ring.

Published were 256 MB on 8 nodes, the median of 10 runs and its interval.
"""

from dataclasses import replace

from paceline import _core
from paceline.schedules import how, unit_count

from paceline_bench.report import measured, networks
from paceline_bench.report.lines import Figure, Line, Panel, Point
from paceline_bench.report.simulated import ELEMENT, Way, bound_s, line

TITLE = "A ring as a software pipeline"
ABOUT = (
    "Allreduce on 8 ranks: this library's choice, the MPI's own, and a plain ring over "
    "MPI_Sendrecv, which sends a whole block at a time and sums it afterwards. The publication has "
    "256 MB over two links of 56 Gbit/s, with the median of ten runs and its interval.",
    "In the lab the message is shorter, since links have 200 Mbit/s: compare fractions of the "
    "bound.",
)
RANKS, BYTES = 8, 256_000_000
CHOSEN, PLAIN, OWN = (measured.WORDS[name] for name in (
    "paceline", "mpi ring of Sendrecv", "mpi"))


def chosen(model):
    """The Line of the choice for a call, under the model."""
    choice = _core.choose("allreduce", RANKS, BYTES, machine=model.machine)
    world = _core.World("allreduce", choice["algorithm"], RANKS, fused=True, **how(choice))
    count = unit_count("allreduce", RANKS, BYTES)
    took = world.simulate(count, ELEMENT, model.machine).span_s
    label = f"{CHOSEN}: {choice['algorithm']} x {choice['segments']}"
    return Line(label, model, (Point(RANKS, BYTES, took),))


def at_published_rates():
    """The simulated Panel."""
    model, sizes = networks.FDR, [BYTES]
    lines = (
        chosen(model),
        line(Way("allreduce", "ring"), RANKS, sizes, model, PLAIN),
        line(Way("allreduce", "rabenseifner"), RANKS, sizes, model, "rabenseifner, not cut"),
        line(Way("allreduce", "recursive_doubling"), RANKS, sizes, model,
             "recursive doubling, not cut"))
    return Panel(f"allreduce of 256 MB, {RANKS} ranks, {model.name}", "allreduce", lines,
                 {BYTES: bound_s("allreduce", RANKS, BYTES, model)})


def takes(file, row):
    """True for calls that add up, and were warmed up."""
    return row.get("combines", True) and not measured.is_cold(row)


def not_warmed_up(file, row):
    """True for the first calls of new processes."""
    return measured.is_cold(row)


def largest(panel):
    """The same with the largest message of a file alone: bars show one."""
    nbytes = max(point.bytes for line in panel.lines for point in line.points)
    lines = tuple(
        replace(line, points=tuple(point for point in line.points if point.bytes == nbytes))
        for line in panel.lines)
    bounds = {at: bound for at, bound in panel.bounds.items() if at == nbytes}
    return replace(panel, title=f"{_core.human_bytes(nbytes)}: {panel.title}", bounds=bounds,
                   lines=tuple(line for line in lines if line.points))


def make(files):
    """The figures; `files`: Measured."""
    found, cold = ([largest(panel) for panel in measured.panels(files, "allreduce", wanted)]
                   for wanted in (takes, not_warmed_up))
    return [
        Figure("at the published rates", "simulated",
               "A model has no spread: a schedule always takes the same time. Algorithms that MPIs "
               "use stand for the MPIs. The model has the rate of one link, since the fastest "
               "published run, 97 ms, fits one link.",
               (at_published_rates(),), drawn="bars"),
        Figure("measured", "the median and its 95 % interval",
               "Whiskers are the 95 % interval of the median over all runs, without assumptions "
               "about the noise. The dashed line is the bound.",
               tuple(found), "" if found else measured.nothing("ring"), drawn="bars"),
        Figure("not warmed up", "the first ten calls of new processes",
               "Each library alone, in new processes. Bars are the median of ten calls, and "
               "whiskers the fastest and the slowest call. The right whisker includes the work "
               "that a library does at its first call: opening, registering or compiling.",
               tuple(cold), "" if cold else measured.nothing("ring"), drawn="bars")]


FOLDER = "build/ring"
CAMPAIGN = "bench/results/ring.csv"


def commands():
    """The commands that make the files, in the lab: ten launches, scaled down. If the MPI's
    non-blocking call is measured, input and output are two buffers, as in pipelining.commands()."""
    yield f"mkdir -p {FOLDER}"
    yield f"./dev lab up {RANKS} --rate 200mbit"
    for mpi in ("openmpi5", "mpich5", "impi"):
        bench = f"./dev lab bench allreduce --mpi {mpi} -n {RANKS} --sizes 16MiB"
        yield (f"{bench} --separate --launches 10 --repeats 1 --peer-segments 4 --peer-ring "
               f"--json {FOLDER}/{mpi}.json")
        yield f"{bench} --cold --launches 3 --peer-ring --json {FOLDER}/first-{mpi}.json"
    yield "./dev lab down"
    yield f"python bench/collect.py {CAMPAIGN} {FOLDER}/*.json"
