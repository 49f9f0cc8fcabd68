"""Trains a small ResNet data-parallel over paceline and over gloo, and compares the two.

The backends take turns, round after round (A B, B A, ...), because a shared machine is never
equally busy. The end is a table, <out>/summary.json, and a measured timeline of one step
(<out>/timeline.svg, and timeline.json for chrome://tracing or Perfetto).

    python demo/run.py [--ranks N] [--steps N | --epochs N] [--backends paceline,gloo]
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import shlex
import sys
import time
from datetime import datetime
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import figures
import timeline
from launch import Launch, RunFailed, events

EPOCHS = 9
ROUNDS = 2
MOST_RANKS_UNASKED = 4


def parse_options() -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="auto", help="processes; auto = cores, from 2 to 4")
    parser.add_argument("--steps", type=int, help="optimizer steps per run; overrides --epochs")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns that each backend takes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32, help="images per rank and step")
    parser.add_argument("--backends", default="paceline,gloo", help="the last is the reference")
    parser.add_argument("--timeout-s", type=int, default=600, help="limit for each training run")
    parser.add_argument("--out", type=Path, default=Path("out/demo"))
    options = parser.parse_args()
    if options.ranks == "auto":
        options.ranks = max(2, min(os.cpu_count() or 2, MOST_RANKS_UNASKED))
    try:
        options.ranks = int(options.ranks)
    except ValueError:
        parser.error(f"--ranks is '{options.ranks}'; it must be 'auto' or a number.")
    for name in ("ranks", "rounds", "epochs", "batch", "timeout_s"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} is {getattr(options, name)}; 1 is the least.")
    options.backends = [name.strip() for name in options.backends.split(",") if name.strip()]
    if not options.backends or (options.steps is not None and options.steps < 1):
        parser.error("name at least one backend, and at least one step.")
    if not present("paceline.torch"):  # its trainer carries the steps over gloo, too
        parser.error("Python cannot find paceline.torch; run `./dev build`.")
    return options


def present(module: str) -> bool:
    """True if Python can find a module; its packages are imported, itself it is not."""
    try:
        found = importlib.util.find_spec(module)
    except ImportError:
        return False
    # An empty folder of that name is found too, as a namespace package without an origin.
    return found is not None and found.origin is not None


def labels_of(backends: list[str]) -> list[str]:
    """Column headings; a backend that is named twice gets a number the second time."""
    labels = []
    for i, name in enumerate(backends):
        before = backends[:i].count(name)
        labels.append(f"{name} ({before + 1})" if before else name)
    return labels


def follow(launch: Launch, bars: Progress, title: str) -> None:
    """One training run as one progress bar."""
    bar = bars.add_task(title, total=None, figures="starts")
    ms, images = [], 0
    for event in events(launch):
        if event["event"] == "start":
            images = event["global_batch"]
            bars.update(bar, total=event["steps"])
        elif event["event"] == "step":
            ms = [*ms[-49:], event["ms"]]
            rate = 1e3 * images / sorted(ms)[len(ms) // 2]
            now = f"loss {event['loss']:.4f}  {rate:6.0f} images/s"
            bars.update(bar, completed=event["step"] + 1, figures=now)
    if not bars.console.is_terminal:
        # Bars need a terminal; elsewhere each run gets one line.
        bars.console.print(f"{title}: {bars.tasks[bar].fields['figures']}", highlight=False)


def train_all(options: argparse.Namespace, console: Console) -> list[list[list[dict]]]:
    """All runs, the backends taking turns; indexed [backend][round][rank]."""
    labels = labels_of(options.backends)
    length = ["--steps", options.steps] if options.steps else ["--epochs", options.epochs]
    training = (*length, "--batch", options.batch, "--seed", options.seed)
    training = tuple(str(word) for word in training)
    runs = [[] for _ in labels]
    columns = (
        TextColumn("{task.description}"), BarColumn(30),
        TextColumn("{task.completed:4.0f} steps  {task.fields[figures]}"), TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        for turn in range(1, options.rounds + 1):
            order = list(enumerate(options.backends))
            # A B, then B A: a machine that grows busier all the time favours neither.
            for column, backend in order if turn % 2 else reversed(order):
                folder = options.out / "runs" / f"{column}-{backend}-round{turn}"
                launch = Launch(backend, options.ranks, folder, options.timeout_s, training)
                follow(launch, bars, f"round {turn}  {labels[column]:10s}")
                runs[column].append(figures.load_run(folder, options.ranks))
    return runs


def machine() -> dict:
    """Facts about the machine that a reader needs to judge the figures."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    except OSError:
        pass
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {"processor": processor, "cores": os.cpu_count(), "system": platform.system(),
            "load_before": load}


