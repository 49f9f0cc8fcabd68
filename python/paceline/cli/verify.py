"""`paceline verify`: proofs for every small world, or for the one that is named."""

import os
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import click
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from paceline import _core
from paceline.cli.common import COLLECTIVES, Collective, Number, Ranks, console, knob_options

# Worlds per call into the core: enough work to hide the call, little enough to share evenly.
MOST_WORLDS, MOST_WORK = 64, 4 * 64**3
FAULTS_SHOWN = 10


def chunks(sweep):
    """(first world, worlds, work): the work of a world grows with the third power of its ranks."""
    first, work = 0, 0
    for world in range(len(sweep)):
        work += sweep.ranks(world) ** 3
        if work >= MOST_WORK or world + 1 - first == MOST_WORLDS or world + 1 == len(sweep):
            yield first, world + 1 - first, work
            first, work = world + 1, 0


class Proofs:
    """The results of a sweep so far."""

    def __init__(self, sweep):
        self.proven, self.rejected, self.faults = 0, Counter(), []
        self.sweep, self.worlds = sweep, 0   # so many worlds are done

    def add(self, worlds, outcome):
        self.worlds += worlds
        self.proven += outcome.proven
        self.rejected.update(outcome.rejected)
        self.faults += outcome.faults

    def ranks(self):
        """Number of ranks up to which all worlds are done: small worlds come first."""
        at_end = self.worlds == len(self.sweep)
        return self.sweep.ranks(self.worlds - 1 if at_end else self.worlds) - (not at_end)


def prove_all(sweep, out, interrupted):
    """Runs the whole sweep on all cores. Ctrl-C ends the process, after interrupted(proofs)."""
    proofs = Proofs(sweep)
    columns = (TextColumn("{task.description}"), BarColumn(30),
               TextColumn("{task.percentage:3.0f} %"), TimeRemainingColumn())
    work = list(chunks(sweep))
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bars, \
            ThreadPoolExecutor(threads) as pool:
        bar = bars.add_task(f"{len(sweep)} worlds", total=sum(weight for *_, weight in work))
        results = pool.map(lambda chunk: sweep.run(chunk[0], chunk[1]), work)
        try:
            for (_, worlds, weight), outcome in zip(work, results):
                proofs.add(worlds, outcome)
                bars.advance(bar, weight)
        except KeyboardInterrupt:
            # Threads inside the core cannot be interrupted; nothing is lost by not awaiting them.
            bars.stop()
            interrupted(proofs)
            sys.stdout.flush()
            os._exit(130)
    return proofs


def sweep_and_report(collective, algorithm, max_ranks, out):
    """Proves every small world; the exit status."""
    sweep, began = _core.Sweep(collective or "", algorithm or "", max_ranks), time.monotonic()
    what = f"{collective or 'all collectives'}{'/' + algorithm if algorithm else ''}"

    def report(proofs, ranks):
        faults = proofs.faults
        for line, fault in faults[:FAULTS_SHOWN]:
            out.print(f"[bold red]fault[/]  {escape(fault)}\n       repeat it with: paceline "
                      f"verify {escape(line)}", soft_wrap=True)
        if len(faults) > FAULTS_SHOWN:
            out.print(f"... and {len(faults) - FAULTS_SHOWN} more")
        for reason, count in sorted(proofs.rejected.items()):
            out.print(f"rejected  {count:6}  {escape(reason)}", soft_wrap=True)
        out.print(
            f"{'[bold red]' if faults else '[bold green]'}{proofs.proven} worlds proven[/], "
            f"{sum(proofs.rejected.values())} rejected by their algorithm, {len(faults)} faults: "
            f"{what}, 1 to {ranks} ranks, in {time.monotonic() - began:.1f} s", soft_wrap=True)

    def interrupted(proofs):
        report(proofs, proofs.ranks())
        left = len(sweep) - proofs.worlds
        out.print(f"[bold red]Interrupted[/]: {left} of {len(sweep)} worlds are left, of "
                  f"{proofs.ranks() + 1} and more ranks.", soft_wrap=True)

    proofs = prove_all(sweep, out, interrupted)
    report(proofs, max_ranks)
    if proofs.proven + len(proofs.faults) == 0:
        out.print("[bold red]Nothing was proven: every world was rejected.[/]")
        return 1
    return 1 if proofs.faults else 0


def prove_one(world, seed, show, out):
    """Proves the named world, or shakes it; the exit status."""
    reason = world.rejects()
    if reason:
        out.print(f"rejected  {escape(world.line)}: {escape(reason)}", soft_wrap=True)
        return 1
    if show is not None:
        out.print(escape(world.print(show)), soft_wrap=True, end="")
    fault = world.verify() or (world.shake(seed) if seed is not None else "")
    if fault:
        out.print(f"[bold red]fault[/]  {escape(world.line)}: {escape(fault)}", soft_wrap=True)
        return 1
    shaken = f", and right in the order drawn from seed {seed}" if seed is not None else ""
    out.print(f"[bold green]proven[/]  {escape(world.line)}{shaken}", soft_wrap=True)
    return 0


