"""The command `paceline`. Every command is a row of COMMANDS, in a module of its own."""

import functools
import importlib
import importlib.metadata
import sys
from pathlib import Path

import click

# name -> (module, what the list of commands says). Modules are imported when they are needed, so
# that `paceline --help` is quick.
COMMANDS = {
    "hello": ("paceline.cli.hello", "Time a training step over Paceline and gloo, in 30 s."),
    "run": ("paceline.cli.run", "Start a program on several ranks of this machine."),
    "preload": ("paceline.cli.preload", "Print the path of the drop-in library for MPI programs."),
    "doctor": ("paceline.cli.doctor", "Check this machine and installation for problems."),
    "info": ("paceline.cli.info", "Print the facts that a bug report needs."),
    "options": ("paceline.cli.options", "List every option, its value, and the value's origin."),
    "verify": ("paceline.cli.verify", "Prove that the algorithms are correct."),
    "draw": ("paceline.cli.draw", "Draw what each rank does in a collective, over time."),
    "explain": ("paceline.cli.explain", "Show which algorithm a call takes, and why."),
    "simulate": ("paceline.cli.simulate", "Simulate collectives, also with late ranks."),
    "profile": ("paceline.cli.profile", "Record when ranks enter collectives; show late ranks."),
}
# Entry points of this group add commands: each names a table like COMMANDS.
GROUP = "paceline.commands"
LABORATORY = ("bench", "train", "report")  # of the distribution paceline-bench


@functools.cache
def commands():
    """COMMANDS, and what installed distributions add to them."""
    found = dict(COMMANDS)
    for point in importlib.metadata.entry_points(group=GROUP):
        found |= point.load()
    return found


class Commands(click.Group):
    """A group whose commands come from tables."""

    def list_commands(self, context):
        """The names, in the order of the tables."""
        return list(commands())

    def get_command(self, context, name):
        """Imports the command's module; its function is called `command`."""
        row = COMMANDS.get(name) or commands().get(name)
        if row:
            return importlib.import_module(row[0]).command
        if name in LABORATORY:
            raise click.UsageError(f"`paceline {name}` is part of the package paceline-bench: "
                                   "pip install ./bench in a clone")
        from paceline import _core

        near = _core.did_you_mean(name, ", ".join(commands()))
        raise click.UsageError(f"there is no command '{name}'.{near}", context)

    def format_commands(self, context, formatter):
        """The list in `paceline --help`, without importing every command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, sentence) in commands().items()])


def show_version(context, option, wanted):
    """Prints the version and ends."""
    if wanted and not context.resilient_parsing:
        from paceline.provenance import version_of

        click.echo(f"paceline {version_of('paceline') or '(not installed)'}")
        context.exit()


def show_pkgconfig(context, option, wanted):
    """Prints the folder of the wheel's pkg-config file, and ends."""
    if wanted and not context.resilient_parsing:
        from paceline.errors import ResourceError

        folder = Path(__file__).parents[1] / "native/lib/pkgconfig"
        if not folder.exists():
            raise ResourceError(
                "--pkgconfigdir: this is a source tree, not a wheel. Install its C library by "
                "`cmake --install build/release --component capi --prefix DIR`.")
        click.echo(folder)
        context.exit()


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=show_version,
    help="Show the version and exit.",
)
@click.option(
    "--pkgconfigdir", is_flag=True, is_eager=True, expose_value=False, callback=show_pkgconfig,
    help="Print the folder of paceline.pc, for pkg-config, and exit.",
)
def cli():
    """Collective communication for data-parallel training: pipelined, proven, measured.

    To start: `paceline doctor` checks this machine, `paceline draw allreduce` draws a collective,
    and `paceline run -n 2 script.py` runs your program on two ranks.
    """


def main(arguments=None):
    """Runs the command line; returns the exit status: 0, 1 for a failure, 2 for a wrong call."""
    from paceline.errors import Error, UsageError

    try:
        return cli.main(arguments, prog_name="paceline", standalone_mode=False) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except UsageError as error:
        print(f"paceline: {error}", file=sys.stderr)
        return 2
    except Error as error:
        print(f"paceline: {error}", file=sys.stderr)
        return 1
    except (click.Abort, KeyboardInterrupt):  # Ctrl-C
        return 130
    except BrokenPipeError:  # `paceline options | head`: the reader has seen enough
        sys.stderr.close()
        return 141
