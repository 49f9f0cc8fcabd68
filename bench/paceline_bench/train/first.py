"""`paceline train` without arguments: a small network on digits, in three ways, in turn.

Takes no more than SECONDS from the first step on, which ways share. A slow way is cut
short after an epoch; the table shows all results until time is over.
"""

from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from paceline.on_ranks import Failed
from rich.table import Table

from paceline_bench.train import picture, starting

SECONDS, TO_END = 55, 4  # of all ways; for ranks that are late to end
TO_START = 120  # ranks: beside much other work torch takes as long
RANKS, PICTURE = 2, "paceline-train.svg"
WAYS = (("overlap", "paceline"), ("ddp", "paceline"), ("ddp", "gloo"))
SPEC = {"model": "resnet20", "way": "overlap", "over": "paceline", "collectives": None,
        "data": "digits", "epochs": 6, "steps": 0, "batch": 32, "side": 8, "rate": 0.05,
        "most_rate": 1.0, "validation": 0, "threads": 1, "seed": 1}


@dataclass
class Tried:
    """A way: the rows of its epochs, and what each rank found, if it came to its end."""

    label: str
    epochs: list = field(default_factory=list)
    ranks: list = field(default_factory=list)


class Turns(starting.Watcher):
    """Keeps a Tried for each way that has begun."""

    def __init__(self, out):
        super().__init__(out)
        self.tries = []

    def hear(self, said):
        if "turn" in said:
            way, over = WAYS[said["turn"]]
            self.out.print(f"\n{said['turn'] + 1} of {len(WAYS)}: {way} over {over}", style="bold",
                           highlight=False)
            self.epochs = []
            self.tries.append(Tried(f"{way} over {over}", self.epochs))
        elif "found" in said:
            self.tries[-1].ranks = said["found"]
        else:
            super().hear(said)


def about():
    """Describes the run."""
    ways = ", ".join(f"{way} over {over}" for way, over in WAYS)
    return (f"Trains a small ResNet ({SPEC['model']}) on handwritten digits of scikit-learn on "
            f"{RANKS} ranks of this machine, {SPEC['epochs']} epochs in each of {len(WAYS)} ways: "
            f"{ways}. That takes at most {SECONDS} s from the first step on. At the end it prints"
            f" a table and writes a picture, {PICTURE}. `paceline train --help` lists more "
            "options.")


def run(turns):
    """Trains in every way."""
    out = turns.out
    out.print(about(), highlight=False)
    spec = {**SPEC, "in_turn": WAYS, "seconds": SECONDS - TO_END}
    try:
        starting.run(spec, RANKS, out, turns, TO_START + SECONDS, TO_END / 4)
    except Failed as error:
        if sum(bool(one.ranks) for one in turns.tries) < len(WAYS):  # else all has been told
            out.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)


def table(tries):
    """A row for each way."""
    out = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    out.add_column("", no_wrap=True)
    for heading in ("images/s", "accuracy", "computing", "exchange", "step", "hidden"):
        out.add_column(heading, justify="right", no_wrap=True)
    for one in tries:
        cells = ["", ""]
        if one.epochs:
            cells = [f"{median(row['images_per_s'] for row in one.epochs):.0f}",
                     f"{one.epochs[-1]['accuracy']:.3f}"]
        if one.ranks:
            profile = one.ranks[0]["profile"]
            cells += [f"{1e3 * profile[name]:.1f} ms"
                      for name in ("computing_s", "exchange_s", "iteration_s")]
            cells.append(f"{100 * profile['hidden_share']:.0f} %")
        out.add_row(one.label, *cells)
    return out


def end(tries, out):
    """The table, the picture, and the exit status."""
    if tries:
        out.print()
        out.print(table(tries))
        out.print("computing, exchange: time of a step with each alone; hidden: share of the "
                  "exchange that computing hides. One run each: no verdict.", highlight=False)
    for one in tries:
        if len(one.epochs) < SPEC["epochs"]:
            out.print(f"{one.label} had time for {len(one.epochs)} of {SPEC['epochs']} epochs; its "
                      "accuracy is that of the last one.", highlight=False)
    panels = [(f"{one.label}: the last step of {RANKS} ranks", one.ranks)
              for one in tries if one.ranks]
    if panels:
        path = Path(PICTURE).resolve()
        path.write_text(picture.stacked(panels), encoding="utf-8")
        out.print(f"Wrote {path}", soft_wrap=True, highlight=False)
    unequal = [one.label for one in tries if one.ranks and not one.ranks[0]["weights_equal"]]
    for label in unequal:
        out.print(f"{label}: the ranks' weights differ.", style="bold red")
    return 1 if unequal or len(panels) < len(WAYS) else 0
