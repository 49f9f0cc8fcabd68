"""`paceline train`: the documents' networks, trained on several ranks."""

import json
import math
from pathlib import Path

import click
from rich.table import Table

from paceline.cli.common import Number, console, set_options, world_options
from paceline.cli.train_replay import record, replay

WAYS = ("ddp", "funnel", "concom", "depcha", "auto", "bsp1", "bsp2", "bsp3", "overlap",
        "overlap-updates")
MODELS = ("resnet110", "resnet20", "resnet50", "alexnet", "vgg11", "vgg16", "googlenet",
          "inception-bn", "densenet201", "gpt")


def need_torch():
    """Raises UsageError where it is not installed."""
    from paceline.errors import UsageError

    try:
        import torch  # noqa: F401
    except ImportError:
        raise UsageError("train: torch is not installed. pip install 'paceline[torch]'") from None


def checked_file(context, parameter, value):
    """A file whose folder is there."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"{value.parent} is no folder.", context, parameter)
    return value


def file_option(*names, text):
    """An option for a file that is written."""
    return click.option(*names, type=click.Path(dir_okay=False, path_type=Path),
                        callback=checked_file, help=text)


def check(spec, ranks):
    """All that can be refused before ranks start."""
    from paceline.errors import UsageError
    from paceline.train import data, models, ways

    model = models.known(spec["model"])
    ways.check(spec["way"], spec["over"], spec["collectives"])
    for name in ("rate", "most_rate"):
        if not (math.isfinite(spec[name]) and spec[name] > 0):
            raise UsageError(f"train: the learning rate is {spec[name]}; it is a positive number.")
    side = (spec["side"] or model.side) if model.side else 0
    found = data.load(spec["data"], side, spec["seed"], model.classes)
    models.check_side(spec["model"], side, spec["batch"] or model.images, found.classes)
    if ranks:
        data.Shard(len(found), 0, ranks, spec["batch"] or model.images, spec["seed"])


def table(found):
    """Table 2 of the document, of this run."""
    profile = found["ranks"][0]["profile"]
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("computing alone", "exchange alone", "exchange's share", "the iteration",
                    "of the exchange hidden"):
        out.add_column(heading, justify="right")
    out.add_row(f"{profile['computing_s']:.4f} s", f"{profile['exchange_s']:.4f} s",
                f"{100 * profile['exchange_share']:.1f} %", f"{profile['iteration_s']:.4f} s",
                f"{100 * profile['hidden_share']:.0f} %")
    return out


def report(spec, found, out, json_file, picture):
    """What a person reads, and the files."""
    from paceline.bench.provenance import provenance
    from paceline.train.picture import svg

    first = found["ranks"][0]
    if json_file:
        content = {**provenance(), "plan": spec, **found}
        json_file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if picture:
        title = f"{spec['model']}, {spec['way']} over {spec['over']}, {len(found['ranks'])} ranks"
        picture.write_text(svg(found["ranks"], title), encoding="utf-8")
    out.print(table(found))
    for file in filter(None, (json_file, picture)):
        out.print(f"Wrote {file}", soft_wrap=True, highlight=False)
    if not first["weights_equal"]:
        out.print("The ranks' weights differ.", style="bold red")
        return 1
    out.print(f"{len(found['ranks'])} ranks have the same weights, bit for bit.")
    return 0


@click.group("train", invoke_without_command=True)
@click.option("--ranks", "-n", type=Number(1, 4096),
              help="Start so many here [default: 2; inside an mpiexec those that it started].")
@click.option("--model", default="resnet110", show_default=True, type=click.Choice(MODELS),
              help="Which network.")
@click.option("--way", default="overlap", show_default=True, type=click.Choice(WAYS),
              help="DistributedDataParallel, a type of KVStore, an algorithm of BSP-SGD, overlap, "
              "or overlap with updates in the background.")
@click.option("--over", default="paceline", show_default=True,
              type=click.Choice(("paceline", "gloo", "mpi")), help="Who carries the gradients.")
@click.option("--collectives", type=click.Choice(("lp", "mst", "be")),
              help="Of bsp: linear pipeline, minimal spanning tree, bidirectional exchange.")
@click.option("--data", default="synthetic", show_default=True,
              help="digits, synthetic, a folder (CIFAR-10's binary files; train/ and val/ of "
              "pictures by class), or for gpt a file of text.")
@click.option("--epochs", default=1, show_default=True, type=Number(1, 100000),
              help="How often all data are gone through.")
@click.option("--steps", default=0, type=Number(0, 10**9),
              help="Of an epoch, at most [default: all].")
@click.option("--batch", default=0, type=Number(0, 10**6),
              help="Pictures of a rank and step [default: by the model].")
@click.option("--side", default=0, type=Number(0, 4096),
              help="Of pictures [default: as published].")
@click.option("--rate", default=0.1, show_default=True,
              help="Learning rate of one worker; it is scaled with their number.")
@click.option("--most-rate", default=1.0, show_default=True, help="Up to which it is scaled.")
@click.option("--validation", default=0, type=Number(0, 10**9),
              help="Batches of a rank to validate with [default: all].")
@click.option("--threads", default=1, show_default=True, type=Number(1, 1024),
              help="Of torch in each rank.")
@click.option("--seed", default=1, show_default=True, type=int,
              help="Of the weights, the order of the data, and synthetic data.")
@file_option("--json", "json_file", text="Write all that was found here.")
@file_option("--picture", text="Draw the last step of every rank, as SVG.")
@world_options()
@click.pass_context
def command(context, ranks, json_file, picture, **options):
    """Train a network of the documents on several ranks.

    Shows images/s and the validation accuracy of every epoch, then what a step takes: computing
    alone, the exchange alone, and both. The exit status is 1 where weights differ at the end.

    Data are synthetic unless --data names real ones, and the output says which.

    \b
    paceline train -n 2 --model resnet20 --side 8 --data digits --epochs 3
    paceline train --model alexnet --way bsp3 --collectives lp --steps 2
    mpiexec -n 2 paceline train --model resnet20 --way ddp --over mpi
    """
    need_torch()
    if context.invoked_subcommand:
        return 0
    own = ("model", "way", "over", "collectives", "data", "epochs", "steps", "batch", "side",
           "rate", "most_rate", "validation", "threads", "seed")
    spec = {name: options.pop(name) for name in own}
    set_options(options)
    from paceline.train import starting

    rank = starting.rank_here()
    if rank is not None and ranks:
        raise click.UsageError("--ranks: a launcher has started these ranks already; leave it out.")
    check(spec, 0 if rank is not None else ranks or 2)
    out = console()
    if rank is None:
        return report(spec, starting.run(spec, ranks or 2, out), out, json_file, picture)
    from paceline.train import worker

    out.quiet = rank > 0  # one speaks for all
    with starting.Watcher(out) as watcher:
        found = worker.train(spec, watcher.hear)
    return report(spec, found, out, json_file, picture) if found else 0


command.add_command(record)
command.add_command(replay)
