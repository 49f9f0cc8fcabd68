"""`paceline bench`: measures collectives, by algorithm and against other libraries."""


import click
from paceline import _core
from paceline.cli.common import (
    COLLECTIVES,
    Collective,
    Names,
    Number,
    Sizes,
    console,
    file_option,
    knob_options,
    set_options,
    world_options,
    write_json,
)
from paceline.provenance import provenance
from rich.markup import escape

from paceline_bench.cli import bench_arrivals, bench_devices
from paceline_bench.cli.bench_steps import WithSteps
from paceline_bench.measure import report, statistics
from paceline_bench.measure.host import mpi_of_host
from paceline_bench.measure.plan import Plan, variants_for
from paceline_bench.measure.wire_check import REFUSED

HOW = """\
Time: that of the slowest rank, from a common start. Each rank writes its input anew before each \
{unit}. Variants run in turn. Their results were compared with exact values first.
{callers}
GB/s: message bytes by median time. Ceiling: the least time to read and write all bytes that the \
call needs (allreduce of n on 2 ranks: 3n/add + 2n/copy), at rates measured on all ranks in the \
same launch; none below 4 KiB."""
PYTHON = """\
paceline and its algorithms: paceline.Communicator on numpy arrays. torch ...: torch.distributed. \
mpi: the MPI's own collective. All use the same memory."""
NATIVE = """\
Calls without Python. paceline and its algorithms: calls of the core, as the C interface makes \
them. mpi: the MPI's own function. mpi non-blocking: its non-blocking function and a wait. mpi x N \
and by SIZE: several of these at once, and a wait for all. A batch is one call. With short \
messages it is several calls on inputs written once, if no rank can run ahead or ranks outnumber \
cores: {batches}. Shared: in buffers of Communicator.empty()."""

BAD = ("wrong result", REFUSED)  # notes that say so

LINKS = """\
Time: that of the slowest rank, from a common start, in the core without Python. Each rank writes \
its input anew before each call. Variants run in turn. Their results were compared with exact \
values first. Bound: the time of the bytes that every node must send or receive, at {rate} each \
way (allreduce of n on P nodes: 2 (P-1)/P n). The byte counters of all interfaces were read around \
every call, and show at least these bytes. Messages and rounds, below 64 KiB, from the packets: \
the messages of all nodes in a call, and the longest chain of messages each of which was sent \
after the one before had arrived. Waiting: {waiting}."""


def how(rows, plan):
    """The text below the table: how the times were measured."""
    if plan.cluster:
        return LINKS.format(**plan.cluster.about)
    if not plan.native:
        return HOW.format(unit="call", callers=PYTHON)
    sizes = {}
    for row in rows:
        sizes.setdefault(row.bytes, []).append(row.batch)
    batches = ", ".join(
        f"{' to '.join(str(n) for n in sorted({min(some), max(some)}))} at "
        f"{_core.human_bytes(size)}" for size, some in sizes.items() if max(some) > 1)
    return HOW.format(unit="batch", callers=NATIVE.format(batches=batches or "nowhere here"))


def check(collective, dtype, op, against, verdict, launches):
    """Raises errors that concern several options together."""
    if _core.has_op(collective) and not _core.is_defined(op, dtype):
        raise click.UsageError(f"--op {op} is not defined for --dtype {dtype}.")
    if verdict and not against:
        raise click.UsageError(
            "--verdict compares with a peer; pass --against gloo or --against mpi.")
    if verdict and launches is not None and launches < statistics.LEAST_LAUNCHES:
        raise click.UsageError(
            f"--launches {launches} is too few for a verdict; it takes at least "
            f"{statistics.LEAST_LAUNCHES}.")


def check_forms(collective, against, native, forms, no_reduce):
    """Raises errors of the options about other forms of a call."""
    if any(forms) and (against != "mpi" or not native):
        raise click.UsageError("--peer-segments and --peer-ring go with --against mpi and native "
                               "calls.")
    if no_reduce and not native:
        raise click.UsageError("--no-reduce goes with native calls only.")
    if no_reduce and not _core.has_op(collective):
        raise click.UsageError(f"--no-reduce: {collective} has no arithmetic to leave out.")


