"""./dev lab up | run | bench | status | down: the command line of the emulated cluster."""

import argparse
import os
import sys

from lab import mpis, network
from lab.asking import ask
from lab.plan import MOST_NODES, MOST_PPN
from lab.state import FOLDER, LabError, State


def between(least, most):
    """A whole number of an option."""
    def check(text):
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: it must be {least} to {most}")
        return int(text)
    return check


def parser_of():
    """Of the whole command line."""
    parser = argparse.ArgumentParser(prog="./dev lab", description=__doc__)
    parser.add_argument("--at", default=FOLDER, metavar="FOLDER", help="another lab than the one")
    commands = parser.add_subparsers(dest="name", required=True, metavar="up|run|status|down")
    up = commands.add_parser("up", help="start NODES nodes")
    up.add_argument("nodes", type=between(1, MOST_NODES), metavar="NODES")
    up.add_argument("--rate", default="200mbit", help="of each link, each way [200mbit]")
    up.add_argument("--ppn", type=between(1, MOST_PPN), default=1, help="ranks of a node [1]")
    run = commands.add_parser("run", help="run a command: on one node, or as ranks of an MPI")
    run.add_argument("--mpi", choices=mpis.MPIS)
    run.add_argument("-n", "--ranks", type=between(1, MOST_NODES * MOST_PPN),
                     help="[as many as there are places]")
    run.add_argument("--ppn", type=between(1, MOST_PPN), help="ranks of a node [as of the lab]")
    run.add_argument("--node", type=between(0, MOST_NODES - 1), default=0,
                     help="where the command, or mpiexec, runs [0]")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND...")
    commands.add_parser("status", help="what is up")
    commands.add_parser("down", help="end it; nothing is left behind")
    return parser


def do_up(state, options):
    try:
        rate = network.rate_of(options.rate)
    except ValueError as error:
        raise LabError(str(error)) from None
    plan = state.up(options.nodes, options.ppn, rate, options.rate)
    print(f"{plan.nodes} nodes, {plan.rate_text} each way")


def do_run(state, options):
    plan = state.plan()
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise LabError("run: no command; such as ./dev lab run hostname")
    if options.node >= plan.nodes:
        raise LabError(f"run: there is no node {options.node}; they are 0 to {plan.nodes - 1}")
    environment = {**os.environ, mpis.FOLDER: plan.folder}
    if options.mpi:
        ppn = options.ppn or plan.ppn
        words = mpi_words(options.mpi, options.ranks or plan.nodes * ppn, words)
        environment |= mpis.environment(options.mpi, plan.folder, ppn)
    return on_node(state, plan, options.node, words, environment)


def mpi_words(name, ranks, words):
    """The same as ranks of an MPI."""
    mpi = mpis.MPIS[name]
    if not mpi.mpiexec.exists():
        raise LabError(f"run: {name} is not installed; ./dev mpi installs it")
    more = ["--oversubscribe", "--bind-to", "none"] if mpi.family == "openmpi" else []
    return [str(mpi.mpiexec), *more, "-n", str(ranks), *words]


def on_node(state, plan, node, words, environment):
    """Runs it there, then ends what it has left on any node; its status."""
    request = {"words": words, "folder": os.getcwd(), "environment": environment}
    try:
        return ask(state.inside(plan.socket(node)), request)
    finally:
        for number in range(plan.nodes):
            ask(state.inside(plan.socket(number)), {"end": True})


def do_status(state, options):
    plan = state.plan()
    print(f"{plan.nodes} nodes, {plan.rate_text} each way, {plan.ppn} ranks each")


def do_down(state, options):
    print("the lab is down" if state.down() else "no lab was up")


COMMANDS = {"up": do_up, "run": do_run, "status": do_status, "down": do_down}


def main(arguments):
    """The status of the command."""
    options = parser_of().parse_args(arguments)
    try:
        return COMMANDS[options.name](State(options.at), options) or 0
    except (LabError, OSError) as error:
        print(f"./dev lab: {error}", file=sys.stderr)
        return 1
