"""Collectives between the lab's nodes, beside an MPI: python bench/lab/run.py --nodes 8,9

Brings a lab up for each number of nodes, runs `./dev lab bench` there for each MPI, collective and
setting of that MPI, and takes it down. Results go to bench/results/lab.csv, each as a series:
lab-<nodes>-<mpi>-<collective>, with several ranks a node lab-<nodes>x<ppn>-..., of an algorithm
that is asked for ...-<algorithm>, of scattered ranks ...-scattered, beside settings without the
default ...-settings, of sizes that all are below 64 KiB ...-short; and to the screen: as fractions
of the bound, or below 64 KiB messages / rounds.
Needs root; no other lab may be up.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from paceline_bench.measure import campaign

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
MPIS = ("openmpi5", "mpich5", "impi")
COLLECTIVES = "allreduce,broadcast,reduce,reduce_scatter,allgather"


def dev(*words, env=None):
    """(status, output) of one ./dev lab command."""
    done = subprocess.run([ROOT / "dev", "lab", *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, **(env or {})})
    return done.returncode, done.stdout + done.stderr


def measure(name, collective, setting, options, machine):
    """(content of the records or None, output) of one ./dev lab bench."""
    with tempfile.TemporaryDirectory(prefix="paceline-lab-") as folder:
        file = Path(folder) / "records.json"
        more = ["--mpi-setting", setting] if setting != "default" else []
        status, said = dev("bench", "--mpi", name, "--json", file, collective, *options, *more,
                           env={"PACELINE_MACHINE": machine})
        if status or not file.exists():
            return None, said
        return json.loads(file.read_text(encoding="utf-8").replace(str(file), file.name)), said


def figure(record):
    """The fraction of the bound, or below 64 KiB messages / rounds."""
    if record["messages"] is None:
        return f"{record['fraction_of_bound']:.3f}"
    return f"{record['messages']:g} / {record['rounds']}"


def table(title, settings):
    """A row for each size: ours, and the MPI's own in each setting."""
    out = Table(title=title)
    for head in ("bytes", "how", "ours", *settings):
        out.add_column(head, justify="right")
    ours = [r for r in next(iter(settings.values()))["records"] if r["library"] == "paceline"]
    for record in ours:
        cells = [f"{record['bytes']}", f"{record['algorithm']} x {record['segments']}",
                 figure(record)]
        for content in settings.values():
            cells += [figure(r) for r in content["records"]
                      if r["variant"] == "mpi" and r["bytes"] == record["bytes"]]
        out.add_row(*cells)
    return out


def write(folder, names, nodes, ppn, machine, settings):
    """Puts one table into the campaign; returns its path. names: those of the MPI, the collective
    and the algorithm, and "scattered" or empty."""
    first = next(iter(settings.values()))
    if all(record["messages"] is not None for record in first["records"]):
        names = (*names, "short")
    if "default" not in settings:
        names = (*names, "settings")
    place = f"{nodes}x{ppn}" if ppn > 1 else f"{nodes}"
    series = f"lab-{'-'.join(filter(None, (place, *names)))}"
    runs = {name: {**content, "paceline_machine": machine} for name, content in settings.items()}
    return campaign.add(folder / "lab.csv", {series: runs}, ROOT)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--nodes", default="8,9", show_default=True,
              help="Numbers of nodes, one lab after another.")
@click.option("--ppn", default=1, show_default=True, help="Ranks of a node.")
@click.option("--scattered", is_flag=True, help="Ranks in turn on all nodes.")
@click.option("--rate", default="200mbit", show_default=True, help="As of ./dev lab up.")
@click.option("--mpis", default=",".join(MPIS), show_default=True)
@click.option("--collectives", default=COLLECTIVES, show_default=True)
@click.option("--settings", default="default", show_default=True,
              help="Settings of the MPIs, names as of paceline bench --mpi-setting.")
@click.option("--algorithm", default="", help="Algorithms of ours, by name. [default: chosen]")
@click.option("--sizes", default="1MiB,4MiB,16MiB", show_default=True, help="As of paceline bench.")
@click.option("--repeats", default=5, show_default=True, type=int, help="As of paceline bench.")
@click.option("--launches", default=1, show_default=True, type=int, help="As of paceline bench.")
@click.option("--machine", default="probe", show_default=True,
              help="PACELINE_MACHINE: what the choice knows of the links.")
@click.option("--out", "folder", default=RESULTS, type=click.Path(file_okay=False, path_type=Path),
              help="Folder of lab.csv. [default: bench/results]")
def main(nodes, ppn, scattered, rate, mpis, collectives, settings, algorithm, sizes, repeats,
         launches, machine, folder):
    """Collectives between the lab's nodes, beside MPIs: tables, and bench/results/lab.csv."""
    out = Console(width=None if sys.stdout.isatty() else 120)
    options = ["--sizes", sizes, "--repeats", repeats]
    options += ["--launches", launches] if launches > 1 else []
    options += ["--algorithm", algorithm] if algorithm else []
    options += ["--scattered"] if scattered else []
    good = True
    for count in map(int, nodes.split(",")):
        status, said = dev("up", count, "--rate", rate, "--ppn", ppn)
        if status:
            raise click.ClickException(said)
        try:
            for name in mpis.split(","):
                for collective in collectives.split(","):
                    found = {}
                    for setting in settings.split(","):
                        content, said = measure(name, collective, setting, options, machine)
                        if content:
                            found[setting] = content
                        else:
                            good = False
                            out.print(said, style="red", markup=False, highlight=False)
                    if found:
                        out.print(table(f"{collective}, {count} nodes, {name}", found))
                        names = (name, collective, algorithm, "scattered" if scattered else "")
                        path = write(folder, names, count, ppn, machine, found)
                        out.print(f"Wrote {path}", soft_wrap=True, highlight=False)
        finally:
            dev("down")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