def without_prediction(asked):
    """The value of PACELINE_PREDICT that --no-predict adds; empty: it adds nothing."""
    if asked and _core.option("predict") == "off":
        raise click.UsageError("--no-predict: --predict off already measures without prediction; "
                               "use --predict nodes.")
    return "off" if asked else ""


def check_native(collective, through, against, batch, separate, mpi_settings, no_reduce):
    """True if calls are timed in the core; raises errors of options that go with it."""
    native = through == "native" or (through is None and (against == "mpi" or no_reduce))
    if native and against == "gloo":
        raise click.UsageError("--against gloo calls torch from Python; use --through python.")
    if batch and not native:
        raise click.UsageError("--batch goes with --through native; through Python a batch is one "
                               "call.")
    if separate and (against == "gloo" or collective not in ("allreduce", "reduce")):
        raise click.UsageError("--separate goes with allreduce and reduce, and not with --against "
                               "gloo: torch reduces in place.")
    if any(mpi_settings) and against != "mpi":
        raise click.UsageError("--mpi-setting and --mpi-set go with --against mpi.")
    return native


def cluster_of(file, plan):
    """The nodes that a file describes. MPI starts their ranks, and the core times them."""
    from paceline_bench.measure.links import cluster_from

    if not plan.mpiexec or not plan.native or plan.batch:
        raise click.UsageError("--lab goes with --against mpi and native calls, without --batch.")
    if plan.arrival:
        bench_arrivals.check_in_lab(plan)
    return cluster_from(file)


def measured(plan, launches, verdict, out):
    """The files of all ranks. For a verdict starts more launches if too few are of one mode."""
    from paceline_bench.measure.launching import launch_all

    found = launch_all(plan, launches, out)
    while verdict and len(found) < 2 * launches:
        lacking = statistics.LEAST_LAUNCHES - len(report.modes_in(found).kept)
        if lacking <= 0:
            break
        found += launch_all(plan, min(lacking, 2 * launches - len(found)), out)
    return found


def show(out, rows, notes, plan, verdict):
    """Prints the tables, what is missing from them, and how the times were measured."""
    out.print(report.times_table(rows, plan))
    if any(row.transfers for row in rows):
        out.print()
        out.print(report.exposed_table(rows))
        out.print("\nno reduce: transfers alone. These results are wrong by design, and were not "
                  "checked.", soft_wrap=True)
    if verdict:
        out.print()
        out.print(report.verdict_table(rows, plan))
        for label, speed_up in report.speed_ups(rows).items():
            out.print(f"{label}: {speed_up:.2f} times as fast over all sizes (geometric mean)")
        if sum(v.library == "paceline" and not v.shared for v in plan.variants) > 1:
            out.print("\nSeveral variants of Paceline ran: judge the best of them on new launches; "
                      "the best of several looks better than it is.", soft_wrap=True)
    out.print()
    for note in notes:
        out.print(f"[yellow]{escape(note)}[/]", soft_wrap=True)
    out.print(how(rows, plan), style="dim", soft_wrap=True)


def check_cold(through, against, batch, shared, no_reduce, verdict):
    """Checks options of the first calls of new processes, which are timed in the core."""
    for given, words in ((through == "python", "--through python"), (batch, "--batch"),
                         (against == "gloo", "--against gloo"), (shared, "--shared"),
                         (no_reduce, "--no-reduce"), (verdict, "--verdict")):
        if given:
            raise click.UsageError(f"--cold times single calls in the core; {words} does not go "
                                   "with it.")
    return True


def show_cold(plan, launches, head, file, out):
    """Measures, prints and writes the first calls of new processes; returns the status."""
    from paceline_bench.measure import cold

    rows = cold.measure(plan, launches)
    out.print(cold.table(rows, plan))
    out.print("Medians over launches of the slowest rank's time. Each variant ran alone in "
              "processes of its own.", style="dim", soft_wrap=True)
    if file:
        records = [cold.record(row, plan) for row in rows]
        write_json({**head, "records": records, "notes": []}, file, out)
    return 0


@click.command("bench", cls=WithSteps, epilog=COLLECTIVES)
@click.argument("collective", type=Collective(), default="allreduce")
@click.option("--sizes", type=Sizes(), default="8..64MiB*8", show_default=True,
              help="Message sizes: 8,1KiB,64KiB or 8..64MiB (doubling) or 8..64MiB*4. A size is "
              "that of the full message: the vector, or all ranks' pieces together.")