def percent(share: float) -> str:
    """A share 0..1 as a person reads it."""
    return f"{100 * share:.1f} %"


def difference_text(difference: float | None) -> str:
    """A relative difference; 0 means that every bit was the same."""
    if difference is None:
        return "-"
    return f"{difference:.1e}" if difference else "0"


def figures_table(summary: dict) -> Table:
    """One column per backend, one row per figure."""
    about = (
        f"{summary['ranks']} ranks, {summary['global_batch']} images per step, "
        f"{summary['steps']} steps x {summary['rounds']} rounds, {summary['parameters']} weights"
    )
    table = Table(title="ResNet on digits, data-parallel", caption=about)
    table.add_column("measured here")
    for label in summary["backends"]:
        table.add_column(label, justify="right")
    rows = {
        "images/s, median of steps": lambda f: f"[bold]{f['images_per_s']:.0f}[/]",
        "  middle half of the steps": lambda f: "{:.0f} - {:.0f}".format(
            *f["images_per_s_quartiles"]),
        "  median of each round": lambda f: ", ".join(
            f"{rate:.0f}" for rate in f["images_per_s_by_round"]),
        "step time": lambda f: f"{f['step_ms']:.1f} ms",
        "share with a bucket on its way": lambda f: percent(f["communication_share"]),
        "share only waiting for buckets": lambda f: percent(f["waiting_share"]),
        "loss at the end": lambda f: f"{f['final_loss']:.6f}",
        "test accuracy": lambda f: f"[bold]{percent(f['test_accuracy'])}[/]",
        "ranks end with equal weights": lambda f: "yes" if f["ranks_agree"] else "NO",
        "loss difference between rounds": lambda f: difference_text(
            f["rerun_loss_difference"]),
    }
    for name, text in rows.items():
        table.add_row(name, *(text(f) for f in summary["backends"].values()))
    return table


def ratios_of(summary: dict, label: str) -> list[float]:
    """Per round, a backend's images/s over the reference's: two runs that are close in time."""
    mine, its = (summary["backends"][name]["images_per_s_by_round"]
                 for name in (label, summary["reference"]))
    return [a / b for a, b in zip(mine, its, strict=True)]


def comparison_table(summary: dict) -> Table:
    """Difference of each backend's losses from the reference's, and the tolerance."""
    reference = summary["reference"]
    table = Table(title=f"Compared with {reference}")
    table.add_column("")
    for label in summary["comparisons"]:
        table.add_column(label, justify="right")
    found = list(summary["comparisons"].values())
    ratios = [ratios_of(summary, label) for label in summary["comparisons"]]
    table.add_row("images/s ratio, median of rounds (range)", *(
        f"[bold]{median(r):.2f}[/] ({min(r):.2f} - {max(r):.2f})" for r in ratios))
    table.add_row("largest relative difference of the loss:")
    table.add_row(f"  first {found[0]['checked_steps']} steps",
                  *(f"[bold]{difference_text(c['largest_first_steps'])}[/]" for c in found))
    table.add_row(f"  all {found[0]['steps']} steps",
                  *(difference_text(c["largest_all_steps"]) for c in found))
    table.add_row("final weights equal, bit for bit",
                  *("yes" if c["same_final_weights"] else "no" for c in found))
    return table