def node_numbers(context, parameter, text):
    """The numbers of "0,0,1"; a usage error for anything else."""
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise click.BadParameter(f"{text} is no list of numbers such as 0,0,1.") from None


@click.command("verify", epilog=COLLECTIVES)
@click.argument("collective", required=False, type=Collective())
@click.option("--algorithm", metavar="NAME", help="Only this algorithm of the collective.")
@click.option("--max-ranks", default=64, show_default=True, type=Number(1, 4096),
              help="Prove all worlds of up to this many ranks.")
@click.option("--ranks", type=Number(1, 4096), help="Prove the one world that is named by "
              "this and the following options.")
@click.option("--root", default=0, type=Number(0),
              help="Root of broadcast, reduce, gather and scatter.")
@click.option("--in-place", is_flag=True, help="Input and output are one buffer.")
@click.option("--fused", is_flag=True, help="Receives and sums are one step where they can be.")
@click.option("--in-step", is_flag=True, help="Messages wait for those of the round before.")
@click.option("--segments", default=1, type=Number(1, 4096), help="Pipeline segments.")
@click.option("--window", default=1, type=Number(1, 1024), help="Segments at a time.")
@click.option("--whole-tail", is_flag=True,
              help="The algorithm's tail takes all segments together.")
@click.option("--ordered", is_flag=True, help="The operation is not commutative.")
@click.option("--canonical", is_flag=True,
              help="All ranks' values are added at once, in rank order.")
@click.option("--uneven", is_flag=True, help="Units differ in length.")
@click.option("--group", default=0, type=Number(0, 4096),
              help="Ranks of each group of a node, or of each node; 0 = there are none.")
@click.option("--scattered", is_flag=True, help="The groups' ranks take turns in rank order.")
@click.option("--nodes", callback=node_numbers, metavar="N,N,...",
              help="The node of each rank, as in 0,0,1.")
@click.option("--no-staging", is_flag=True, help="Messages inside nodes, not staging buffers.")
@click.option("--late", type=Ranks(), default=(), metavar="RANKS",
              help="Ranks predicted to enter last, the latest one last: 2,5.")
@knob_options
@click.option("--seed", type=Number(0), help="Run it as well in an order drawn from this.")
@click.option("--print", "show", type=Number(0), metavar="RANK",
              help="Print this rank's schedule first.")
def command(collective, algorithm, max_ranks, ranks, root, in_place, fused, in_step,
            segments, window, whole_tail, ordered, canonical, uneven, group, scattered, nodes,
            no_staging, late, radix, blocks, seed, show):
    """Prove that the algorithms do what they promise.

    A proof covers every message length and every timing: each contribution arrives exactly once,
    nothing is overwritten while a rank reads it, and the ranks cannot wait for each other in a
    circle. Without --ranks, all algorithms are proven for every number of ranks up to --max-ranks:
    several roots, in place or not, with fused steps or not, pipelined or not, for units of equal
    and of differing length, and for operations that do not commute; up to 17 ranks also with other
    knobs than an algorithm's own. The exit status is 1 if there is a fault.

    \b
    paceline verify
    paceline verify allreduce --algorithm ring --max-ranks 128
    paceline verify allreduce --algorithm ring --ranks 6 --segments 3 --print 0
    """
    out = console()
    if algorithm and not collective:
        raise click.UsageError("--algorithm needs the collective before it.")
    if ranks is None:
        named = {"--root": root, "--in-place": in_place, "--fused": fused, "--ordered": ordered,
                 "--canonical": canonical, "--uneven": uneven, "--in-step": in_step,
                 "--segments": segments > 1,
                 "--window": window > 1, "--whole-tail": whole_tail,
                 "--group": group > 0, "--scattered": scattered, "--nodes": bool(nodes),
                 "--no-staging": no_staging, "--late": bool(late),
                 "--radix": radix > 0, "--blocks": blocks > 0, "--seed": seed is not None,
                 "--print": show is not None}
        for flag in (flag for flag, given in named.items() if given):
            raise click.UsageError(f"{flag} belongs to one world; name it with --ranks.")
        return sweep_and_report(collective, algorithm, max_ranks, out)
    if not algorithm:
        raise click.UsageError("one world needs COLLECTIVE and --algorithm.")
    world = _core.World(collective, algorithm, ranks, root, in_place, fused, segments, window,
                        ordered, uneven, radix, blocks, in_step, whole_tail, group, scattered,
                        canonical, nodes, no_staging, late=late)
    return prove_one(world, seed, show, out)
