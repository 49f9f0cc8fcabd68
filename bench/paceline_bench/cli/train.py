"""`paceline train`: trains the networks of the publications on several ranks."""

import contextlib
import json
import math
import signal

import click
from click.core import ParameterSource
from paceline.cli.common import Number, console, file_option, set_options, world_options
from paceline.errors import Error, RankLost, UsageError
from rich.console import Group
from rich.table import Table

from paceline_bench.cli.train_replay import record, replay

WAYS = ("ddp", "funnel", "concom", "depcha", "auto", "bsp1", "bsp2", "bsp3",
        "bsp3-overlap", "overlap", "overlap-updates")
MODELS = ("resnet110", "resnet20", "resnet50", "alexnet", "vgg11", "vgg16", "googlenet",
          "inception-bn", "densenet201", "gpt", "digits-resnet")


def need_torch():
    """Raises UsageError if torch is not installed."""
    need("torch", "torch is not installed. pip install 'paceline[torch]'")


def need(module, words):
    """Raises UsageError if Python does not find a module. Does not import it, which takes
    seconds."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise UsageError(f"train: {words}")


def check(spec, ranks):
    """Checks the options before ranks start. Returns (side of pictures, classes)."""
    from paceline_bench.networks import models
    from paceline_bench.train import data, memory, ways

    model = models.known(spec["model"])
    ways.check(spec["way"], spec["over"], spec["collectives"])
    for name in ("rate", "most_rate"):
        if not (math.isfinite(spec[name]) and spec[name] > 0):
            raise UsageError(f"train: the learning rate is {spec[name]}; it is a positive number.")
    side = (spec["side"] or model.side) if model.side else 0
    found = data.load(spec["data"], side, spec["seed"], model.classes)
    images = spec["batch"] or model.images
    if ranks:
        data.Shard(len(found), 0, ranks, images, spec["seed"])
    each = models.check_side(spec["model"], side, images, found.classes)
    if ranks:
        memory.check(spec["model"], ranks, images, each)
    return side, found.classes


def sizes(name, side, classes):
    """The sizes of the network beside those of tables 2 of the publications, as text and as
    JSON."""
    from paceline_bench.networks import models
    from paceline_bench.train import perfect, published

    model, (parameters, flops) = models.known(name), models.sizes_of(name, side, classes)
    nbytes = perfect.ELEMENT_BYTES * parameters
    counted, megabytes = published.PUBLISHED.get(name), published.PUBLISHED_MB.get(name)
    seen = f"{side}x{side}, {classes} classes" if side else "text"
    rows = [("", "parameters", "flops, forward", "float32"),
            (f"{name}, {seen}", f"{parameters:,}", f"{flops:,}", f"{nbytes / 1e6:.1f} MB")]
    notes = []
    if counted:
        rows.append(("Castelló and others, table 2", *(f"{one:,}" for one in counted), ""))
    if megabytes:
        rows.append(("Wang and others, table 2", "", "", f"{megabytes} MB"))
        notes.append(f"{nbytes / 1e6:.1f} MB are {nbytes / 2**20:.1f} MiB; that publication does "
                     "not say which unit it means.")
    if len(rows) > 2 and (side, classes) != (model.side, model.classes):
        notes.append(f"Published numbers are for {model.side}x{model.side} pictures and "
                     f"{model.classes} classes.")
    out = Table.grid(padding=(0, 3, 0, 0))
    for justify in ("left", "right", "right", "right"):
        out.add_column(justify=justify, no_wrap=True)
    for row in rows:
        out.add_row(*row)
    published = dict(zip(("parameters", "flops"), counted, strict=True)) if counted else {}
    if megabytes:
        published["megabytes"] = megabytes
    return Group(out, *notes), {"parameters": parameters, "flops": flops, "bytes": nbytes,
                                "published": published or None}


def table(found):
    """Table 2 of the publication, for this run."""
    profile = found["ranks"][0]["profile"]
    out = Table.grid(padding=(0, 3, 0, 0))
    out.add_column()
    out.add_column(justify="right")
    out.add_column()
    for name, key, more in (
            ("computing alone", "computing_s", ""),
            ("exchange alone", "exchange_s", f"{100 * profile['exchange_share']:.1f} % of both"),
            ("a step", "iteration_s",
             f"{100 * profile['hidden_share']:.0f} % of the exchange hidden")):
        out.add_row(name, f"{1e3 * profile[key]:.2f} ms", more)
    return out


def keep(spec, ranks, json_file, out, **more):
    """Writes the file of --json, if any."""
    from paceline.provenance import provenance

    if json_file:
        content = {**provenance(), "plan": spec, **more, "ranks": ranks}
        json_file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        out.print(f"Wrote {json_file}", soft_wrap=True, highlight=False)


def report(spec, found, out, json_file, picture):
    """Prints the result, and writes the files."""
    from paceline_bench.train.picture import svg

    ranks = found["ranks"]
    out.print(table(found))
    keep(spec, ranks, json_file, out)
    if picture:
        title = f"{spec['model']}, {spec['way']} over {spec['over']}, {len(ranks)} ranks"
        picture.write_text(svg(ranks, title), encoding="utf-8")
        out.print(f"Wrote {picture}", soft_wrap=True, highlight=False)
    if not ranks[0]["weights_equal"]:
        out.print("The ranks' weights differ.", style="bold red")
        return 1
    out.print(f"{len(ranks)} ranks have the same weights, bit for bit.")
    return 0


@contextlib.contextmanager
def keeping(spec, watcher, json_file, out):
    """Keeps the measurements if training ends early."""
    from paceline.on_ranks import Failed

    try:
        yield
    except (Error, KeyboardInterrupt) as raised:
        error = what_ended(raised)
        far = (f"after {len(watcher.epochs)} of {spec['epochs']} epochs and "
               f"{len(watcher.losses)} steps")
        if watcher.losses:
            keep(spec, [watcher.kept()], json_file, out, ended_early=f"{far}: {error}".rstrip(": "))
        if isinstance(error, KeyboardInterrupt) and not out.quiet:
            click.echo(f"paceline: train: interrupted {far}.", err=True)
        if isinstance(error, Failed) and watcher.losses:
            raise Failed(f"{error} That was {far}.") from None
        raise error


def what_ended(error):
    """The error to show. Launchers pass Ctrl-C to one rank after another, so a rank may lose a peer
    before it gets the signal itself; that signal is then ignored."""
    if isinstance(error, RankLost) and error.is_interrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return KeyboardInterrupt()
    return error


def train_first():
    """`paceline train` without arguments."""
    need("sklearn", "scikit-learn, which has the digits, is not installed. pip install "
         "'paceline-bench[train]', or train on other data, as `paceline train --help` says.")
    from paceline_bench.train import first

    turns = first.Turns(console())
    try:
        first.run(turns)
    except KeyboardInterrupt:
        click.echo("paceline: train: interrupted; the table has the results so far.", err=True)
        first.end(turns.tries, turns.out)
        raise
    return first.end(turns.tries, turns.out)


def was_asked_nothing(context):
    """True if the command line has no option."""
    return all(context.get_parameter_source(one.name) != ParameterSource.COMMANDLINE
               for one in context.command.params)


@click.group("train", invoke_without_command=True)
@click.option("--ranks", "-n", type=Number(1, 4096),
              help="Number of ranks to start here. [default: 2; under mpiexec its ranks]")
@click.option("--model", default="resnet110", show_default=True, type=click.Choice(MODELS),
              metavar="NAME", help=f"Name of the network: {', '.join(MODELS)}.")
@click.option("--way", default="overlap", show_default=True, type=click.Choice(WAYS),
              metavar="NAME",
              help="Exchange of gradients: ddp (DistributedDataParallel), a type of KVStore "
              "(funnel, concom, depcha, auto), an algorithm of BSP-SGD (bsp1, bsp2, bsp3, "
              "bsp3-overlap), overlap, or overlap-updates (in the background).")
@click.option("--over", default="paceline", show_default=True,
              type=click.Choice(("paceline", "gloo", "mpi")),
              help="Library that exchanges the gradients.")
@click.option("--collectives", metavar="NAME",
              help="Algorithm of bsp: lp, mst, be (linear pipeline, minimal spanning tree, "
              "bidirectional exchange), or a name that `paceline explain` lists.")
@click.option("--data", default="synthetic", show_default=True,
              help="Training data: digits, synthetic, a folder (CIFAR-10's binary files, or train/ "
              "and val/ with pictures by class), or for gpt a text file.")
@click.option("--epochs", default=1, show_default=True, type=Number(1, 100000),
              help="Number of passes over all data.")
@click.option("--steps", default=0, type=Number(0, 10**9),
              help="Largest number of steps in an epoch. [default: all]")
@click.option("--batch", default=0, type=Number(0, 10**6),
              help="Number of pictures of each rank in a step. [default: by the network]")
@click.option("--side", default=0, type=Number(0, 4096),
              help="Side of pictures, in pixels. [default: as published]")
@click.option("--rate", default=0.1, show_default=True,
              help="Learning rate of one rank; it is multiplied by the number of ranks.")
@click.option("--most-rate", default=1.0, show_default=True,
              help="Upper limit of the scaled learning rate.")
@click.option("--validation", default=0, type=Number(0, 10**9),
              help="Number of batches of each rank for validation. [default: all]")
@click.option("--threads", default=1, show_default=True, type=Number(1, 1024),
              help="Number of torch's threads in each rank.")
@click.option("--seed", default=1, show_default=True, type=int,
              help="Seed of the weights, the order of the data, and synthetic data.")
@file_option("--json", "json_file", help="Write all results to this file.")
@file_option("--picture", help="Write a picture of every rank's last step to this file, as SVG.")
@world_options()
@click.pass_context
def command(context, ranks, json_file, picture, **options):
    """Train a network on several ranks of this machine.

    \b
    paceline train
    paceline train --model resnet20 --side 8 --data digits --epochs 3
    mpiexec -n 2 paceline train --model resnet20 --way ddp --over mpi

    Without arguments the command trains a small network on digits on 2 ranks, in three ways one
    after the other. Within a minute of the ranks' start it prints a table and writes a picture.

    With arguments it shows the number of parameters, and the flops of a picture's forward pass,
    beside published numbers if there are some; images/s and validation accuracy of every epoch;
    then the times of a step: computing alone, the exchange alone, and both. Data are synthetic
    unless --data names real data; the output says which. The exit status is 1 if the ranks' weights
    differ at the end. After Ctrl-C, --json has the measurements up to then.
    """
    need_torch()
    if context.invoked_subcommand:
        return 0
    own = ("model", "way", "over", "collectives", "data", "epochs", "steps", "batch", "side",
           "rate", "most_rate", "validation", "threads", "seed")
    spec = {name: options.pop(name) for name in own}
    set_options(options)
    from paceline_bench.train import starting

    rank = starting.rank_here()
    if rank is not None and ranks:
        raise click.UsageError("--ranks: a launcher has started the ranks already; leave the "
                               "option out.")
    if rank is None and was_asked_nothing(context):
        return train_first()
    out = console()
    out.quiet = bool(rank)  # one speaks for all
    watcher = starting.Watcher(out)
    with keeping(spec, watcher, json_file, out):
        seen = check(spec, 0 if rank is not None else ranks or 2)
        words, spec["network"] = sizes(spec["model"], *seen)
        out.print(words)
        found = trained(spec, rank, ranks or 2, out, watcher)
    return report(spec, found, out, json_file, picture) if found else 0


def trained(spec, rank, ranks, out, watcher):
    """The result: of ranks that are started here, or of this process as one started elsewhere."""
    from paceline_bench.train import starting, worker

    if rank is None:
        return starting.run(spec, ranks, out, watcher)
    with watcher:
        return worker.train(spec, watcher.hear)


command.add_command(record)
command.add_command(replay)