@click.option("--ranks", "-n", default=2, show_default=True, type=Number(1, 256),
              help="Number of ranks to start on this machine.")
@click.option("--dtype", default="float32", show_default=True, metavar="TYPE",
              type=click.Choice(list(_core.types())),
              help=f"Type of elements: {', '.join(_core.types())}.")
@click.option("--op", default="sum", show_default=True, metavar="OP",
              type=click.Choice(_core.ops()), help=f"Operation: {', '.join(_core.ops())}.")
@click.option("--root", default=0, show_default=True, type=Number(0),
              help="Root of broadcast, reduce, gather and scatter.")
@click.option("--algorithm", type=Names(), default="auto", show_default=True,
              help="auto, all, or algorithms by name: auto,ring,binomial.")
@click.option("--segments", type=Names(), default="0",
              help="Numbers of pipeline segments, such as 1,4,16, or lengths of segments, such as "
              "4MiB; each is measured with each algorithm. 0 = chosen.")
@click.option("--window", default=0, type=Number(0, 1024),
              help="Number of segments under way at a time; 0 = chosen.")
@knob_options
@click.option("--against", type=click.Choice(["gloo", "mpi"]),
              help="Peer to measure, too. gloo: torch.distributed, with gloo and with Paceline. "
              "mpi: the collectives of the MPI that --mpi names, in processes of its mpiexec.")
@click.option("--mpi-setting", default="default", show_default=True,
              help="Named settings of the MPI; an unknown name lists those that there are.")
@click.option("--mpi-set", multiple=True, metavar="NAME=VALUE",
              help="A variable in the environment of the MPI's processes; repeat it for more.")
@click.option("--peer-segments", type=Names(), default="",
              help="Also measure the MPI with several non-blocking collectives at once and a wait "
              "for all: 1,4,8 of them, or 4MiB for parts of this length. Use --separate for "
              "allreduce, since Open MPI takes a binomial tree in place.")
@click.option("--peer-ring", is_flag=True,
              help="Also measure a plain ring over MPI_Sendrecv; for allreduce.")
@click.option("--through", type=click.Choice(["native", "python"]),
              help="native: the core makes the calls, without Python. python: the Python package "
              "makes them. [default: native with --against mpi, else python]")
@click.option("--batch", default=0, type=Number(0, 100_000),
              help="Number of native calls between two readings of the clock. [default: 8 up to 1 "
              "KiB in collectives in which no rank can run ahead, else 1; more if ranks outnumber "
              "cores]")
@click.option("--shared", is_flag=True,
              help="Also measure Paceline in buffers of Communicator.empty().")
@click.option("--separate", is_flag=True,
              help="Give allreduce and reduce a separate output. [default: in place]")
@click.option("--no-reduce", is_flag=True,
              help="Also measure Paceline without arithmetic, to show how much of the arithmetic "
              "transfers do not hide.")
@click.option("--no-predict", is_flag=True,
              help="Also measure Paceline with PACELINE_PREDICT=off, in processes of its own, to "
              "show the gain from predicting late ranks.")
@click.option("--cold", is_flag=True,
              help="Measure the first ten calls of new processes instead, each variant in its own "
              "and without warm-up, to show the work that a library does at its first call.")
@click.option("--arrival", metavar="PATTERN",
              help="Let ranks compute before each call and enter at different times: uniform:MIF, "
              "late:RANK[,RANK]:FACTOR or trace:FILE. MIF and FACTOR are multiples of a message's "
              "time. Reports the time from the last arrival to the last exit. ./dev lab bench "
              "takes it, too.")
@click.option("--device", type=click.Choice(["emulated", "cuda", "staged", "peers"]),
              help="Measure between devices instead, as many as --ranks. emulated and cuda: one "
              "process; linear pipeline, spanning tree and bidirectional exchange; emulated "
              "reports model times for --machine. staged: one process for each device, through the "
              "host, with the share of each stage. peers: one process for each device; they reach "
              "each other's devices. --sizes are 4KiB..1GiB*8, for staged and peers 4KiB..64MiB*8.")
