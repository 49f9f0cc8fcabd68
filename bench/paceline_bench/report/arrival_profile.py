"""Figures 2 to 4 and tables 1 and 2 of the publication: of a profile of the user's, or of the one
in bench/results."""

from paceline.profiling import calls, document
from paceline.profiling.summary import summarise

from paceline_bench.report import arrival_random, measured
from paceline_bench.report.lines import Figure

KEPT = measured.RESULTS / "ddp"  # a profile, and a file with its origin in words
OWN = ("`paceline profile --out profile -- torchrun --nproc-per-node 2 train.py`, or the same with "
       "an MPI program, records your own; `--profile profile` shows it.")
ABOUT = {
    "figure 2": "Shares of the ranks' calls, and of their time in collectives.",
    "figure 3": "Small messages go to 1 KiB, medium ones to 64 KiB, as published.",
    "figure 4": "Factors are multiples of the time of such a call after its last rank has entered.",
    "table 1": "Means over calls, as multiples of the time of such a call after its last rank has "
               "entered.",
    "table 2": "The same for the ranks of each node, as means over nodes.",
}


def figures(profile):
    """The Figures; `profile`: a folder, or None for the kept one."""
    read = calls.read(profile or KEPT)
    summary = summarise(read)
    where = f"measured, {read.ranks} ranks on {summary.nodes} nodes"
    about = dict(ABOUT)
    if not profile:
        about["figure 2"] += f" {(KEPT / 'origin').read_text().strip()} {OWN}"
    found = [Figure(name, f"{title}; {where}", about[name], (), picture=picture)
             for name, title, picture in document.figures(summary)]
    for name, title, rows in document.tables(summary):
        cells = tuple((said, number(worst), number(average)) for said, worst, average in rows)
        found.append(Figure(name, f"{title}; {where}", ABOUT[name], (),
                            table=(("", "worst factor", "average factor"), *cells)))
    return found + arrival_random.replayed(summary.arrivals_s, where)


def number(value):
    """Three digits; empty for an unknown value."""
    return f"{value:.3g}" if value == value else ""
