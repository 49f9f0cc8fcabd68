"""`paceline report`: reproduces published figures about collectives, as pages."""

import threading
from contextlib import contextmanager
from pathlib import Path

import click
from paceline.cli.common import Number, Size, console, file_option
from rich.markup import escape

SILENT_S = 5
DEFAULTS = {  # files of bench/results that a page shows if none are given
    "pipelining": ("pipelining.csv",), "ring": ("ring.csv",), "device": ("gpu.csv",),
    "dag": ("replay.csv", "digits.csv"), "training": ("horovod.csv",), "arrival": ("late.csv",)}
MEASURED = click.option("--measured", multiple=True, metavar="FILE",
                        type=click.Path(exists=True, path_type=Path),
                        help="File of `./dev lab bench --json` or `paceline bench --json`, or a "
                        "campaign of bench/results (*.csv); repeat it for more. A folder stands "
                        "for all such files in it.")
LAB = click.option("--lab", is_flag=True,
              help="Print the commands that measure such files, and exit.")


def html(default):
    """The option --html."""
    return file_option("--html", default=default, show_default=True,
                       help="Write the page to this file, and a CSV beside it.")


def files_in(path):
    """The file, or all of a folder. Raises click.UsageError if there are none."""
    found = sorted([*path.glob("*.json"), *path.glob("*.csv")]) if path.is_dir() else [path]
    if not found:
        raise click.UsageError(f"There is no *.json and no *.csv in {path}.")
    return found


def kept(name):
    """The files of DEFAULTS that are here, for a report."""
    from paceline_bench.report import measured

    files = (measured.RESULTS / file for file in DEFAULTS[name])
    return [file for file in files if file.is_file()]


@contextmanager
def progress(words):
    """Prints `words` on stderr if the block takes longer than SILENT_S."""
    timer = threading.Timer(SILENT_S, click.echo, [f"report: {words} ..."], {"err": True})
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def make(name, module, cells, paths, page, lab=False, **limits):
    """Writes the page and the table of a report. `cells`: a function of the figures that returns
    the numbers for the published claims. `lab`: prints the commands that measure the page, and
    nothing else."""
    if lab:
        click.echo("\n".join(module.commands()))
        return 0
    from paceline.profiling.page import check_extra

    from paceline_bench.report import claims, measured, page as pages, verdicts

    reader = getattr(module, "read", measured.read)
    check_extra()
    files = [file for path in paths or kept(name) for file in files_in(path)]
    read = [part for file in files for part in reader(file)]
    with progress("simulating; the page takes up to some minutes"):
        figures = module.make(read, **limits)
    with progress("simulating the numbers of the claims"):
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
    """Reproduce published figures about collectives.

    Without a name the command lists the reports, and for each figure and table of the publications
    the report that has it. A report writes a page with pictures, and a CSV with all points. It
    simulates its figures, and adds measurements from files, by default those in bench/results of a
    clone. Every line in a figure says if it was measured or simulated. Needs `pip install
    'paceline-bench[report]'`.

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
    """Sets the short help and the examples of each report."""
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
              help="Largest message to simulate.")
@click.option("--most-ranks", default=1024, show_default=True, type=Number(8, 1024),
              help="Largest number of ranks to simulate.")
def pipelining(measured, lab, html, largest, most_ranks):
    """Reproduce collectives in segments: lengths, numbers, algorithms, networks."""
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
    """Compare a pipelined ring with an MPI's allreduce and a plain ring over MPI_Sendrecv."""
    from paceline_bench.report import ring as report, ring_cells

    return make("ring", report, ring_cells.cells, measured, html, lab)


@command.command("device")
@click.option("--measured", multiple=True, metavar="FILE",
              type=click.Path(exists=True, path_type=Path),
              help="File of `paceline bench --json` with --device cuda, peers or staged, or CSV of "
              "`./dev gpu`; repeat it for more. A folder stands for all such files in it.")
@html("device.html")
@click.option("--largest", default="256MiB", show_default=True, type=Size(),
              help="Largest message to simulate.")
def device(measured, html, largest):
    """Reproduce linear pipelines between devices: emulated, simulated, and measured on GPUs."""
    from paceline_bench.report import device as report, device_cells

    if largest < 1 << 20:
        raise click.UsageError("--largest must be 1MiB at least: shorter ones are not cut.")
    return make("device", report, device_cells.cells, measured, html, largest=largest)


@command.command("dag")
@click.option("--measured", multiple=True, metavar="FILE",
              type=click.Path(exists=True, path_type=Path),
              help="File of `paceline train --json` or `paceline train replay --json`, or a CSV of "
              "either; repeat it for more. A folder stands for all such files in it.")
@LAB
@html("dag.html")
def dag(measured, lab, html):
    """Reproduce training with KVStore and BSP-SGD: epochs, accuracy, loss, profile of a step."""
    from paceline_bench.cli.train import need_torch
    from paceline_bench.report import dag as report, dag_cells

    need_torch()
    return make("dag", report, dag_cells.cells, measured, html, lab)


@command.command("training")
@click.option("--measured", multiple=True, metavar="FILE",
              type=click.Path(exists=True, path_type=Path),
              help="File of `paceline train replay --json`, a CSV of such files, or "
              "bench/results/training.csv; repeat it for more. A folder stands for all such files "
              "in it.")
@LAB
@html("training.html")
def training(measured, lab, html):
    """Reproduce training with Horovod: sizes of gradients, and other allreduces than AUTO's."""
    from paceline_bench.report import horovod as report, horovod_cells

    return make("training", report, horovod_cells.cells, measured, html, lab)


@command.command("arrival")
@MEASURED
@click.option("--profile", type=click.Path(exists=True, file_okay=False, path_type=Path),
              metavar="FOLDER",
              help="Folder of `paceline profile --out`; the page then has this program's figures "
              "and tables of collectives, sizes and imbalance.")
@LAB
@html("arrival.html")
def arrival(measured, profile, lab, html):
    """Reproduce allreduces whose ranks enter at different times."""
    from paceline_bench.report import arrival as report

    return make("arrival", report, report.cells, measured, html, lab, profile=profile)


complete()
