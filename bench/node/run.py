"""One node against MPIs: ./dev bench node --mpis openmpi5,mpich5,impi --collectives allreduce;
against an earlier commit: ./dev bench node --parent

For each MPI, each collective and each setting of that MPI `paceline bench --against mpi --verdict`
runs inside the MPI's processes. Results go to bench/results/node.csv, each as a series called
node-<mpi>-<collective>, with more than 2 ranks ...-<n>-ranks; and to the screen as tables.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console

from paceline import _core, mpi
from paceline_bench.measure import campaign, peers, statistics

sys.path.insert(0, str(Path(__file__).resolve().parent))
import parent as parents  # noqa: E402
import table as tables  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results"
SYSTEM = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
LIBRARIES = {
    "openmpi5": ROOT / "build/mpi/openmpi5/lib/libmpi.so.40",
    "mpich5": ROOT / "build/mpi/mpich5/lib/libmpi.so.12",
    "impi": ROOT / "build/mpi/impi/lib/libmpi.so.12",
    "openmpi4": SYSTEM / "libmpi.so.40",
    "mpich4": SYSTEM / "libmpich.so.12",
}
SIZES = "8,64,512,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB"
SEPARATE = ("allreduce", "reduce")  # the others have two buffers, or one, in any case
OF_MPIS = ("mpis", "settings", "separate", "folder")  # options that --parent has no use for


def names_of(words, known, what):
    """The names in a list with commas; `all` means all that are known."""
    names = list(known) if words == "all" else words.split(",")
    for name in names:
        if name not in known:
            raise click.BadParameter(f"no {what} '{name}'; there are: {', '.join(known)}.")
    return names


def kind_of(path):
    """The MPI of a library, from the names inside and beside it, without loading it."""
    if mpi.family_of(str(path)) == mpi.OPENMPI:
        return peers.OPENMPI
    return peers.INTEL if (path.parent / "libshm-fi.so").exists() else peers.MPICH


def settings_of(kind, collective, wanted):
    """The settings to run: default, all, or a list without those that the MPI lacks."""
    known = peers.settings(kind, collective)
    return list(known) if wanted == "all" else [n for n in wanted.split(",") if n in known]


def shares(collective):
    """True if the collective has algorithms for symmetric memory."""
    return any(row["access"] == "symmetric" for row in _core.algorithms()
               if row["collective"] == collective)


def measure(library, collective, setting, options):
    """(status, content of the JSON file or None, what was said) of one `paceline bench`."""
    with tempfile.TemporaryDirectory(prefix="paceline-node-") as folder:
        file = Path(folder) / "records.json"
        command = [
            sys.executable, "-m", "paceline", "bench", collective, "--against", "mpi", "--mpi",
            str(library), "--mpi-setting", setting, "--json", str(file), *options,
            *(["--shared"] if shares(collective) else []),
        ]  # fmt: skip
        found = subprocess.run(command, capture_output=True, text=True)
        text = file.read_text(encoding="utf-8") if file.exists() else "null"
        content = json.loads(text.replace(str(file), file.name))
    return found.returncode, content, found.stdout + found.stderr


def write(folder, name, collective, ranks, settings):
    """Puts one table into the campaign; returns its path."""
    ending = f"-{ranks}-ranks" if ranks != 2 else ""
    return campaign.add(folder / "node.csv", {f"node-{name}-{collective}{ending}": settings}, ROOT)


def run_table(name, collective, wanted, options, out):
    """Measures all settings of one MPI; returns (settings, True if none failed)."""
    library, settings, good = LIBRARIES[name], {}, True
    for setting in settings_of(kind_of(library), collective, wanted):
        begin = time.monotonic()
        status, content, said = measure(library, collective, setting, options)
        if content and content["records"]:
            settings[setting] = content
        if status:
            good = False
            out.print(f"{name} {collective} {setting}: exit status {status}", style="bold red")
            out.print(said, markup=False, highlight=False)
        else:
            out.print(f"{name} {collective} {setting}: {time.monotonic() - begin:.0f} s",
                      style="dim", highlight=False)
    return settings, good


def show(title, settings, out):
    """The table of one MPI and collective."""
    out.print(tables.table(title, settings))
    for sentence in tables.sentences(settings):
        out.print(sentence, soft_wrap=True, highlight=False)
    for note in dict.fromkeys(note for c in settings.values() for note in c["notes"]):
        out.print(note, style="yellow", soft_wrap=True, markup=False, highlight=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--mpis", default="openmpi5,mpich5,impi", show_default=True,
              help=f"all, or some of {', '.join(LIBRARIES)}; ./dev mpi installs them.")
@click.option("--collectives", default="allreduce,broadcast,reduce,reduce_scatter,allgather",
              show_default=True, help="all, or names of collectives.")
@click.option("--settings", default="default", show_default=True,
              help="Settings of the MPIs: all, or names, each if an MPI has it.")
@click.option("--sizes", default=SIZES, show_default=True, help="As of paceline bench.")
@click.option("--launches", default=statistics.LEAST_LAUNCHES, show_default=True, type=int,
              help="Fewer than 10 give no verdicts.")
@click.option("--repeats", default=0, type=int, help="As of paceline bench; 0: by size.")
@click.option("--ranks", "-n", default=2, show_default=True, type=int)
@click.option("--separate", is_flag=True, help="As of paceline bench.")
@click.option("--out", "folder", default=RESULTS, type=click.Path(file_okay=False, path_type=Path),
              help="Folder of node.csv. [default: bench/results]")
@click.option("--parent", metavar="[COMMIT]", is_flag=False, flag_value="HEAD~1",
              help="Against an earlier commit's build instead of MPIs; fails if anything is "
                   "slower. [COMMIT: HEAD~1]")
@click.pass_context
def main(context, mpis, collectives, settings, sizes, launches, repeats, ranks, separate, folder,
         parent):
    """One node against MPIs, in their own processes: tables, verdicts and bench/results/node.csv.

    All of it takes hours; shorten it with --sizes, --launches and --collectives.
    """
    out = Console(width=None if sys.stdout.isatty() else 140)
    wanted = names_of(collectives, _core.collectives(), "collective")
    if parent:
        given = [option.opts[0] for option in context.command.params if option.name in OF_MPIS
                 and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE]
        if given:
            raise click.UsageError(f"{', '.join(given)}: --parent measures no MPI, and shows its "
                                   "figures only.")
        sys.exit(0 if parents.compare(parent, wanted, launches, ["--sizes", sizes, "-n", str(ranks),
                                      "--repeats", str(repeats)], out) else 1)
    names = names_of(mpis, LIBRARIES, "MPI")
    missing = [name for name in names if not LIBRARIES[name].exists()]
    if missing:
        raise click.UsageError(f"{', '.join(missing)}: not installed; run ./dev mpi, or leave it "
                               "out of --mpis.")
    options = ["--sizes", sizes, "--launches", str(launches), "-n", str(ranks), "--repeats",
               str(repeats), *(["--verdict"] if launches >= statistics.LEAST_LAUNCHES else [])]
    good = True
    for name in names:
        for collective in wanted:
            more = ["--separate"] if separate and collective in SEPARATE else []
            found, well = run_table(name, collective, settings, options + more, out)
            good &= well
            if found:
                show(f"{collective}, {ranks} ranks, {name}", found, out)
                path = write(folder, name, collective, ranks, found)
                out.print(f"Wrote {path}\n", soft_wrap=True, highlight=False)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
