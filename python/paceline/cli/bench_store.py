"""`paceline bench store`: the KVStore's types beside packing by numpy and direct calls."""

import json as json_format
from pathlib import Path

import click

from paceline.cli.common import Number, console

HOW = """\
Time: medians of steps, the slowest rank's; all ways take turns in one launch, and every sum was \
compared. Quote the ratios: they hold on a busy machine, too, times do not."""


@click.command("store")
@click.option("--keys", default=160, show_default=True, type=Number(1, 100_000),
              help="How many arrays of float32 a step sums.")
@click.option("--bytes", "nbytes", default=1024, show_default=True, type=Number(4, 1 << 30),
              help="Of each of them.")
@click.option("--ranks", "-n", default=2, show_default=True, type=Number(1, 256),
              help="How many ranks to start on this machine.")
@click.option("--repeats", default=50, show_default=True, type=Number(1, 100_000),
              help="Steps of each way.")
@click.option("--json", type=click.Path(dir_okay=False), help="Write all records to this file.")
def command(keys, nbytes, ranks, repeats, json):
    """Measure a step of the KVStore.

    One flat allreduce of all keys, the same with keys packed and unpacked by numpy, an allreduce
    for each key, and the types of paceline.kvstore.

    \b
    paceline bench store
    paceline bench store --keys 6400 --repeats 10 --json store.json
    """
    from paceline.bench import store
    from paceline.bench.provenance import provenance

    rows, out = store.run(keys, nbytes, ranks, repeats), console()
    out.print(store.table(rows, keys, nbytes, ranks))
    out.print(HOW, style="dim", soft_wrap=True)
    if json:
        records = [{"keys": keys, "bytes": nbytes, "ranks": ranks, "repeats": repeats, **row}
                   for row in rows]
        content = {**provenance(None), "records": records, "notes": []}
        Path(json).write_text(json_format.dumps(content, indent=1) + "\n", encoding="utf-8")
        out.print(f"Wrote {json}", soft_wrap=True, markup=False)


class WithStore(click.Command):
    """`paceline bench`, of which `paceline bench store` is another command."""

    def make_context(self, info_name, args, parent=None, **extra):
        """That of the command which the first word names."""
        if args[:1] == ["store"]:
            return command.make_context(f"{info_name} store", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)
