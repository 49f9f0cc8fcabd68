"""Starts train.py on every rank through torchrun, and yields rank 0's events, step by step."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TAIL_LINES = 30
STOP_S = 45


class RunFailed(Exception):
    """A training run that ended badly; the message is for the person at the terminal."""


@dataclass(frozen=True)
class Launch:
    """One training run: its backend, its ranks, the folder of its files, and its time limit."""

    backend: str
    ranks: int
    folder: Path
    timeout_s: int
    training: tuple[str, ...]

    def command(self) -> list[str]:
        """The command line; `training` holds the options that all backends share."""
        return [
            sys.executable, "-m", "torch.distributed.run", "--standalone",
            f"--nproc-per-node={self.ranks}", str(Path(__file__).with_name("train.py")),
            "--backend", self.backend, "--out", str(self.folder), *self.training,
        ]


def events(launch: Launch) -> Iterator[dict]:
    """Runs to the end and yields rank 0's JSON lines; raises RunFailed when a rank fails."""
    launch.folder.mkdir(parents=True, exist_ok=True)
    for stale in launch.folder.glob("rank*.json"):
        stale.unlink()
    # One thread per rank on every machine: a demo of communication, not of thread pools.
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONUNBUFFERED="1")
    errors = launch.folder / "stderr.txt"
    with errors.open("w") as stderr, (launch.folder / "stdout.txt").open("w") as stdout:
        process = subprocess.Popen(
            launch.command(), stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
        )
        expired = threading.Event()
        alarm = threading.Timer(launch.timeout_s, lambda: (expired.set(), process.terminate()))
        alarm.start()
        try:
            for line in process.stdout:
                event = parse(line)
                if event:
                    yield event
                else:
                    stdout.write(line)
            process.wait()
        finally:
            alarm.cancel()
            stop(process)
    if expired.is_set():
        raise RunFailed(
            f"demo: {launch.backend} with {launch.ranks} ranks was not done after "
            f"{launch.timeout_s} s and was stopped. Raise --timeout-s, or look below.\n"
            + tail(errors)
        )
    if process.returncode != 0:
        raise RunFailed(
            f"demo: {launch.backend} with {launch.ranks} ranks failed (exit status "
            f"{process.returncode}). The end of its stderr:\n{tail(errors)}"
        )


def parse(line: str) -> dict | None:
    """The event on a line of output, or None: libraries may print lines of their own."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


def stop(process: subprocess.Popen) -> None:
    """Ends torchrun if it still runs; it ends its ranks itself, which may take it a while."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(errors: Path) -> str:
    """The last lines of a run's stderr: the ranks' own, and torchrun's only if they are silent."""
    lines = errors.read_text(errors="replace").splitlines()
    marked = [line for line in lines if re.match(r"\[rank\d+\]", line)]
    torchruns = (i for i, line in enumerate(lines) if re.match(r"[EWI]\d{4} .*/elastic/", line))
    ranks = marked or lines[: next(torchruns, len(lines))]
    return "\n".join((ranks or lines)[-TAIL_LINES:]) or "(stderr is empty)"
