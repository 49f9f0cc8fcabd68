"""`paceline hello`: times a training step over Paceline and over gloo, in 30 s."""

import datetime
import importlib.util
import os
import tempfile
from statistics import median

import click
from rich.table import Table
from rich.text import Text

from paceline.busy import Watch, leaves_too_little
from paceline.cli.common import Number, console, file_option
from paceline.hello import ALONE, GLOO, OVERLAP, SIZE_ROUNDS, STEP_ROUNDS, STEPS, timeline
from paceline.on_ranks import run_module
from paceline.profiling.files import read_folder
from paceline.provenance import describe_machine
from paceline.units import human_bytes, human_time

MOST_RANKS = 4  # unless asked
SAME = 1e-4  # of a loss: sums in another order
BAR = 32  # characters
TWO_LINES = """
    import paceline.torch
    dist.init_process_group("paceline")    # was "gloo"
    paceline.torch.overlap(model)          # was DistributedDataParallel(model)
"""
ABOUT = """\
In this network gradients take about as long to exchange as to compute; a network that \
computes longer gains less. The same in your script:"""
NEXT = """
    paceline run -n 2 train.py     starts your script; so does torchrun
    paceline explain allreduce     shows which algorithm a call takes, and why
    paceline doctor                checks this machine for problems
"""
WITHOUT_TORCH = """
To time a training step, install torch, then run `paceline hello` again:

    pip install torch --extra-index-url https://download.pytorch.org/whl/cpu
"""


