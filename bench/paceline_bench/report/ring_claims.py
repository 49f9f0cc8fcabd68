"""The publication's claims about its ring, and their outcomes in this page's figures."""

from paceline_bench.report.ring import CHOSEN, OWN, PLAIN
from paceline_bench.report.verdicts import Claim, judged

PUBLISHED_PLAIN, PUBLISHED_OWN, PUBLISHED_FIRST = 1.28, 1.82, 7.5
FITTED = "the rate of the link, to the fastest published run; the ratio is a finding."


def medians(panel):
    """{label, without what was chosen: seconds}."""
    return {line.label.split(":")[0]: line.points[0].seconds for line in panel.lines}


def slower(kind, found, name, at_least, why):
    """The Outcome of the time of `name` as a multiple of the chosen algorithm's; None if no
    panel has both."""
    ratios = [times[name] / times[CHOSEN] for times in map(medians, found)
              if name in times and CHOSEN in times]
    if not ratios:
        return None
    words = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return judged(kind, f"{name}: {words} times as long", min(ratios) >= at_least, why)


def first_calls(panels):
    """The slowest of ten calls, as a multiple of their median."""
    slowest = {line.label: [] for panel in panels for line in panel.lines}
    for panel in panels:
        for line in panel.lines:
            point = line.points[0]
            slowest[line.label].append(point.high_s / point.seconds)
    if not slowest:
        return None
    words = "; ".join(f"{name}: " + ", ".join(f"{ratio:.2f}" for ratio in ratios)
                      for name, ratios in slowest.items())
    return judged("measured", words, max(slowest.get(PLAIN, [0])) >= 2,
                  "over TCP there is no memory to register, which is what the document suspects")


def claims(figures):
    """The Claims."""
    simulated, measured, cold = (figure.panels for figure in figures)
    plain = (slower("simulated", simulated, PLAIN, PUBLISHED_PLAIN,
                    "the model's sums take a smaller share of the time"),
             slower("measured", measured, PLAIN, PUBLISHED_PLAIN,
                    "at 200 Mbit/s the sums that a pipeline hides take about 1 % of the time"))
    own = (slower("measured", measured, OWN, PUBLISHED_OWN,
                  "today's MPIs take a ring themselves, or another algorithm near the bound"),)
    return [Claim(name, claim, tuple(filter(None, outcomes)), fitted)
            for name, claim, outcomes, fitted in (
                ("figure 6", f"A plain ring over MPI takes {PUBLISHED_PLAIN} times as long as the "
                 "pipelined one.", plain, FITTED),
                ("figure 6", f"Open MPI's allreduce takes {PUBLISHED_OWN} times as long.", own, ""),
                ("variance", "Without warm-up the slowest run of a plain ring over MPI, its first, "
                 f"takes {PUBLISHED_FIRST} times the median.", (first_calls(cold),), ""))
            if any(outcomes)]
