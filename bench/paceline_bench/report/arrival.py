"""`paceline report arrival`: collectives whose ranks enter one after the other.

The page is made of parts, a module each: `figures(files)` gives its Figures, and `cells(named)`
the Cells of claims, of {name: Figure}. A new part is a line of PARTS. The figures of a profile
are a part of their own, made of its folder.
"""

from paceline_bench.report import (
    arrival_across,
    arrival_inside,
    arrival_losses,
    arrival_measured,
    arrival_nodes,
    arrival_profile,
    arrival_random,
    arrival_runs,
    arrival_training,
)

TITLE = "Collectives and the arrival of their ranks"
ABOUT = (
    "The time that an allreduce still takes once its last rank has entered. The publication has an "
    "allreduce whose leader, or whose order of sums, follows the arrival of a node's processes, "
    "and a hierarchical one across nodes. This page adds algorithms that know the late ranks "
    "beforehand.",
)
PARTS = (arrival_runs, arrival_inside, arrival_across, arrival_nodes, arrival_measured,
         arrival_random, arrival_training)
CASES = {"figure 7": arrival_inside.SMALL, "figure 8": arrival_inside.LARGE}


def make(files, profile=None):
    """The figures; `files`: Measured; `profile`: a folder of `paceline profile --out`, or None."""
    found = arrival_profile.figures(profile)
    found += [figure for part in PARTS for figure in part.figures(files)]
    if any(figure.name in CASES for figure in found):
        found.append(arrival_losses.figure(found, CASES))
    return found


def cells(figures):
    """{claim: its Cells}."""
    named, found = {figure.name: figure for figure in figures}, {}
    for part in PARTS:
        for key, some in part.cells(named).items():
            found.setdefault(key, []).extend(some)
    return found


commands = arrival_measured.commands
