"""`paceline verify`: proves every small world, or the one that the options name."""

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
        """The largest number of ranks of which all worlds are done; small worlds come first."""
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
    """Proves every small world; returns the exit status."""
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
    """Proves the named world, and with a seed runs it; returns the exit status."""
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
    shaken = f", and correct in the order drawn from seed {seed}" if seed is not None else ""
    out.print(f"[bold green]proven[/]  {escape(world.line)}{shaken}", soft_wrap=True)
    return 0


def node_numbers(context, parameter, text):
    """The numbers in "0,0,1". Raises a usage error for other text."""
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise click.BadParameter(f"{text} is no list of numbers such as 0,0,1.") from None


@click.command("verify", epilog=COLLECTIVES)
@click.argument("collective", required=False, type=Collective())
@click.option("--algorithm", metavar="NAME", help="Prove this algorithm alone.")
@click.option("--max-ranks", default=64, show_default=True, type=Number(1, 4096),
              help="Largest number of ranks, without --ranks.")
@click.option("--ranks", type=Number(1, 4096),
              help="Prove one world of this many ranks, which the options below describe.")
@click.option("--root", default=0, type=Number(0),
              help="Root of broadcast, reduce, gather and scatter.")
@click.option("--in-place", is_flag=True, help="Use one buffer for input and output.")
@click.option("--fused", is_flag=True, help="Fuse receives with sums into one step where possible.")
@click.option("--in-step", is_flag=True, help="Messages wait for those of the previous round.")
@click.option("--segments", default=1, type=Number(1, 4096), help="Number of pipeline segments.")
@click.option("--window", default=1, type=Number(1, 1024),
              help="Number of segments under way at a time.")
@click.option("--whole-tail", is_flag=True,
              help="Do not cut the tail of the schedule into segments.")
@click.option("--ordered", is_flag=True, help="The operation is not commutative.")
@click.option("--canonical", is_flag=True,
              help="Add the values of all ranks at once, in rank order (numbers=canonical).")
@click.option("--uneven", is_flag=True, help="Ranks have pieces of different lengths.")
@click.option("--group", default=0, type=Number(0, 4096),
              help="Number of ranks of each node; 0 = no nodes.")
@click.option("--scattered", is_flag=True, help="Neighbouring ranks are on different nodes.")
@click.option("--nodes", callback=node_numbers, metavar="N,N,...",
              help="Node of each rank, as in 0,0,1.")
@click.option("--no-staging", is_flag=True,
              help="Send messages inside nodes, too, without staging buffers.")
@click.option("--late", type=Ranks(), default=(), metavar="RANKS",
              help="Ranks that the call predicts to be late, the latest one last: 2,5.")
@knob_options
@click.option("--seed", type=Number(0),
              help="Also run the world, in an order of events drawn from this seed.")
@click.option("--print", "show", type=Number(0), metavar="RANK",
              help="Print this rank's schedule first.")
def command(collective, algorithm, max_ranks, ranks, root, in_place, fused, in_step,
            segments, window, whole_tail, ordered, canonical, uneven, group, scattered, nodes,
            no_staging, late, radix, blocks, seed, show):
    """Prove that the algorithms are correct.

    A proof covers every message length and every timing: each contribution arrives exactly once, no
    step overwrites data while a rank reads it, and there is no deadlock.

    Without --ranks the command proves all algorithms for every number of ranks up to --max-ranks:
    with several roots, in place and not, with fused steps and not, pipelined and not, with pieces
    of equal and of different lengths, and with operations that do not commute. Up to 17 ranks it
    also proves knobs other than the defaults. The exit status is 1 if there is a fault.

    \b
    paceline verify
    paceline verify allreduce --algorithm ring --max-ranks 128
    paceline verify allreduce --algorithm ring --ranks 6 --segments 3 --print 0
    """
    out = console()
    if algorithm and not collective:
        raise click.UsageError("--algorithm needs a COLLECTIVE.")
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
            raise click.UsageError(f"{flag} describes one world; pass --ranks, too.")
        return sweep_and_report(collective, algorithm, max_ranks, out)
    if not algorithm:
        raise click.UsageError("--ranks needs a COLLECTIVE and --algorithm.")
    world = _core.World(collective, algorithm, ranks, root, in_place, fused, segments, window,
                        ordered, uneven, radix, blocks, in_step, whole_tail, group, scattered,
                        canonical, nodes, no_staging, late=late)
    return prove_one(world, seed, show, out)
