"""Claims of the two publications, and their outcomes in this page's figures."""

from paceline_bench.report import dag_linear, dag_replays
from paceline_bench.report.dag import PUBLISHED, iteration_s
from paceline_bench.report.paired import words_of
from paceline_bench.report.verdicts import Claim, Outcome, beyond, judged, left_out

FITTED = ("computing = 3 x communicating with 8 workers, so that there is something to hide and "
          "something to hide it behind.")
COPIES = ("the document's loops also copy each gradient from and to a GPU, which funnel waits for; "
          "by perfect links alone 2.0 / 1.7 = 1.2 is the most")


def by_label(panel):
    """{label: {ranks: seconds}}."""
    return {line.label: {point.ranks: point.seconds for point in line.points}
            for line in panel.lines}


def gains(panels, slow, fast):
    """Speed of `fast` as a multiple of `slow`'s, with more than one worker."""
    found = []
    for panel in panels:
        times = by_label(panel)
        found += [times[slow][ranks] / times[fast][ranks] for ranks in times.get(slow, {})
                  if ranks > 1 and ranks in times.get(fast, {})]
    return found


def epoch_claims(figure):
    """Figures 13 to 15."""
    simulated, measured = figure.of("simulated"), figure.of("measured")
    busy = "ranks share the cores of one machine, so that no exchange hides behind computing"
    best, most = [], []
    for kind, panels, why in (("simulated", simulated, ""), ("measured", measured, busy)):
        others = [gains(panels, slow, "depcha") for slow in ("funnel", "concom")]
        if all(others):
            found = [*others[0], *others[1]]
            best.append(judged(kind, f"depcha is {words_of(found)} as fast as funnel and concom",
                               min(found) >= 0.999, why or "concom is as fast with few calls"))
            most.append(judged(kind, f"depcha is {words_of(others[0])} as fast as funnel",
                               max(others[0]) > 1.6, why or COPIES))
        ours = gains(panels, "depcha", "auto")
        if ours:
            best.append(beyond(kind, f"auto is {words_of(ours)} as fast as depcha"))
    yield Claim("figure 13", "Up to 8 workers dependency chaining is the fastest.", tuple(best),
                FITTED)
    yield Claim("figures 14, 15", "Dependency chaining lowers the epoch time by a factor of more "
                "than 1.6 against funnel.", tuple(most), FITTED)


def accuracy_claim(figure):
    """Figure 16."""
    if not figure.panels:
        return left_out("no file of measurements was given")
    best = {line.label: max(point.value for point in line.points)
            for panel in figure.panels for line in panel.lines}
    low, high = min(best.values()), max(best.values())
    return Outcome("measured", f"other data: the ways reach {low:.3f} to {high:.3f} on them",
                   "not reproduced", "no ImageNet and no 256 GPUs; that all ways learn alike is")


def communicating(figure, name):
    """{label: seconds} of table 2, simulated."""
    for panel in figure.of("simulated"):
        if panel.title.startswith(name):
            return {line.label: line.points[0].seconds for line in panel.lines}
    return {}


def table_claims(figure):
    """Table 2 and figure 5, by the simulated communication and the published computing."""
    shares, speeds = [], []
    published = {"alexnet": (0.10, 0.11, 2.12), "googlenet": (0.06, 0.43, 2.19)}
    for name, (of_be, of_mst, faster) in published.items():
        comm = communicating(figure, name)
        lp, be, mst = (comm[f"{method} Algorithm 1"] for method in ("LP", "BE", "MST"))
        shares.append(judged(
            "simulated", f"{name}: {100 * lp / be:.0f} % of BE's, {100 * lp / mst:.0f} % of MST's; "
            f"{100 * of_be:.0f} % and {100 * of_mst:.0f} % are published",
            lp < 0.6 * mst and lp / be < 2 * of_be,
            "half of MST's and two thirds of BE's is what theory says of 4 GPUs; the document's "
            "rivals took ten times as long as these links ask for"))
        slow = iteration_s(be, PUBLISHED[name], 1, overlaps=False)
        fast = iteration_s(comm["LP Algorithm 3"], PUBLISHED[name], 3, overlaps=True)
        speeds.append(judged(
            "simulated", f"{name}: {slow / fast:.2f} times as fast; {faster} is published",
            slow / fast >= 0.9 * faster, "here BE communicates for a tenth of the time that table "
            "2 says, so that computing decides"))
    yield Claim("table 2", "LP's communication in Algorithm 1 is a small part of BE's and MST's.",
                tuple(shares), "the rate of a link, that of PCIe 3.")
    yield Claim("figure 5", "Overlapped LP in Algorithm 3 trains about twice as fast as BE in "
                "Algorithm 1.", tuple(speeds), "computing is as published.")


def loss_claim(figure):
    """Figure 5: that all learn alike."""
    if not figure.panels:
        return left_out("no file of measurements was given")
    spreads = []
    for panel in figure.panels:
        ends = [line.points[-1].value for line in panel.lines]
        spreads.append(max(ends) - min(ends))
    return judged("measured", f"last losses differ by {max(spreads):.3f} at most",
                  max(spreads) < 0.2, "runs of different lengths were given")


def claims(figures):
    """The Claims."""
    epochs, replay, accuracy, loss, table = figures[:5]
    found = [*epoch_claims(epochs),
             Claim("figure 16", "With 256 GPUs, and a learning rate that grows with the workers, "
                   "the accuracy comes to 0.71.", (accuracy_claim(accuracy),)),
             *table_claims(table),
             Claim("figure 5", "All algorithms converge alike in iterations.",
                   (loss_claim(loss),)),
             *dag_linear.claims()]
    found.append(Claim("replay", "Dependency chaining is the fastest; the documents have no `auto` "
                       "and no buckets.", tuple(dag_replays.outcomes(replay.compared))))
    return [claim for claim in found if claim.outcomes]
