"""Starts the ranks of `paceline train`, or joins those that an mpiexec has started."""

import json
import os
import sys
import tempfile
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from paceline.bench.launching import INTERRUPTED, LAUNCHED, Failed
from paceline.launch import launch
from paceline.launchers import mpi_launcher

SAID = "@train "
TAIL_LINES = 20


def rank_here():
    """The number of this process where somebody has started it as one of several ranks; None."""
    launcher, ours = mpi_launcher(), os.environ.get("PACELINE_RANK", "")
    if launcher:
        return launcher.rank
    return int(ours) if ours.isdigit() else None


def run(spec, ranks, out):
    """The result of training on so many ranks here. Raises Failed with what they said."""
    with tempfile.TemporaryDirectory(prefix="paceline-train-") as folder:
        path, said = Path(folder) / "spec.json", []
        path.write_text(json.dumps(spec), encoding="utf-8")
        command, environment = words_of(spec, ranks, path)
        with Watcher(out) as watcher:

            def hear(rank, _, line):
                if line.startswith(SAID):
                    watcher.hear(json.loads(line[len(SAID):]))
                else:
                    said.append(f"[{rank}] {line}")

            status = launch(command, 1 if spec["over"] == "mpi" else ranks, env=environment,
                            on_line=hear)
        if status in INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            tail = "\n".join(said[-TAIL_LINES:]) or "(they said nothing)"
            raise Failed(f"train: the ranks failed (exit status {status}). Their last lines:\n"
                         f"{tail}")
        return json.loads(path.with_name("found.json").read_text(encoding="utf-8"))


def words_of(spec, ranks, path):
    """(command, environment): by the MPI's own launcher where it exchanges."""
    command = [sys.executable, "-m", "paceline.train.worker", str(path)]
    if spec["over"] != "mpi":
        return command, {}
    from paceline.bench.host import mpi_of_host

    mpi = mpi_of_host("allreduce", ranks)
    forget = [word for name in LAUNCHED for word in ("-u", name)]
    return (["env", *forget, *mpi["mpiexec"], "-n", str(ranks), *command],
            {**mpi["environment"], "OMP_NUM_THREADS": "1"})


class Watcher:
    """A progress bar, and a line for each epoch."""

    def __init__(self, out):
        self.out = out
        self.bars = Progress(TextColumn("{task.description}"), BarColumn(30),
                             TextColumn("{task.completed:.0f} of {task.total:.0f} steps"),
                             TimeElapsedColumn(), TextColumn("{task.fields[loss]}"), console=out,
                             transient=True, disable=not out.is_terminal)
        self.bar = self.bars.add_task("training", total=1, loss="")

    def __enter__(self):
        self.bars.start()
        return self

    def __exit__(self, *_):
        self.bars.stop()

    def hear(self, said):
        """What rank 0 tells."""
        if "steps" in said:
            self.bars.update(self.bar, total=said["steps"])
            self.out.print(f"Data: {said['data']}.", soft_wrap=True, highlight=False)
        elif "step" in said:
            self.bars.update(self.bar, completed=said["step"], loss=f"loss {said['loss']:.3f}")
        else:
            row = said["row"]
            self.out.print(
                f"epoch {row['epoch']}: {row['seconds']:.2f} s, {row['images_per_s']:.1f} "
                f"images/s, loss {row['loss']:.4f}, validation accuracy {row['accuracy']:.4f}",
                highlight=False)
