"""Figures 2 to 4 and tables 1 and 2 of the publication, of a profile of the user's."""

from paceline.profiling import calls, document
from paceline.profiling.summary import CLASSES, summarise

from paceline_bench.report import arrival_random
from paceline_bench.report.lines import Figure
from paceline_bench.report.verdicts import Claim, judged, left_out

WITHOUT = ("No profile was given. `paceline profile --out profile -- torchrun --nproc-per-node 2 "
           "train.py`, or the same of a program of MPI, makes one; --profile profile shows it.")
ABOUT = {
    "figure 2": "Shares of the ranks' calls, and of their time in collectives.",
    "figure 3": "Small messages go to 1 KiB, medium ones to 64 KiB, as published.",
    "figure 4": "Factors are multiples of what such a call takes once all ranks are there.",
    "table 1": "Means over calls; multiples of what such a call takes once all ranks are there.",
    "table 2": "The same of the ranks of each node, means over nodes.",
}


class Profile:
    """The figures of a folder of profiles."""

    def __init__(self, folder):
        found = calls.read(folder)
        self.summary, self.ranks = summarise(found), found.ranks
        self.rows = {(row.collective, row.sizes): row for row in self.summary.rows}

    @property
    def where(self):
        """Number of ranks and nodes, in words."""
        return f"measured, {self.ranks} ranks on {self.summary.nodes} nodes"


def figures(profile):
    """The Figures; `profile`: a folder, or None."""
    if profile is None:
        return [Figure("figures 2 to 4, tables 1 and 2", "a profile of training, measured",
                       "Frequency of collectives, and the spread of their ranks' entries.",
                       (), missing=WITHOUT)]
    one = Profile(profile)
    found = [Figure(name, f"{title}; {one.where}", ABOUT[name], (), picture=picture)
             for name, title, picture in document.figures(one.summary)]
    for name, title, rows in document.tables(one.summary):
        cells = tuple((said, number(worst), number(average)) for said, worst, average in rows)
        found.append(Figure(name, f"{title}; {one.where}", ABOUT[name], (),
                            table=(("", "worst factor", "average factor"), *cells)))
    return found + arrival_random.replayed(one.summary.arrivals_s, one.where)


def number(value):
    """Three digits; empty for an unknown value."""
    return f"{value:.3g}" if value == value else ""


def claims(profile):
    """The Claims about a profile."""
    said = {
        "figure 2": "Allreduce is 75 % of the calls and 96 % of their time.",
        "table 1": "Imbalance factors are larger the shorter messages are.",
        "table 2": "Ranks of a node come far closer together than those of the cluster."}
    if profile is None:
        return [Claim(name, words, (left_out("no profile was given"),))
                for name, words in said.items()]
    one = Profile(profile)
    outcomes = {"figure 2": shares(one), "table 1": by_size(one), "table 2": in_nodes(one)}
    return [Claim(name, words, (outcomes[name],)) for name, words in said.items()]


def shares(one):
    """The Outcome of allreduce's shares."""
    row = one.rows.get(("allreduce", "all"))
    if row is None:
        return left_out("the program makes no allreduce")
    total_s = sum(each.time_s for each in one.summary.rows if each.sizes == "all")
    share = row.time_s / total_s if total_s else 0.0
    return judged("measured", f"{100 * row.share_of_calls:.0f} % of the calls, {100 * share:.0f} % "
                  "of the time", row.share_of_calls > 0.5 and share > 0.9, "another program")


def by_size(one):
    """Worst factors, from small to large messages."""
    factors = [(name, one.rows[("allreduce", name)].worst) for name, _ in CLASSES
               if ("allreduce", name) in one.rows]
    factors = [(name, worst) for name, worst in factors if worst == worst]
    if len(factors) < 2:
        return left_out("its allreduces are of one range of sizes")
    falls = all(before[1] > after[1] for before, after in zip(factors, factors[1:]))
    return judged("measured", ", ".join(f"{name}: {worst:.3g}" for name, worst in factors), falls,
                  "another program")


def in_nodes(one):
    """Worst factors, of nodes and of all."""
    row = one.rows.get(("allreduce", "all"))
    if row is None or row.node_worst != row.node_worst or one.summary.nodes < 2:
        return left_out("there are no nodes of several ranks beside each other")
    return judged("measured", f"{row.node_worst:.3g} in nodes, {row.worst:.3g} of all",
                  2 * row.node_worst < row.worst, "another program")
