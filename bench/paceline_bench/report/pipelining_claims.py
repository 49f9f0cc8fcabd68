"""The publication's claims, figure by figure, and their outcomes in this page's figures."""

from paceline_bench.report.verdicts import NOT_REPRODUCED, Claim, Outcome, beyond, judged, left_out

NEAR = 1.02  # rates that differ by less are one rate
COMBINING = "the rate of combining, so that sums take a third of the time of a whole ring."
FILES = "no file of measurements was given"
SMALL_SUMS = ("at the lab's 200 Mbit/s the sums take about 1 % of the time: there is hardly "
              "anything to hide")


def rates(panel, longest=None):
    """{label: MB/s} at the longest message, or at another one."""
    at = longest or max(point.bytes for line in panel.lines for point in line.points)
    return {line.label: point.mb_per_s for line in panel.lines for point in line.points
            if point.bytes == at}


def gains(panels, cut, whole):
    """Speed of `cut` as a multiple of `whole`'s, at the longest message, of panels with both."""
    found = [rates(panel) for panel in panels]
    return [one[cut] / one[whole] for one in found if cut in one and whole in one]


def times(values):
    """1.40, 1.41 times."""
    return ", ".join(f"{value:.2f}" for value in values) + " times"


def span(values):
    """0.99 to 1.12 times."""
    low, high = (f"{end(values):.2f}" for end in (min, max))
    return f"{low} times" if low == high else f"{low} to {high} times"


def best_algorithm(figure):
    """Figure 1."""
    outcomes = []
    for kind in ("simulated", "measured"):
        whole = [{name: rate for name, rate in rates(panel).items() if name != "paceline, chosen"}
                 for panel in figure.of(kind)]
        ours = [one["ring"] / max(one.values()) for one in whole if "ring" in one]
        if ours:
            outcomes.append(judged(
                kind, f"the ring has {span(ours)} the rate of the best line of its panel",
                min(ours) > 1 / NEAR, "where others come as near to the bound, or an MPI cuts "
                "its messages itself, the ring that is not cut is not the best"))
    return Claim("figure 1", "With long messages the ring is the best algorithm; no MPI takes it "
                 "by itself.", tuple(outcomes))


def segments(figure, name, claim, cut, least):
    """Figures 2 and 3."""
    outcomes = []
    for kind in ("simulated", "measured"):
        found = [max(values) for values in (
            [one[label] / one["ring"] for label in one if label.startswith(f"ring {cut} ")]
            for one in map(rates, figure.of(kind)) if "ring" in one) if values]
        if found:
            outcomes.append(judged(kind, f"the best cut of the ring is {span(found)} as fast as "
                                   "the whole", min(found) >= least,
                                   SMALL_SUMS if kind == "measured" else
                                   "the model hides less"))
    return Claim(name, claim, tuple(outcomes), fitted=COMBINING)


def arithmetic(figure):
    """Figure 4."""
    outcomes = []
    for kind in ("simulated", "measured"):
        shares = {name: [1 - gain for gain in gains(figure.of(kind), name, f"{name}, no reduce")]
                  for name in ("ring", "ring x 4")}
        if not all(shares.values()):
            continue
        words = ", ".join(f"{100 * share:.0f} %" for share in shares["ring"])
        four = ", ".join(f"{100 * share:.0f} %" for share in shares["ring x 4"])
        outcomes.append(judged(
            kind, f"not cut {words}, in four {four}",
            all(0.25 < share < 0.4 for share in shares["ring"])
            and max(shares["ring x 4"]) < 0.14, SMALL_SUMS))
    return Claim("figure 4", "Sums take 28 to 37 % of the time; with four segments less than 14 % "
                 "is not hidden.", tuple(outcomes),
                 fitted="the rate of combining, to the share without segments; the share with four "
                 "is a finding.")


