"""`paceline run`: starts a program on several ranks of this machine."""

import click

from paceline import _core, launch
from paceline.cli.common import Number, set_options, world_options


@click.command("run", context_settings={"allow_interspersed_args": False})
@click.option("--ranks", "-n", required=True, type=Number(1, 4096),
              help="Number of ranks to start.")
@click.option("--prefix", is_flag=True, help="Begin every line of output with the rank's number.")
@click.option("--timeout-s", type=click.FloatRange(0, min_open=True), metavar="SECONDS",
              help="End all ranks after this many seconds; the exit status is then 124.")
@world_options()
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED,
                metavar="PROGRAM [ARGUMENTS]...")
def command(ranks, prefix, timeout_s, program, **options):
    """Start a program on several ranks of this machine.

    PROGRAM is a Python script, or any program with its arguments. Its paceline.init() joins the
    ranks. The exit status is 0 if all ranks return 0. If a rank fails, the command ends the others
    and returns that rank's status. Ctrl-C ends all ranks.

    The options below --timeout-s are those of `paceline options`, and apply to all ranks.

    \b
    paceline run -n 4 train.py --epochs 3
    paceline run -n 2 --prefix python -c 'import paceline; print(paceline.init())'
    """
    if program[0].startswith("-"):
        context = click.get_current_context()
        known = ", ".join(name for option in context.command.params for name in option.opts)
        raise click.UsageError(
            f"no such option '{program[0]}'.{_core.did_you_mean(program[0], known)}", context)
    set_options(options)
    return launch.launch(program, ranks, timeout_s=timeout_s, prefix=prefix)
