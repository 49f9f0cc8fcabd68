"""Runs a Python module on several ranks of this machine, and collects their results."""

import json
import signal
import sys
from pathlib import Path

from paceline.errors import Error
from paceline.launch import TIMED_OUT, launch

AT = "@size "  # rank 0 begins a line so when it goes on to the next size
LIMIT_S = 3600
TAIL_LINES = 20
# Variables that launch() sets for a rank.
LAUNCHED = ("PACELINE_RANK", "PACELINE_RANKS", "PACELINE_STORE", "PACELINE_SECRET", "RANK",
            "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)


class Failed(Error):
    """The ranks failed; the message ends with their last lines."""


class Late(Failed):
    """The ranks took too long."""


def run_module(module, specification, ranks, folder, on_progress=None, mpiexec=(),
               environment=None, limit_s=LIMIT_S, told_by="bench"):
    """Runs `python -m module` on every rank with the specification as a file; returns each rank's
    result, rank<r>.json in `folder`. Lines that begin with AT go to `on_progress`.

    mpiexec: the words of an MPI launcher; empty: paceline.launch starts the ranks. environment:
    variables in addition to this process's. told_by: the command that error messages name."""
    spec, said = Path(folder) / "spec.json", []
    spec.write_text(json.dumps(specification), encoding="utf-8")

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
        tail = "\n".join(said[-TAIL_LINES:]) or "(they wrote nothing)"
        kind = Late if status == TIMED_OUT else Failed
        raise kind(f"{told_by}: the ranks failed ({ended(status)}). Their last lines:\n{tail}")
    files = [Path(folder) / f"rank{rank}.json" for rank in range(ranks)]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def told():
    """On a rank that run_module() has started: the specification."""
    return json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))


def tell(spec, rank, found):
    """Leaves the rank's result for run_module()."""
    Path(spec["folder"], f"rank{rank}.json").write_text(json.dumps(found), encoding="utf-8")


def ended(status):
    """Describes how the first rank failed, by launch()'s status."""
    number = status - 128
    if number in {int(one) for one in signal.Signals}:
        return f"one was ended by {signal.Signals(number).name}"
    return f"exit status {status}"
