"""`paceline report arrival`: collectives whose ranks enter one after the other.

The page is made of parts, a module each: `figures(files)` gives its Figures, and `claims(figures)`
the Claims about those, of {name: Figure}. A new part is a line of PARTS.
"""

from paceline.report import arrival_across, arrival_inside

TITLE = "Collectives and the arrival of their ranks"
ABOUT = (
    "What is left to do once the last rank has entered. Published was an allreduce whose leader, "
    "or whose order of sums, follows the arrival of a node's processes, and a hierarchical one "
    "across nodes; here are also algorithms that know beforehand who will be late.",
)
PARTS = (arrival_across, arrival_inside)


def make(files):
    """The figures; `files`: Measured."""
    return [figure for part in PARTS for figure in part.figures(files)]


def claims(figures):
    """The table on top of the page."""
    named = {figure.name: figure for figure in figures}
    return [claim for part in PARTS for claim in part.claims(named)]
