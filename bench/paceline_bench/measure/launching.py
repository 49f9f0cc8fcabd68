"""Starts the ranks of a benchmark, shows how far they are, and collects what they have written."""

import tempfile
from pathlib import Path

from paceline import _core, on_ranks
from paceline.on_ranks import LIMIT_S, Late
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from paceline_bench.measure.meeting import make_room


def run_module(module, spec, ranks, folder, *rest, **settings):
    """paceline.on_ranks.run_module, of ranks that meet: see measure.meeting."""
    make_room(Path(folder) / "meeting", ranks)
    return on_ranks.run_module(module, spec, ranks, folder, *rest, **settings)


def launch_all(plan, launches, out):
    """Runs the plan so many times, each time in new processes; the results by launch and rank."""
    columns = (TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn(),
               TextColumn("{task.fields[at]}"))
    results, sizes, parts = [], len(plan.sizes), plan.parts()
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bars:
        bar = bars.add_task(plan.collective, total=launches * len(parts) * sizes, at="starting")
        for number in range(launches):
            found = []
            for part in parts:

                def show(place, done=(number * len(parts) + len(found)) * sizes, number=number):
                    size = _core.human_bytes(plan.sizes[place])
                    at = f"{size}, launch {number + 1} of {launches}" if launches > 1 else size
                    bars.update(bar, completed=done + place, at=at)

                found.append(launch_once(part, show))
            results.append(joined(found))
    return results


def joined(parts):
    """The results by rank of a plan from those of its parts: what is known by variant is known of
    all, the rest is the first part's."""
    ranks, *others = parts
    for other in others:
        for rank, more in zip(ranks, other):
            for case, another in zip(rank["cases"], more["cases"]):
                for name, value in another.items():
                    if isinstance(value, dict):
                        case[name] |= value
    return ranks


def launch_once(plan, show):
    """The results by rank. Between nodes a launcher hangs now and then: it may once."""
    for retry in (True, False):
        try:
            return launch_plan(plan, show)
        except Late:
            if not plan.cluster or not retry:
                raise


def launch_plan(plan, show):
    """The same without a second attempt."""
    where, limit_s = None, LIMIT_S
    if plan.cluster:  # a folder that all nodes see
        where, limit_s = plan.cluster.folder, plan.cluster.limit_s(plan)
    with tempfile.TemporaryDirectory(prefix="paceline-bench-", dir=where) as folder:
        return run_module("paceline_bench.measure.worker", plan.specification(folder), plan.ranks,
                          folder, show, plan.mpiexec, plan.environment, limit_s)
