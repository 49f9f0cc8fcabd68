"""Figures 5 and 6 of the publication: both algorithms with four ranks, step by step."""

from paceline import _core, draw
from paceline.schedules import unit_count

from paceline_bench.report.lines import Figure
from paceline_bench.report.simulated import ELEMENT
from paceline_bench.report.verdicts import Cell

RUNS = {
    "figure 5": ("allreduce", "dynamic_leader", 4096, (9e-6, 3e-6, 0.0, 6e-6)),
    "figure 6": ("reduce", "arrival_chain", 1 << 20, (0.0, 3e-3, 1e-3, 2e-3)),
}


def trace_of(collective, algorithm, nbytes, arrivals):
    """The simulated Trace of ranks that enter at these times."""
    world = _core.World(collective, algorithm, len(arrivals), fused=True, arrivals=list(arrivals))
    count = unit_count(collective, len(arrivals), nbytes)
    return draw.from_core(world.simulate(count, ELEMENT, "shm", list(arrivals)))


def figures(files):
    """The Figures of this part."""
    found = []
    for name, (collective, algorithm, nbytes, arrivals) in RUNS.items():
        times = ",".join(f"{1e6 * at:g}us" for at in arrivals)
        found.append(Figure(
            name, f"{collective}/{algorithm}, four ranks, simulated",
            f"`paceline draw {collective} --algorithm {algorithm} --ranks 4 --size {nbytes} "
            f"--machine shm --arrivals {times}` draws the same.", (),
            picture=draw.to_svg(trace_of(collective, algorithm, nbytes, arrivals))))
    return found


def cells(named):
    """{claim: its Cells}: which ranks wait for which."""
    leader, chain = (trace_of(*run) for run in RUNS.values())
    last = max(chain.arrival_s)
    return {
        "figure 5": [Cell("simulated", "", 1e6 * (min(leader.exit_s) - max(leader.arrival_s)))],
        "figure 6": [Cell("simulated", "", sum(at < last for at in chain.exit_s))]}
