"""`paceline profile`: records when ranks enter and leave collectives, and shows which are late."""

import json as json_format
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import click
from rich.markup import escape

from paceline import _core
from paceline.cli.common import Size, console, file_option
from paceline.errors import UsageError

LAUNCHERS = ("mpiexec", "mpirun", "orterun", "prterun", "srun")


def mpicc_of(program, given):
    """The MPI compiler that belongs to the launcher with which the program begins; None without
    one."""
    if given:
        return given
    name = Path(program[0]).name
    launcher = next((word for word in LAUNCHERS if name == word or name.startswith(word + ".")),
                    None)
    if launcher is None:
        return None
    path = shutil.which(program[0])
    if path is None:
        raise UsageError(f"profile: there is no program '{program[0]}'.")
    beside = Path(path).with_name(name.replace(launcher, "mpicc", 1))
    return str(beside) if beside.exists() else "mpicc"


def environment(folder, program, mpicc, room, serve):
    """The environment of the program's ranks."""
    made = {**os.environ, "PACELINE_PROFILE": str(folder)}
    if room:
        made["PACELINE_PROFILE_BYTES"] = str(room)
    compiler = mpicc_of(program, mpicc)
    if compiler:
        from paceline.cli.preload import library_for

        before = os.environ.get("LD_PRELOAD")
        made["LD_PRELOAD"] = " ".join(filter(None, (before, str(library_for(compiler)))))
        if not serve:
            made.setdefault("PACELINE_PRELOAD", "none")
    return made


def run(program, env):
    """Returns the program's exit status. Ctrl-C and SIGTERM are passed to the program; what it has
    recorded is shown."""
    started, early = None, []   # one that comes while the program is being started is kept for it

    def pass_on(number, _):
        if started:
            started.send_signal(number)
        else:
            early.append(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        started = subprocess.Popen(program, env=env)
        for number in early:
            started.send_signal(number)
        status = started.wait()
    except OSError as error:
        raise UsageError(f"profile: '{program[0]}' cannot be started: {error.strerror}.") from None
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    return 128 - status if status < 0 else status


def show(folder, out, html, trace, json, machine):
    """Prints the tables, and writes the files that options name."""
    from paceline.profiling import calls as profiles
    from paceline.profiling import terminal
    from paceline.profiling.summary import summarise

    calls = profiles.read(folder)
    found = summarise(calls, machine)
    out.print(terminal.screen(found))
    if html:
        from paceline.profiling import page

        page.write(f"Profile of {Path(folder).name}", found, calls, html)
    if trace:
        from paceline.profiling import perfetto

        perfetto.write(calls, trace)
    if json:
        json.write_text(json_format.dumps(found.plain(), indent=1) + "\n", encoding="utf-8")
    for name in filter(None, (html, trace, json)):
        out.print(f"Wrote {escape(str(name))}", soft_wrap=True)


def check(program, read, machine):
    """Raises errors that concern several options together."""
    if bool(program) == bool(read):
        raise click.UsageError("Pass a PROGRAM to profile after --, or a folder with --read.")
    if machine is not None:
        try:
            _core.machine(machine)
        except ValueError as error:
            raise click.UsageError(f"--machine: {error}") from None


@click.command("profile", context_settings={"allow_interspersed_args": False})
@click.option("--out", "-o", type=click.Path(file_okay=False, path_type=Path),
              help="Keep the ranks' files in this folder. It must be new or empty, and every node "
              "must reach it. [default: a temporary one]")
@click.option("--read", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
              help="Show the profile in this folder, instead of running a program.")
@file_option("--html", help="Write a page with pictures to this file.")
@file_option("--trace", help="Write a trace for ui.perfetto.dev and Chrome to this file.")
@file_option("--json", help="Write all figures to this file as JSON.")
@click.option("--machine", metavar="MACHINE",
              help="Machine model, as paceline explain takes it. Imbalance factors are then "
              "multiples of a message's time in this model, not of the measured transfer time.")
@click.option("--mpicc", metavar="PATH",
              help="C compiler of the program's MPI. [default: the one beside mpiexec]")
@click.option("--serve", is_flag=True,
              help="Let the drop-in library also serve the collectives of an MPI program. "
              "[default: it only records them]")
@click.option("--room", type=Size(), metavar="SIZE",
              help="Memory for the records of one rank, 56 bytes for each call. [default: 16MiB]")
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="[-- PROGRAM [ARGUMENTS]...]")
def command(out, read, html, trace, json, machine, mpicc, serve, room, program):
    """Record when ranks enter collectives; show late ranks.

    PROGRAM is a launcher with its program: an MPI's mpiexec, torchrun, or paceline run. The library
    of `paceline preload` records all collectives of an MPI program, in any language. In programs
    with torch or the Python API, Paceline records the collectives that it serves itself. A program
    that is killed leaves its records up to then. The exit status is the program's.

    \b
    paceline profile -- mpiexec -n 4 ./app
    paceline profile --html profile.html -- torchrun --nproc-per-node 2 train.py
    paceline profile --out here --trace trace.json -- paceline run -n 4 script.py
    paceline profile --read here --machine ethernet-10g
    """
    check(program, read, machine)
    if read:
        show(read, console(), html, trace, json, machine)
        return 0
    with tempfile.TemporaryDirectory(prefix="paceline-profile-") as scratch:
        folder = Path(scratch) if out is None else out.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise click.UsageError(f"--out {out} is not empty; each profile has a folder of its "
                                   "own.")
        status = run(program, environment(folder, program, mpicc, room, serve))
        try:
            show(folder, console(), html, trace, json, machine)
            from paceline.profiling import files

            files.shorten(folder)
        except UsageError as error:
            if status == 0:
                raise
            click.echo(f"paceline: {error}", err=True)  # the program's failure is what matters
    return status