@click.option("--launches", type=Number(1, 1000),
              help="Number of launches of the ranks. [default: 1; 10 with --verdict]")
@click.option("--repeats", default=0, type=Number(0, 100_000),
              help="Number of calls, or batches, per variant, size and launch. [default: 100 to "
              "10, by size; native 500 to 10]")
@click.option("--lab", type=click.Path(exists=True, dir_okay=False), hidden=True,
              help="File that describes the emulated cluster of the ranks; ./dev lab bench writes "
              "it.")
@click.option("--verdict", is_flag=True,
              help="Judge each size against the peer, by one ratio of medians per launch.")
@click.option("--pin/--no-pin", default=True, show_default=True,
              help="Bind each rank to a core, if there are enough cores.")
@file_option("--json", help="Write all records to this file.")
@world_options("algorithm", "segments", "window")
@click.pass_context
def command(context, collective, sizes, ranks, dtype, op, root, algorithm, segments, window, radix,
            blocks, against, mpi_setting, mpi_set, peer_segments, peer_ring, through, batch, shared,
            separate, no_reduce, no_predict, cold, arrival, device, launches, repeats, lab, verdict,
            pin, json, **options):
    """Measure collectives, also against gloo and MPI.

    Starts ranks on this machine, and runs all variants in turn: Paceline's choice, the algorithms
    that --algorithm names, and the peer. Quote ratios rather than times, and verdicts rather than
    ratios: with ten launches --verdict tells a difference from the noise of the machine.

    \b
    paceline bench allreduce
    paceline bench allreduce --sizes 1KiB,1MiB --algorithm all --segments 1,4
    paceline bench allreduce --against gloo --verdict --json allreduce.json
    paceline bench allreduce --against mpi --mpi /opt/openmpi/lib/libmpi.so
    paceline bench store --keys 160
    paceline bench overlap --repeats 10
    paceline bench allreduce --arrival late:1:1.5 --algorithm auto,ring
    paceline bench allreduce --device emulated -n 4
    """
    if device:
        return bench_devices.show(context, device, collective, sizes, ranks, options, json)
    check(collective, dtype, op, against, verdict, launches)
    native = (check_cold(through, against, batch, shared, no_reduce, verdict) if cold else
              check_native(collective, through, against, batch, separate,
                           (mpi_setting != "default", *mpi_set), no_reduce))
    forms = ([word for word in peer_segments if word], peer_ring)
    check_forms(collective, against, native, forms, no_reduce)
    if root >= ranks:
        raise click.UsageError(f"--root is {root}; with {ranks} ranks it is 0 to {ranks - 1}.")
    set_options(options)
    plan = Plan(
        collective=collective, sizes=[0] if collective == "barrier" else sizes, ranks=ranks,
        dtype=dtype, op=op, root=root, repeats=repeats, pin=pin, native=native, batch=batch,
        separate=separate, variants=variants_for(
            collective, (algorithm, segments, window, radix, blocks), against, shared, forms,
            no_reduce, without_prediction(no_predict)),
        peer=f"torch {against}" if against == "gloo" else against or "")
    bench_arrivals.check(arrival, plan, batch, verdict, cold)
    out, about = console(), None
    if against == "mpi":
        about = mpi_of_host(collective, ranks, mpi_setting, mpi_set)
        plan.mpiexec, plan.environment = about["mpiexec"], about["environment"]
        out.print(f"{about['version']}, {about['library']}", style="dim", soft_wrap=True)
    if lab:
        plan.cluster = cluster_of(lab, plan)
        about = {**about, "cluster": plan.cluster.about}
    head = provenance(about)
    if cold or arrival:
        return (show_cold if cold else bench_arrivals.show)(plan, launches or 1, head, json, out)
    launches = launches or (statistics.LEAST_LAUNCHES if verdict else 1)
    found = measured(plan, launches, verdict, out)
    rows, notes = report.merge(found, plan)
    show(out, rows, notes, plan, verdict)
    if json:
        modes = report.modes_in(found)
        write_json({**head, "round_trips_ns": modes.trips, "round_trip_ns": modes.typical,
                    "launches_dropped": modes.dropped, "notes": notes,
                    "records": [report.record(row, plan) for row in rows]}, json, out)
    return 1 if not rows or any(word in note for note in notes for word in BAD) else 0
