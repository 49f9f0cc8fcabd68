"""From what the ranks of all launches have found to images/s, speed-ups and verdicts.

A launch of a library is refused where a sum was wrong, a bucket was sent before it was ready, nodes
sent fewer bytes than they must, or a step took less time than the links need.
"""

import numpy as np
from rich.table import Table
from rich.text import Text

from paceline.bench import crossing, links, report, statistics

OURS = "paceline"


def replayed(ranks, made, bound_s, cluster):
    """One launch: {"idle", "times": {model: {label: [s]}}, "notes"} from the files of its ranks.

    made: {model: Step}."""
    times, notes = {}, []
    names, ranks_of = crossing.places(ranks)
    for model, step in made.items():
        found = [rank["models"][model]["found"] for rank in ranks]
        times[model] = {}
        for label in found[0]:
            why = fault(label, found, step, bound_s, (names, ranks_of), cluster)
            if why:
                notes.append(f"{crossing.REFUSED} {label}, {model}: {why}")
            else:
                took = [[one[0] for one in rank[label]] for rank in found]
                times[model][label] = [float(t) for t in statistics.slowest(took)]
    idle = float(np.median([rank["models"][m]["idle"] for rank in ranks[:1] for m in made]))
    return {"idle": idle, "times": times, "notes": notes}


def fault(label, found, step, bound_s, places, cluster):
    """Why the figures of a library are refused; empty if they are not.

    found: by rank {label: [(s, (sent, received), fault)]}; places: names of nodes, their ranks."""
    for rank in found:
        for _, _, why in rank[label]:
            if why:
                return why
    if not cluster:
        return ""
    names, ranks_of = places
    if len(names) != cluster.nodes:
        return f"the ranks ran on {len(names)} nodes and not on {cluster.nodes}"
    needed = links.least("allreduce", step.bytes, ranks_of)
    for number in range(len(found[0][label])):
        moved = [found[ranks[0]][label][number][1] for ranks in ranks_of]
        why = links.short_of(needed, moved, names)
        took = max(rank[label][number][0] for rank in found)
        why = why or links.too_fast(step.least_s(bound_s) / took, step.bytes)
        if why:
            return why
    return ""


def trained(ranks):
    """One launch of real training, as replayed() has it."""
    times, notes, hashes = {}, [], {}
    for backend in ranks[0]["backends"]:
        found = [rank["backends"][backend] for rank in ranks]
        hashes[backend] = sorted({one["sha256"] for one in found})
        if len(hashes[backend]) > 1:
            notes.append(f"{crossing.REFUSED} {backend}: after the last step the weights of "
                         f"{len(ranks)} ranks are of {len(hashes[backend])} kinds")
        times[backend] = [float(t) for t in statistics.slowest([one["times"] for one in found])]
    cpu_s = {backend: float(np.mean([rank["backends"][backend]["cpu_s"] for rank in ranks]))
             for backend in times}
    losses = {backend: found["losses"] for backend, found in ranks[0]["backends"].items()}
    return {"idle": ranks[0]["idle"], "times": {"ddp": times}, "notes": notes,
            "cpu_s": cpu_s, "weights_sha256": hashes, "losses_of_rank_0": losses}


def of_replay(content):
    """{model: {label: what is said about it}}."""
    plan = content["plan"]
    return {model: compared([launch["times"][model] for launch in content["launches"]],
                            plan["images"] * plan["ranks"]) for model in plan["steps"]}


def of_ddp(content):
    """The same of real training."""
    plan = content["plan"]
    launches = content["launches"]
    found = compared([launch["times"]["ddp"] for launch in launches],
                     plan["images"] * plan["ranks"])
    for backend, row in found.items():
        row["cpu_s"] = float(np.median([launch["cpu_s"][backend] for launch in launches]))
    return {plan["model"]: found}


def compared(launches, images):
    """{label: row} from {label: [s]} of each launch; where a library is missing, so is its pair."""
    labels = dict.fromkeys(label for launch in launches for label in launch)
    found = {}
    for label in labels:
        medians = [float(np.median(launch[label])) for launch in launches if label in launch]
        low, high = statistics.interval(medians)
        found[label] = {
            "launches": len(medians), "step_s": float(np.median(medians)),
            "images_per_s": images / float(np.median(medians)),
            "images_per_s_low": images / high, "images_per_s_high": images / low,
        }  # fmt: skip
        if label != OURS:
            found[label]["paceline"] = against(label, launches)
    return found


def against(label, launches):
    """How many times as fast ours is, with the 95 % interval and the verdict."""
    pairs = [launch for launch in launches if OURS in launch and label in launch]
    values = statistics.ratios([one[OURS] for one in pairs], [one[label] for one in pairs])
    if not values:
        return None
    if len(values) < statistics.LEAST_LAUNCHES:
        return {"speed_up": 1 / float(np.median(values)), "verdict": ""}
    verdict = statistics.judge(values)
    return {"speed_up": 1 / verdict.ratio, "low": 1 / verdict.high, "high": 1 / verdict.low,
            "verdict": verdict.word}


def table(summary):
    """A row for each library of each model."""
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for heading in ("model", "library"):
        out.add_column(heading, no_wrap=True)
    for heading in ("launches", "step s", "images/s", "95 % interval", "ours is", "95 % interval"):
        out.add_column(heading, justify="right", no_wrap=True)
    out.add_column("processor s", justify="right", no_wrap=True)
    out.add_column("verdict", no_wrap=True)
    for model, rows in summary.items():
        for label, row in rows.items():
            found = row.get("paceline") or {}
            out.add_row(
                model, label, str(row["launches"]), f"{row['step_s']:.3f}",
                f"{row['images_per_s']:.1f}",
                f"{row['images_per_s_low']:.1f} - {row['images_per_s_high']:.1f}",
                f"{found['speed_up']:.2f}x" if found else "",
                f"{found['low']:.2f} - {found['high']:.2f}" if "low" in found else "",
                f"{row['cpu_s']:.3f}" if "cpu_s" in row else "",
                Text(found.get("verdict", ""), report.COLOURS.get(found.get("verdict"), "")))
            model = ""
    return out