def judge(summary: dict) -> list[str]:
    """Faults of the results, in sentences; empty if there are none."""
    wrong = [
        f"demo: the ranks ended with different weights over {label}; data-parallel ranks must "
        "stay equal. Compare weights_sha256 in the rank files."
        for label, found in summary["backends"].items() if not found["ranks_agree"]
    ]
    # Two ranks add two numbers, in either order the same; more ranks may round differently.
    if summary["ranks"] > 2:
        return wrong
    for label, found in summary["comparisons"].items():
        if found["largest_first_steps"] > figures.TOLERANCE:
            wrong.append(
                f"demo: losses over {label} and {summary['reference']} differ by "
                f"{found['largest_first_steps']:.1e} in the first {found['checked_steps']} steps "
                f"(first at step {found['first_different_step']}); with at most two ranks "
                f"{figures.TOLERANCE:.0e} is allowed."
            )
    return wrong


def summarise(options: argparse.Namespace, runs: list, about: dict) -> dict:
    """Everything that summary.json holds; rates in images/s, shares 0..1, step_ms in ms."""
    labels, first = labels_of(options.backends), runs[0][0][0]
    return {
        **about,
        "ranks": options.ranks,
        "global_batch": options.ranks * options.batch,
        "steps": len(first["steps"]),
        "rounds": options.rounds,
        "seed": options.seed,
        "parameters": first["parameters"],
        "backends": {
            name: figures.summarise(turns) for name, turns in zip(labels, runs, strict=True)
        },
        "reference": labels[-1],
        "comparisons": {
            name: figures.compare(turns, runs[-1])
            for name, turns in zip(labels[:-1], runs[:-1], strict=True)
        },
    }


def draw(options: argparse.Namespace, runs: list, summary: dict) -> None:
    """Writes the timeline of a typical step of each backend's best round, as SVG and JSON."""
    panels = []
    for label, turns in zip(summary["backends"], runs, strict=True):
        # The best round is the one that other work on the machine disturbed least.
        rates = summary["backends"][label]["images_per_s_by_round"]
        best = rates.index(max(rates))
        run, step = turns[best], figures.typical_step(turns[best])
        ms = figures.step_ms(run, step)
        waits = sum(figures.communication(record["steps"][step])[1] for record in run) / len(run)
        note = (f"round {best + 1}, step {step}, of typical length: {ms:.1f} ms, of which a rank "
                f"waits {percent(waits)}")
        panels.append({"label": label, "note": note, "run": run, "step": step})
    title = f"One training step on {options.ranks} ranks: " + " and ".join(summary["backends"])
    cores = summary["machine"]["cores"]
    subtitle = (
        f"Measured {summary['date'][:16].replace('T', ' ')} on one machine with {cores} cores "
        f"({summary['machine']['processor']}); ResNet, {summary['parameters']} weights, "
        f"{options.batch} images per rank; torch {summary['torch']}"
    )
    (options.out / "timeline.svg").write_text(timeline.svg(panels, title, subtitle))
    keep = {key: summary[key] for key in ("date", "machine", "command")} | {"origin": "measured"}
    (options.out / "timeline.json").write_text(timeline.chrome_trace(panels, keep))


def main() -> int:
    """Exit status: 0 when all runs went well and agree, 1 otherwise."""
    options, console = parse_options(), Console()
    about = {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": shlex.join(["python", "demo/run.py", *sys.argv[1:]]),
        "machine": machine(),
        "torch": importlib.metadata.version("torch"),
        "python": platform.python_version(),
    }
    began = time.monotonic()
    try:
        runs = train_all(options, console)
    except KeyboardInterrupt:
        return 130
    except RunFailed as failure:
        console.print(str(failure), markup=False, highlight=False, soft_wrap=True)
        return 1
    summary = summarise(options, runs, {**about, "duration_s": time.monotonic() - began})
    draw(options, runs, summary)
    (options.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    console.print(figures_table(summary))
    if summary["comparisons"]:
        console.print(comparison_table(summary))
    names = ", ".join(str(options.out / name) for name in ("timeline.svg", "timeline.json",
                                                           "summary.json"))
    console.print(f"Wrote {names} in {time.monotonic() - began:.0f} s.", soft_wrap=True)
    if not all(found["steady"] for found in summary["backends"].values()):
        console.print(
            f"Note: rounds of the same backend lie more than {percent(figures.STEADY_SPREAD)} "
            "apart; the machine had other work. Repeat before quoting a rate.", style="yellow",
            soft_wrap=True)
    wrong = judge(summary)
    for sentence in wrong:
        console.print(sentence, style="bold red", highlight=False, soft_wrap=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
