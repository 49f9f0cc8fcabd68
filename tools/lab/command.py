"""./dev lab up | run | bench | train | status | down: the command line of the emulated cluster."""

import argparse
import os
import sys

from lab import bench, mpis, network, train
from lab.plan import MOST_NODES, MOST_PPN
from lab.state import FOLDER, LabError, State


SCATTERED = "ranks lie on the nodes in turn, not node by node"


def between(least, most):
    """A whole number of an option."""
    def check(text):
        if not text.isdigit() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text}: it must be {least} to {most}")
        return int(text)
    return check


def parser_of():
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="./dev lab", description=__doc__)
    parser.add_argument("--at", default=FOLDER, metavar="FOLDER", help="another lab than the one")
    commands = parser.add_subparsers(dest="name", required=True,
                                     metavar="up|run|bench|train|status|down")
    up = commands.add_parser("up", help="start NODES nodes")
    up.add_argument("nodes", type=between(1, MOST_NODES), metavar="NODES")
    up.add_argument("--rate", default="200mbit", help="of each link, each way [200mbit]")
    up.add_argument("--ppn", type=between(1, MOST_PPN), default=1, help="ranks of a node [1]")
    run = commands.add_parser("run", help="run a command: on one node, or as ranks of an MPI")
    run.add_argument("--mpi", choices=mpis.MPIS)
    run.add_argument("-n", "--ranks", type=between(1, MOST_NODES * MOST_PPN),
                     help="[as many as there are places]")
    run.add_argument("--ppn", type=between(1, MOST_PPN), help="ranks of a node [as of the lab]")
    run.add_argument("--spin", action="store_true", help="ranks poll without rest")
    run.add_argument("--scattered", action="store_true", help=SCATTERED)
    run.add_argument("--node", type=between(0, MOST_NODES - 1), default=0,
                     help="where the command, or mpiexec, runs [0]")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND...")
    bench = commands.add_parser(
        "bench", help="paceline bench between the nodes, against an MPI",
        epilog="Other options are those of paceline bench, such as allreduce --sizes 1MiB,4MiB, or "
        "allreduce --arrival late:1:1 --predict auto --no-predict: rank 1 comes late by what a "
        "message takes on a link, to ours with and without prediction and to the MPI's own.")
    bench.add_argument("--mpi", choices=mpis.MPIS, default="mpich5", help="[mpich5]")
    bench.add_argument("-n", "--ranks", type=between(2, MOST_NODES * MOST_PPN),
                       help="[as many as there are places]")
    bench.add_argument("--ppn", type=between(1, MOST_PPN), help="ranks of a node [as of the lab]")
    bench.add_argument("--spin", action="store_true", help="ranks poll without rest")
    bench.add_argument("--scattered", action="store_true", help=SCATTERED)
    bench.add_argument("--json", metavar="FILE", help="write all records to this file")
    train = commands.add_parser(
        "train", help="paceline train replay between the nodes, against gloo and an MPI",
        epilog="Other words are those of paceline train replay, such as --models resnet50.")
    train.add_argument("--mpi", choices=mpis.MPIS, default="mpich5", help="[mpich5]")
    train.add_argument("--spin", action="store_true", help="ranks poll without rest")
    commands.add_parser("status", help="what is up")
    commands.add_parser("down", help="end it; nothing is left behind")
    return parser


def do_up(state, options, rest):
    try:
        rate = network.rate_of(options.rate)
    except ValueError as error:
        raise LabError(str(error)) from None
    plan = state.up(options.nodes, options.ppn, rate, options.rate)
    print(f"{plan.nodes} nodes, {plan.rate_text} each way")


def do_run(state, options, rest):
    plan = state.plan()
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise LabError("run: no command; such as ./dev lab run hostname")
    if options.node >= plan.nodes:
        raise LabError(f"run: there is no node {options.node}; they are 0 to {plan.nodes - 1}")
    environment = dict(os.environ)
    if options.mpi:
        ppn = options.ppn or plan.ppn
        words = mpis.words(options.mpi, options.ranks or plan.nodes * ppn, words)
        environment |= mpis.environment(options.mpi, plan.folder, ppn, options.spin,
                                        options.scattered)
    return state.run(options.node, words, environment)


def do_status(state, options, rest):
    plan = state.plan()
    print(f"{plan.nodes} nodes, {plan.rate_text} each way, {plan.ppn} ranks each")


def do_down(state, options, rest):
    print("the lab is down" if state.down() else "no lab was up")


COMMANDS = {"up": do_up, "run": do_run, "bench": bench.main, "train": train.main,
            "status": do_status, "down": do_down}


def main(arguments):
    """The status of the command."""
    parser = parser_of()
    options, rest = parser.parse_known_args(arguments)
    if rest and options.name not in ("bench", "train"):
        parser.error(f"unknown arguments: {' '.join(rest)}")
    try:
        return COMMANDS[options.name](State(options.at), options, rest) or 0
    except (LabError, OSError) as error:
        print(f"./dev lab: {error}", file=sys.stderr)
        return 1
