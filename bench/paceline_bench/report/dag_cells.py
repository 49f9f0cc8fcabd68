"""Cells of the page about task graphs."""

from dataclasses import replace

from paceline_bench.report import dag_linear
from paceline_bench.report.dag import PUBLISHED
from paceline_bench.report.dag_replays import CHAINED, NUMBERED, READY
from paceline_bench.report.measured import rows_of
from paceline_bench.report.verdicts import Cell

OTHERS = ("funnel:numbered", "concom:numbered")


def epochs(figure, others, network):
    """Speed of depcha by other types' for the network of the claim, with more than one worker."""
    for panel in figure.panels:
        times = {line.label: {point.ranks: point.seconds for point in line.points}
                 for line in panel.lines}
        title = panel.title.partition(",")[0]
        if "depcha" in times and title == network:
            for other in others:
                for ranks, took in times.get(other, {}).items():
                    if ranks > 1 and ranks in times["depcha"]:
                        yield Cell(panel.lines[0].kind, f"{title}, {other}, {ranks} workers",
                                   took / times["depcha"][ranks])


def replayed(compared, way, others, network=""):
    """Cells of replays between nodes."""
    return [replace(one.cell, where=f"{one.cell.where}, against {one.other}") for one in compared
            if one.way == way and one.other in others and network in ("", one.model)]


def communicating(figure, name):
    """{method and algorithm: seconds} of table 2, simulated."""
    return next(({line.label: line.points[0].seconds for line in panel.lines}
                 for panel in figure.of("simulated") if panel.title.startswith(name)), {})


def of_table_2(figure):
    """Table 2, and the speeds of figure 5 that follow from it."""
    found = {}
    for name, compute_s in PUBLISHED.items():
        took = communicating(figure, name)
        for other in ("BE", "MST"):
            found[f"table 2: {name}, {other}"] = [Cell(
                "simulated", "", took["LP Algorithm 1"] / took[f"{other} Algorithm 1"])]
        found[f"figure 5: {name}"] = [Cell(
            "simulated", "", (took["BE Algorithm 1"] + compute_s)
            / max(took["LP Algorithm 3"], compute_s))]
    return found


def losses(figure):
    """The largest of the last losses, by the smallest, of each network."""
    for panel in figure.panels:
        ends = [line.points[-1].value for line in panel.lines]
        yield Cell("measured", panel.title, max(ends) / min(ends))


def of_linear():
    """Table 1 and theorem 3.1: cells of LP, MST and BE, a verdict for each collective."""
    places = [(collective, ranks) for collective in dag_linear.COLLECTIVES
              for ranks in dag_linear.RANKS]
    found = {"table 1": [
        Cell("simulated", f"{method} on {ranks}", dag_linear.simulated_s(method, collective, ranks)
             / dag_linear.formula_s(method, collective, ranks), group=collective)
        for collective, ranks in places for method in dag_linear.METHODS]}
    for method in ("MST", "BE"):
        found[f"theorem 3.1: {method}"] = [
            Cell("simulated", f"on {ranks}", dag_linear.ratio(method, collective, ranks)
                 / dag_linear.speed_up(method, ranks), group=collective)
            for collective, ranks in places]
    return found


def in_a_node():
    """Speed of depcha by other types', for a step of ResNet-50 on 2 ranks of one node."""
    took = {row["type"]: float(row["step_ms"]) for row in rows_of("overlap.csv")}
    return [Cell("measured", f"against {other}, one launch", took[other] / took["depcha"],
                 group="2 ranks of one node") for other in took if other != "depcha"]


def per_key():
    """The most that a key of KVStore auto takes, by the least."""
    took = [float(row["us_per_key"]) for row in rows_of("store.csv")]
    return [Cell("measured", "", max(took) / min(took))] if took else []


def cells(figures):
    """{claim: its Cells}."""
    named = {figure.name: figure for figure in figures[:5]}
    pairs = named["replay"].compared
    first = named["epoch time"]
    return {
        "figures 13, 15": [*epochs(first, ("funnel", "concom"), "resnet50"),
                           *replayed(pairs, CHAINED, OTHERS, "resnet50"),
                           *in_a_node()],
        "figure 14": [*epochs(first, ("funnel",), "inception-bn"),
                      *replayed(pairs, CHAINED, OTHERS[:1], "inception-bn")],
        "figures 13-15: auto": [*replayed(pairs, NUMBERED, (CHAINED,)),
                                *replayed(pairs, READY, ("depcha:ready",))],
        **of_table_2(named["table 2"]),
        "figure 5: loss": list(losses(named["loss"])),
        **of_linear(),
        "cost per key": per_key()}
