"""`paceline bench store` and `paceline bench overlap`: measure steps of exchange and training."""


import click
from paceline.cli.common import Number, Numbers, console, file_option, write_json
from paceline.errors import UsageError

HOW = """\
Time: medians of steps, the slowest rank's; all ways take turns in one launch, and every sum was \
compared. Quote the ratios: they hold on a busy machine, too, times do not. Sleeps: how often a \
thread of a rank gives up its core to wait. x least: what a key costs, as a multiple of what it \
costs with that of the numbers of keys with which it costs least."""


OVERLAPPED = """\
Time: medians of steps, the slowest rank's, from the forward pass to the last average; all ways \
take turns in one launch, and what they averaged was compared. DDP and overlap are over Paceline, \
but for the one over gloo. Not hidden: what computing alone does not take. Sleeps: how often a \
thread of a rank gives up its core to wait. Quote the ratios: they hold on a busy machine, too, \
times do not."""


@click.command("store")
@click.option("--keys", default="160", show_default=True, type=Numbers(1, 100_000),
              help="Number of arrays of float32 that a step sums; several numbers by turns.")
@click.option("--bytes", "nbytes", default=1024, show_default=True, type=Number(4, 1 << 30),
              help="Bytes of each of them.")
@click.option("--ranks", "-n", default=2, show_default=True, type=Number(1, 256),
              help="Number of ranks to start on this machine.")
@click.option("--repeats", default=50, show_default=True, type=Number(1, 100_000),
              help="Steps of each way.")
@file_option("--json", help="Write all records to this file.")
def store(keys, nbytes, ranks, repeats, json):
    """Measure a step of the KVStore.

    One flat allreduce of all keys, the same with keys packed and unpacked by numpy, an allreduce
    for each key, and the types of paceline.kvstore.

    \b
    paceline bench store
    paceline bench store --keys 100,400,1600,6400 --repeats 10 --json store.json
    """
    from paceline_bench.measure import store as bench

    rows, out = bench.run(keys, nbytes, ranks, repeats), console()
    for count in keys:
        out.print(bench.table(rows, count, nbytes, ranks))
    out.print(HOW, style="dim", soft_wrap=True)
    write([{"bytes": nbytes, "ranks": ranks, "repeats": repeats, **row}
           for row in rows], json, out)


@click.command("overlap")
@click.option("--parameters", default=160, show_default=True, type=Number(2, 10_000),
              help="Parameters of a stack of linear layers, each a weight and a bias.")
@click.option("--bytes", "nbytes", default=25_000_000, show_default=True,
              type=Number(16, 1 << 36), help="Bytes of all of them together, about.")
@click.option("--model", metavar="NAME",
              help="A network of `paceline train` instead, such as resnet50.")
@click.option("--batch", default=0, type=Number(0, 1 << 20),
              help="Inputs of a rank and step. [default: 64; of a network that of paceline train]")
@click.option("--ranks", "-n", default=2, show_default=True, type=Number(1, 256),
              help="Number of ranks to start on this machine.")
@click.option("--repeats", default=20, show_default=True, type=Number(1, 100_000),
              help="Steps of each way.")
@click.option("--seed", default=1, show_default=True, type=Number(0, 1 << 31),
              help="Seed of weights and inputs.")
@file_option("--json", help="Write all records to this file.")
def overlap(parameters, nbytes, model, batch, ranks, repeats, seed, json):
    """Measure a step of overlap() beside DDP.

    Computing alone, DistributedDataParallel over gloo and over Paceline, the same with views of
    buckets in shared memory, and paceline.torch.overlap with each type of KVStore.

    \b
    paceline bench overlap
    paceline bench overlap --model resnet50 --repeats 5 --json overlap.json
    """
    try:
        from paceline_bench.measure import overlap as bench
        from paceline_bench.networks import models
    except ImportError as error:
        raise UsageError(f"bench overlap: it needs torch: pip install torch. ({error})") from None
    if model:
        models.known(model)
    told = {"parameters": parameters, "bytes": nbytes, "model": model, "batch": batch,
            "repeats": repeats, "seed": seed}
    count, has_bytes, rows = bench.run(told, ranks)
    out, about = console(), f"{count} parameters, {has_bytes / 1e6:.1f} MB, on {ranks} ranks"
    out.print(bench.table(rows, f"{model}: {about}" if model else about))
    out.print(OVERLAPPED, style="dim", soft_wrap=True)
    write([{**told, "parameters": count, "bytes": has_bytes, "ranks": ranks, **row}
           for row in rows], json, out)


def write(records, file, out):
    """Writes the records to a file, if one was asked for."""
    from paceline.provenance import provenance

    if file:
        write_json({**provenance(None), "records": records, "notes": []}, file, out)


STEPS = {"store": store, "overlap": overlap}


class WithSteps(click.Command):
    """`paceline bench`, in which the words of STEPS are other commands."""

    def make_context(self, info_name, args, parent=None, **extra):
        """The context of the command that the first word names."""
        if args and args[0] in STEPS:
            return STEPS[args[0]].make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)
