"""Starts the ranks of a benchmark, shows how far they are, and collects what they have written."""

import json
import signal
import sys
import tempfile
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from paceline import _core
from paceline.bench.meeting import make_room
from paceline.errors import Error
from paceline.launch import TIMED_OUT, launch

AT = "@size "  # rank 0 begins a line so when it goes on to the next size
LIMIT_S = 3600
TAIL_LINES = 20
# What launch() tells a rank.
LAUNCHED = ("PACELINE_RANK", "PACELINE_RANKS", "PACELINE_STORE", "PACELINE_SECRET", "RANK",
            "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)


class Failed(Error):
    """The ranks of a benchmark failed; the message ends with what they said."""


class Late(Failed):
    """They took too long."""


def run_module(module, specification, ranks, folder, on_progress=None, mpiexec=(),
               environment=None, limit_s=LIMIT_S, told_by="bench"):
    """Runs `python -m module` on every rank with the specification as a file; returns each rank's
    result, rank<r>.json in `folder`. Lines that begin with AT go to `on_progress`.

    mpiexec: the words that start MPI's processes; empty: they are started here. environment: what
    to set besides this process's own. told_by: the command that an error begins with."""
    spec, said = Path(folder) / "spec.json", []
    spec.write_text(json.dumps(specification), encoding="utf-8")
    make_room(Path(folder) / "meeting", ranks)

    def hear(rank, stream, line):
        if line.startswith(AT):
            if on_progress:
                on_progress(int(line[len(AT):]))
        else:
            said.append(f"[{rank}] {line}")

    command = [sys.executable, "-m", module, str(spec)]
    if mpiexec:
        # Alone to us, the launcher would look like a rank of a world of one to its own ranks.
        forget = [word for name in LAUNCHED for word in ("-u", name)]
        command = ["env", *forget, *mpiexec, "-n", str(ranks), *command]
    status = launch(command, 1 if mpiexec else ranks, env=environment, timeout_s=limit_s,
                    on_line=hear)
    if status in INTERRUPTED:  # what the ranks said when they were ended is of no use
        raise KeyboardInterrupt
    if status:
        tail = "\n".join(said[-TAIL_LINES:]) or "(they said nothing)"
        kind = Late if status == TIMED_OUT else Failed
        raise kind(f"{told_by}: the ranks failed ({ended(status)}). Their last lines:\n{tail}")
    files = [Path(folder) / f"rank{rank}.json" for rank in range(ranks)]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def ended(status):
    """How the first rank that failed did, by launch()'s status."""
    number = status - 128
    if number in {int(one) for one in signal.Signals}:
        return f"one was ended by {signal.Signals(number).name}"
    return f"exit status {status}"


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
        return run_module("paceline.bench.worker", plan.specification(folder), plan.ranks, folder,
                          show, plan.mpiexec, plan.environment, limit_s)
