"""`paceline report`: what was published about pipelining, rings and devices, again, as pages."""

import threading
from contextlib import contextmanager
from pathlib import Path

import click
from paceline.cli.common import Number, Size, console, file_option
from rich.markup import escape

SILENT_S = 5
DEFAULTS = {  # files of bench/results that a page shows if none are given
    "pipelining": "pipelining.csv", "ring": "ring.csv", "device": "gpu.csv", "dag": "replay.csv",
    "training": "horovod.csv", "arrival": "late.csv"}
MEASURED = click.option("--measured", multiple=True, metavar="FILE",
                        type=click.Path(exists=True, path_type=Path),
                        help="Records of `./dev lab bench --json` or `paceline bench --json`, or "
                        "a campaign of bench/results (*.csv); repeat it for more. A folder stands "
                        "for all of both in it.")
LAB = click.option("--lab", is_flag=True, help="Print the commands that make such files, and end.")


def html(default):
    """--html: where the page goes."""
    return file_option("--html", default=default, show_default=True,
                       help="Write the page here, and a CSV beside it.")


def files_in(path):
    """The file, or all of a folder. Raises click.UsageError if there are none."""
    found = sorted([*path.glob("*.json"), *path.glob("*.csv")]) if path.is_dir() else [path]
    if not found:
        raise click.UsageError(f"There is no *.json and no *.csv in {path}.")
    return found


@contextmanager
def progress(words):
    """Says on stderr what is going on, if it takes longer than SILENT_S."""
    timer = threading.Timer(SILENT_S, click.echo, [f"report: {words} ..."], {"err": True})
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def make(name, module, cells, paths, page, lab=False, **limits):
    """Writes the page and the table of a report. `cells`: returns what claims are judged by, from
    the figures. `lab`: prints the commands that measure it, and nothing else."""
    if lab:
        click.echo("\n".join(module.commands()))
        return 0
    from paceline.profiling.page import check_extra

    from paceline_bench.report import claims, measured, page as pages, verdicts

    reader = getattr(module, "read", measured.read)
    check_extra()
    kept = measured.RESULTS / DEFAULTS.get(name, "")
    files = [file for path in paths or ([kept] if kept.is_file() else ())
             for file in files_in(path)]
    read = [part for file in files for part in reader(file)]
    with progress("simulating; the whole page takes up to some minutes"):
        figures = module.make(read, **limits)
    with progress("simulating what claims are judged by"):
        rows = verdicts.rows(claims.CLAIMS[name], cells(figures))
    verdicts.print_to(console(), rows)
    with progress("drawing"):
        written = pages.write(module.TITLE, module.ABOUT, figures, page, claims.sources(name), rows)
    for file in written:
        console().print(f"Wrote {escape(str(file))}", soft_wrap=True)
    return 0


@click.group("report", invoke_without_command=True)
@click.pass_context
def command(context):
    """Draw what was published about collectives, again.

    Without a name it lists the reports, and all figures and tables of the publications with the
    report that has them. Each report is simulated, and measured where there are files, by default
    those that a clone keeps in bench/results: a page with pictures, and a CSV with all points;
    every line says whether it was measured or simulated. Needs what `pip install
    'paceline-bench[report]'` brings.

    \b
    paceline report
    paceline report pipelining
    paceline report ring --measured ring-mpich5.json
    paceline report device
    paceline report dag
    paceline report training
    paceline report arrival
    """
    if context.invoked_subcommand is None:
        from paceline_bench.report import overview

        out = console()
        out.print(overview.reports())
        for title, table in overview.tables():
            out.print(f"\n{title}", style="bold")
            out.print(table)
        out.print(f"\n{overview.ELSEWHERE}")