def other(figure, collective, label, claim, holds, why):
    """Figures 5 to 7: the gain of eight segments."""
    outcomes = []
    for kind in ("simulated", "measured"):
        found = gains(figure.of(kind), f"{label} x 8", label)
        if found:
            outcomes.append(judged(kind, f"eight segments: {times(found)} as fast as one",
                                   all(map(holds, found)), why))
    return Claim(figure.name, claim, tuple(outcomes))


def of_mpis(figure, claim):
    """Figures 11 and 12."""
    found = [max(one[name] for name in one if name.startswith("the MPI, non-blocking x"))
             / one["the MPI, blocking"] for one in map(rates, figure.of("measured"))
             if "the MPI, blocking" in one
             and any(name.startswith("the MPI, non-blocking x") for name in one)]
    outcome = left_out(FILES) if not found else judged(
        "measured", f"several at once: {span(found)} as fast as its blocking call",
        min(found) > NEAR, "an MPI that pipelines by itself, or that has a better algorithm for "
        "the blocking call, gains nothing")
    return Claim(figure.name, claim, (outcome,))


def elsewhere(figure, claim):
    """Figures 13 and 14: four segments on other networks."""
    found = gains(figure.of("simulated"), "ring x 4", "ring")
    return Claim(figure.name, claim, (judged(
        "simulated", f"the ring in four segments: {times(found)} as fast as the whole",
        min(found) > NEAR, "the model of that network hides less"),), fitted=COMBINING)


def growth(figure):
    """The Claim about more ranks, beyond the publication."""
    (panel,) = figure.panels
    rows = {line.label: {p.ranks: p.mb_per_s for p in line.points} for line in panel.lines}
    taken_over = [ranks for ranks, rate in rows["ring"].items()
                  if rows["rabenseifner"][ranks] > NEAR * rate]
    last = max(rows["ring"])
    found = (f"from {min(taken_over)} ranks on rabenseifner overtakes the ring" if taken_over
             else f"the ring stays the fastest up to {last} ranks")
    return Claim("growth", "The document has nothing: it ends at 32 ranks.",
                 (beyond("simulated", found),))


TRAINING = Claim(
    "figures 8 to 10", "Pipelining brings 5 to 60 % in training with TensorFlow and Horovod.",
    (Outcome("neither", "nothing on this page", NOT_REPRODUCED,
             "this page is about collectives alone; `paceline report training` has them"),))


def claims(figures):
    """A Claim for each figure of the publication, in its order."""
    by_name = {figure.name: figure for figure in figures}
    return [
        best_algorithm(by_name["figure 1"]),
        segments(by_name["figure 2"], "figure 2", "Cut into segments of a fixed size the ring "
                 "keeps 4000 MB/s with long messages, where the whole falls to 3000.", "by", 1.1),
        segments(by_name["figure 3"], "figure 3", "Cut into 2 to 8 segments the ring is up to 25 % "
                 "faster.", "x", 1.1),
        arithmetic(by_name["figure 4"]),
        other(by_name["figure 5"], "allgather", "linear", "A linear allgather gains nothing from "
              "segments.", lambda gain: gain < NEAR, "an MPI or a network that announces long "
              "messages first gains from shorter ones"),
        other(by_name["figure 6"], "broadcast", "chain", "A broadcast along a chain gains 46 and "
              "71 %, on 7 and 8 ranks.", lambda gain: gain > 1.4, "it gains less"),
        other(by_name["figure 7"], "reduce_scatter", "ring", "A reduce-scatter gains about 100 "
              "MB/s from segments above 16 MB.", lambda gain: gain > NEAR, SMALL_SUMS),
        TRAINING,
        of_mpis(by_name["figure 11"], "MPICH and Intel MPI gain considerably, too."),
        of_mpis(by_name["figure 12"], "Open MPI 4.0 gains as well."),
        elsewhere(by_name["figure 13"], "On slower links, with 8 and 15 nodes, it gains as much."),
        elsewhere(by_name["figure 14"], "With 30 and 32 processes in groups it gains, too."),
        growth(by_name["growth"])]
