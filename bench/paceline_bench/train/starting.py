"""Starts the ranks of `paceline train`, or joins those that an mpiexec has started."""

import json
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

from paceline.launch import TIMED_OUT, launch
from paceline.launchers import mpi_launcher
from paceline.on_ranks import INTERRUPTED, LAUNCHED, Failed
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

SAID = "@train "
TAIL_LINES = 20
SIGNALS = {int(one) for one in signal.Signals}


def rank_here():
    """The number of this process if it was started as one of several ranks; None if not."""
    launcher, ours = mpi_launcher(), os.environ.get("PACELINE_RANK", "")
    if launcher:
        return launcher.rank
    return int(ours) if ours.isdigit() else None


def run(spec, ranks, out, watcher=None, timeout_s=None, grace_s=5.0):
    """The result of training on `ranks` ranks here. Raises Failed with what they said. A caller's
    Watcher still has in it, after that, what they have told."""
    with tempfile.TemporaryDirectory(prefix="paceline-train-") as folder:
        path, said = Path(folder) / "spec.json", []
        path.write_text(json.dumps(spec), encoding="utf-8")
        command, environment = words_of(spec, ranks, path)
        with watcher or Watcher(out) as watcher:

            def hear(rank, _, line):
                if line.startswith(SAID):
                    watcher.hear(json.loads(line[len(SAID):]))
                else:
                    said.append(f"[{rank}] {line}")

            status = launch(command, 1 if spec["over"] == "mpi" else ranks, env=environment,
                            timeout_s=timeout_s, grace_s=grace_s, on_line=hear)
        if status in INTERRUPTED:
            raise KeyboardInterrupt
        if status:
            raise Failed(why(status, watcher.failed, said))
        return json.loads(path.with_name("found.json").read_text(encoding="utf-8"))


def why(status, failed, said):
    """Describes how the ranks ended. `failed`: the sentences of those that could tell."""
    if status == TIMED_OUT:
        return "train: the ranks were not done in time."
    if status > 128:
        lost = re.search(r"rank \d+ is lost", " ".join(failed))
        name = signal.Signals(status - 128).name if status - 128 in SIGNALS else "an unknown signal"
        hint = (" So the kernel does where memory runs out: take fewer --ranks or a smaller "
                "--batch." if status - 128 == signal.SIGKILL else "")
        return (f"train: {lost[0].removesuffix(' is lost') if lost else 'a rank'} was ended by "
                f"{name}.{hint}")
    if failed:
        return failed[0]
    tail = "\n".join(said[-TAIL_LINES:]) or "(they wrote nothing)"
    return f"train: the ranks failed (exit status {status}). Their last lines:\n{tail}"


def words_of(spec, ranks, path):
    """(command, environment): by the MPI's own launcher if it exchanges."""
    command = [sys.executable, "-m", "paceline_bench.train.worker", str(path)]
    if spec["over"] != "mpi":
        return command, {}
    from paceline_bench.measure.host import mpi_of_host

    mpi = mpi_of_host("allreduce", ranks)
    forget = [word for name in LAUNCHED for word in ("-u", name)]
    return (["env", *forget, *mpi["mpiexec"], "-n", str(ranks), *command],
            {**mpi["environment"], "OMP_NUM_THREADS": "1"})


class Watcher:
    """A progress bar, and a line for each epoch. Keeps what it hears: `data`, `epochs` and `losses`
    as in a rank's result, and what ranks say when they cannot go on."""

    def __init__(self, out):
        self.out = out
        self.data, self.epochs, self.losses, self.steps = None, [], [], 0
        self.causes, self.losers = [], []
        self.bars = Progress(TextColumn("{task.description}"), BarColumn(30),
                             TextColumn("{task.fields[steps]}"), TimeElapsedColumn(),
                             TextColumn("{task.fields[loss]}"), console=out, transient=True,
                             disable=not out.is_terminal)
        self.bar = self.bars.add_task("starting", total=None, steps="", loss="")

    def __enter__(self):
        self.bars.start()
        return self

    def __exit__(self, *_):
        self.bars.stop()

    def hear(self, said):
        """Takes a message of rank 0."""
        if "failed" in said:
            (self.losers if said["others"] else self.causes).append(said["failed"])
        elif "steps" in said:
            if self.data is None:
                self.out.print(f"Data: {said['data']}.", soft_wrap=True, highlight=False)
            self.data, self.steps = said["data"], said["steps"]
            self.bars.update(self.bar, description="training", total=self.steps, completed=0)
        elif "step" in said:
            self.losses.append([said["time_s"], said["loss"]])
            self.bars.update(self.bar, completed=said["step"], loss=f"loss {said['loss']:.3f}",
                             steps=f"{said['step']} of {self.steps} steps")
        else:
            row = said["row"]
            self.epochs.append(row)
            self.out.print(
                f"epoch {row['epoch']}: {row['seconds']:.2f} s, {row['images_per_s']:.1f} "
                f"images/s, loss {row['loss']:.4f}, accuracy {row['accuracy']:.4f}",
                highlight=False)

    @property
    def failed(self):
        """The sentences of ranks that failed. Ranks that have only lost another come last, however
        early they were heard."""
        return self.causes + self.losers

    def kept(self):
        """All measurements, as a rank's result."""
        return {"rank": 0, "data": self.data, "epochs": self.epochs, "losses": self.losses}