def complete():
    """The reports' lines in the list of commands, and the examples of each."""
    from paceline_bench.report import overview

    for name, about in overview.REPORTS.items():
        one = command.commands[name]
        takes = {option.name for option in one.params}
        more = [" --lab"] * ("lab" in takes) + [" --largest 16MiB"] * ("largest" in takes)
        lines = [f"paceline report {name}{words}" for words in ("", *more)]
        one.short_help, one.help = about, "\n".join((f"{one.help}\n\n\b", *lines))


@command.command("pipelining")
@MEASURED
@LAB
@html("pipelining.html")
@click.option("--largest", default="1GiB", show_default=True, type=Size(),
              help="Simulate messages up to this size.")
@click.option("--most-ranks", default=1024, show_default=True, type=Number(8, 1024),
              help="Simulate up to this many ranks.")
def pipelining(measured, lab, html, largest, most_ranks):
    """Segments by size and number, algorithms, networks; with and without arithmetic."""
    from paceline_bench.report import pipelining as report, pipelining_cells

    if largest < 1 << 20:
        raise click.UsageError("--largest must be 1MiB at least: shorter ones are not cut.")
    return make("pipelining", report, pipelining_cells.cells, measured, html, lab,
                largest=largest, most_ranks=most_ranks)


@command.command("ring")
@MEASURED
@LAB
@html("ring.html")
def ring(measured, lab, html):
    """A ring as a pipeline, an MPI's allreduce, and a plain ring over Sendrecv."""
    from paceline_bench.report import ring as report, ring_cells

    return make("ring", report, ring_cells.cells, measured, html, lab)


@command.command("device")
@click.option("--measured", multiple=True, metavar="FILE",
              type=click.Path(exists=True, path_type=Path),
              help="Files of `paceline bench --device cuda --json`, or `peers` or `staged`, or "
              "the CSV of `./dev gpu`; repeat it for more. A folder stands for all of both in it.")
@html("device.html")
@click.option("--largest", default="256MiB", show_default=True, type=Size(),
              help="Messages up to this size.")
def device(measured, html, largest):
    """Linear pipelines between devices, emulated, simulated, and measured where a GPU was."""
    from paceline_bench.report import device as report, device_cells

    if largest < 1 << 20:
        raise click.UsageError("--largest must be 1MiB at least: shorter ones are not cut.")
    return make("device", report, device_cells.cells, measured, html, largest=largest)


@command.command("dag")
@click.option("--measured", multiple=True, metavar="FILE",
              type=click.Path(exists=True, path_type=Path),
              help="Files of `paceline train --json` or `paceline train replay --json`, or "
              "a CSV of the latter; repeat it for more. A folder stands for all of both in it.")
@LAB
@html("dag.html")
def dag(measured, lab, html):
    """Training: epochs over workers, accuracy and loss over time, the profile of an iteration."""
    from paceline_bench.cli.train import need_torch
    from paceline_bench.report import dag as report, dag_cells

    need_torch()
    return make("dag", report, dag_cells.cells, measured, html, lab)


@command.command("training")
@click.option("--measured", multiple=True, metavar="FILE",
              type=click.Path(exists=True, path_type=Path),
              help="Files of `paceline train replay --json`, a CSV of such, or "
              "bench/results/training.csv; repeat it for more. A folder stands for all of these.")
@LAB
@html("training.html")
def training(measured, lab, html):
    """Training with Horovod: gradients by size, and other allreduces in the place of AUTO."""
    from paceline_bench.report import horovod as report, horovod_cells

    return make("training", report, horovod_cells.cells, measured, html, lab)


@command.command("arrival")
@MEASURED
@click.option("--profile", type=click.Path(exists=True, file_okay=False, path_type=Path),
              metavar="FOLDER", help="Output of `paceline profile --out` for a program: its "
              "figures and tables of collectives, sizes and imbalance.")
@LAB
@html("arrival.html")
def arrival(measured, profile, lab, html):
    """Ranks that enter one after the other: what is left to do after the last one."""
    from paceline_bench.report import arrival as report

    return make("arrival", report, report.cells, measured, html, lab, profile=profile)


complete()