def run(out, what, module, ranks, folder, told, **environment):
    """Runs a module on all ranks, which are told this. Returns what each has measured, and if
    other programs kept the machine busy, which it says."""
    threads, watch = max(1, len(os.sched_getaffinity(0)) // ranks), Watch()
    with out.status(what):
        spec = {"folder": folder, "threads": threads, **told}
        found = run_module(f"paceline.hello.{module}", spec, ranks, folder,
                           environment=environment, limit_s=300, told_by="hello")
    others = watch.cores()
    busy = leaves_too_little(others, ranks)
    if busy:
        out.print(f"This machine is busy: other programs used {others:.1f} of {os.cpu_count()} "
                  "cores. The times below are the fastest rounds; run this again on an idle "
                  "machine.\n",
                  style="yellow")
    return found, busy


def by_round(found, way):
    """Each round's median time of a step (s), which takes as long as on the slowest rank."""
    steps = [max(edges[-1] - edges[0] for edges in step)
             for step in zip(*(one["edges"][way] for one in found), strict=True)]
    count = found[0]["steps"]
    return [median(steps[at:at + count]) for at in range(0, len(steps), count)]


def show_step(out, ranks, found, busy):
    """The first screen: a step's time in each way, and the verdict. True if losses are the same."""
    rounds = {way: by_round(found, way) for way in (ALONE, OVERLAP, GLOO)}
    s = {way: (min if busy else median)(all_of) for way, all_of in rounds.items()}
    same = all(abs(a - b) <= SAME * abs(b) for one in found
               for a, b in zip(one["losses"][OVERLAP], one["losses"][GLOO], strict=True))
    table, cell_s = Table(box=None, show_header=False, padding=(0, 2, 0, 2)), max(s.values()) / BAR
    for way, time_s in s.items():
        computing = round(min(time_s, s[ALONE]) / cell_s)
        added = max(0, round(time_s / cell_s) - computing)
        table.add_row(way, Text("█" * computing, "cyan") + Text("▒" * added, "yellow"),
                      f"{1e3 * time_s:.1f} ms")
    out.print(Text(f"A training step: {found[0]['bytes'] / 1e6:.1f} MB of gradients, {ranks} ranks "
                   "of this machine\n", "bold"))
    out.print(table)
    out.print("  [cyan]█[/] computing alone   [yellow]▒[/] what exchanging gradients adds\n")
    # The median of all possible rounds lies in this interval with 96 %.
    _, low, *_, high, _ = sorted(b / a for a, b in zip(rounds[OVERLAP], rounds[GLOO]))
    out.print(f"[bold]{OVERLAP} is {s[GLOO] / s[OVERLAP]:.2f} times as fast as {GLOO}[/] (7 of 9 "
              f"rounds: {low:.2f} to {high:.2f}). Same losses: {'yes' if same else '[red]no[/]'}.")
    return same


def show_sizes(out, ranks, found, busy):
    """The second: how long an allreduce takes, and how many times as fast as over gloo it is."""
    from paceline.hello.sizes import SIZES

    s = {name: [(min if busy else median)(map(max, zip(*rounds, strict=True)))
                for rounds in zip(*(one[name] for one in found), strict=True)]
         for name in found[0]}  # fmt: skip
    out.print(Text(f"Allreduce of float32, {ranks} ranks of this machine\n", "bold"))
    ratios = [theirs / ours for ours, theirs in zip(s["Paceline"], s.get("gloo", ()))]
    table = Table("", *s, box=None, padding=(0, 2, 0, 2), header_style="")
    for column in table.columns:
        column.justify = "right"
    if ratios:
        table.add_column("times as fast as gloo")
    for at, size in enumerate(SIZES):
        cells = [human_bytes(size), *(human_time(one[at]) for one in s.values())]
        if ratios:
            bar = Text("█" * round(BAR * ratios[at] / max(ratios)), "cyan")
            cells.append(bar + f" {ratios[at]:.1f}")
        table.add_row(*cells)
    out.print(table)


def draw(found, profiles, file):
    """The third: a step with overlap() and one under DDP, as SVG."""
    records = {one.rank: one.records[one.records["bytes"] > 0] for one in profiles}
    panels = [(way, []) for way in (OVERLAP, GLOO)]
    for rank, one in enumerate(found):
        ours = [(1e-9 * call["enter"], 1e-9 * max(call["leave"], call["done"]))
                for call in records[rank]]
        for (way, ranks), spans in zip(panels, (ours, one["spans"])):
            edges = one["drawn"][way]
            ranks.append((edges, [span for span in spans if edges[0] <= span[0] <= edges[-1]]))
    about = f"{describe_machine()}, {datetime.date.today()}"
    picture = timeline.picture("A training step, measured", about, panels)
    file.write_text(picture, encoding="utf-8")


@click.command("hello")
@click.option("--ranks", "-n", type=Number(2, 64),
              help="Number of ranks to start. [default: one for each core, from 2 to 4]")
@file_option("--svg", default="paceline-hello.svg", show_default=True,
             help="Write a picture of a training step to this file.")
def command(ranks, svg):
    """Time a training step over Paceline and gloo, in 30 s.

    Trains a network on several ranks, by turns with paceline.torch.overlap() and with
    DistributedDataParallel over gloo, and compares the losses. Then times allreduce beside gloo.
    Without torch it times allreduce alone. The exit status is 1 if the losses differ.

    \b
    paceline hello
    paceline hello -n 4 --svg step.svg
    """
    ranks = ranks or max(2, min(len(os.sched_getaffinity(0)), MOST_RANKS))
    out, same = console(), True
    with tempfile.TemporaryDirectory(prefix="paceline-hello-") as folder:
        if torch := importlib.util.find_spec("torch"):
            found, busy = run(out, "Training a small network ...", "step", ranks, folder,
                              {"rounds": STEP_ROUNDS, "steps": STEPS}, PACELINE_PROFILE=folder)
            same = show_step(out, ranks, found, busy)
            out.print(f"{ABOUT}\n{TWO_LINES}")
            draw(found, read_folder(folder), svg)
        show_sizes(out, ranks, *run(out, "Timing allreduce ...", "sizes", ranks, folder,
                                    {"rounds": SIZE_ROUNDS}))
    out.print(f"\nThe picture {svg} shows how a step spends its time. "
              f"Next:\n{NEXT}" if torch else WITHOUT_TORCH,
              soft_wrap=True)
    return 0 if same else 1
