"""The publication's claims about linear pipelines, and their outcomes in this page's figures."""

import math

from paceline import _core

from paceline_bench.measure import devices, stages
from paceline_bench.report.device import NAMES, took
from paceline_bench.report.verdicts import Claim, beyond, judged, left_out

NEAR = 1.02


def formula_s(collective, way, count, nbytes):
    """Table 1 with gamma = 0."""
    p, n, block, alpha, beta = count, nbytes, devices.BLOCK, 1e-7, 1e-10
    if way == "LP":
        once = (p - 1 + n / block) * alpha + (block * (p - 1) + n) * beta
        return 2 * once if collective == "allreduce" else once
    if way == "MST":
        return math.log2(p) * (alpha + n * beta) * (2 if collective == "allreduce" else 1)
    rounds = math.log2(p) + p - 1 if collective == "broadcast" else 2 * math.log2(p)
    return rounds * alpha + 2 * (p - 1) / p * n * beta


def of_table():
    """Largest deviation of emulated times from table 1, at 16 MiB on 4 and 8 devices."""
    nbytes, worst = 16 << 20, 0.0
    for collective, ways in devices.WAYS.items():
        for way in set(ways) - {devices.OWN_BLOCK}:
            for count in (4, 8):
                ratio = took(collective, way, count, nbytes) / formula_s(
                    collective, way, count, nbytes)
                worst = max(worst, abs(ratio - 1))
    return worst


def speed_up(panel, over):
    """Speed of the linear pipeline as a multiple, at the longest message."""
    rate = {one.label: one.points[-1].mb_per_s for one in panel.lines if one.kind == "emulated"}
    return rate[NAMES["LP"]] / rate[NAMES[over]]


def growth_of(panel):
    """The longest time by the shortest one over 3 devices and more, of the linear pipeline."""
    times = [p.seconds for p in panel.lines[0].points if p.ranks > 2]
    return max(times) / min(times)


def on_gpus(figure):
    """Outcomes of figure 3, if it was measured: of the panel of each collective with most
    participants, at the longest message."""
    found, most = [], {}
    for panel in figure.of("measured"):  # a panel with many lines has parts
        ranks = panel.lines[0].points[0].ranks
        known = most.setdefault(panel.collective, (ranks, []))
        if ranks > known[0]:
            known = most[panel.collective] = (ranks, [])
        if ranks == known[0]:
            known[1].append(panel)
    for _, parts in most.values():
        panel = parts[0]
        title = panel.title.partition(", part ")[0]
        last = {one.label: one.points[-1] for part in parts for one in part.lines}
        pipes = [point for way, point in last.items() if way.startswith("LP")]
        if not pipes or "MST" not in last:
            continue
        best = min(pipes, key=lambda point: point.seconds)
        times = last["MST"].seconds / best.seconds
        words = f"{title}, {_core.human_bytes(best.bytes)}: {times:.2f} times as fast"
        if f" {best.ranks} x " in title:
            found.append(judged("measured", words, times >= 1, "the tree is faster here"))
        else:  # the document's have a device each
            share = panel.bounds[best.bytes] / best.seconds if best.bytes in panel.bounds else 0
            found.append(beyond("measured", f"{words}, at {share:.2f} of the copy bound of what "
                                "they share"))
    return tuple(found)


def stages_overlap(figure):
    """The Outcome of the pipeline through the host, of its longest message."""
    if not figure.table:
        return left_out("it was not measured; --measured takes files of paceline bench --device "
                        "staged --json")
    row = dict(zip(figure.table[0], figure.table[-1], strict=True))
    together = sum(int(row[name].removesuffix(" %")) for name in stages.STAGES)
    return judged("measured", f"{row['collective']} of {row['message']}, {row['ranks']} ranks with "
                  f"{row['devices']} devices: all stages together were at work for {together} % of "
                  "the time", together > 100, "one stage waits for the other")


def claims(figures):
    """A Claim for each table, theorem and figure of the publication that is about devices."""
    over_bytes, over_count, ratios = (figure.of("emulated") for figure in figures[:3])
    worst = of_table()
    tree, exchange = ([round(speed_up(panel, over), 2) for panel in over_bytes]
                      for over in ("MST", "BE"))
    growing = [growth_of(panel) for panel in over_count]
    most = [[max(p.seconds for p in one.points) for one in panel.lines] for panel in ratios]
    steps = 3
    return [
        Claim("table 1", "The costs of the three algorithms.", (judged(
            "emulated", f"at 16 MiB on 4 and 8 devices within {100 * worst:.1f} %",
            worst <= 0.02, "the lowering does something else"),)),
        Claim("theorem 3.1", "A linear pipeline is up to log2 p times as fast as a spanning tree, "
              "and up to twice as fast as a bidirectional exchange.", (judged(
                  "emulated", "; ".join(
                      f"{panel.collective}: {tree_:.2f} and {exchange_:.2f}"
                      for panel, (tree_, exchange_, _) in zip(ratios, most)),
                  all(tree_ <= steps * NEAR and exchange_ <= 2 * NEAR
                      for tree_, exchange_, _ in most), "the ratios are larger"),)),
        Claim("figure 3", "On 4 GPUs broadcast, reduce and allreduce are 2.3, 8.7 and 7.9 times as "
              "fast as Caffe's spanning trees.", (
                  judged("emulated", f"broadcast: {tree[0]} times as fast", tree[0] >= 1.8,
                         "the tree is cut as well"),
                  judged("emulated", f"reduce and allreduce: {tree[1]} and {tree[2]} times as fast",
                         tree[1] >= 4, "log2 p is 2; Caffe's tree also waits for whole messages "
                         "before it combines, and here sums cost nothing"),
                  beyond("emulated", "the bidirectional exchange sends less in an allreduce: "
                         f"the pipeline is {exchange[2]} times as fast as that, and what is chosen "
                         f"{chosen_by_pipeline(over_bytes[2]):.2f} times as fast as it"),
                  *on_gpus(figures[0]))),
        Claim("figure 4", "The pipeline takes as long on 4 GPUs as on 2, and on 6 as on 5.",
              (judged("emulated", "from 3 to 8 devices it grows by at most "
                      f"{100 * (max(growing) - 1):.1f} %", max(growing) <= 1.05,
                      "blocks are too long"),)),
        Claim("figure 5, table 2", "Training is up to 2.2 times as fast.", (left_out(
            "this page is about collectives alone; `paceline report dag` has it"),)),
        Claim("elsewhere: stages", "Y. Ueno, figure 6: a ring between nodes is fast where its "
              "copies out, sends, receives, sums and copies in overlap.", (
                  stages_overlap(figures[3]),)),
        Claim("elsewhere: GPUs", "S. Barrachina and others, figure 10: with GPUs, pipelined MPI "
              "comes near to NCCL in training.", (left_out(
                  "it takes nodes of GPUs; `paceline report training` simulates them"),)),
    ]


def chosen_by_pipeline(panel):
    """Speed of the library's choice by the linear pipeline's, at the longest message."""
    rate = {one.label: one.points[-1].mb_per_s for one in panel.lines if one.kind == "emulated"}
    return rate[NAMES[devices.CHOSEN]] / rate[NAMES["LP"]]
