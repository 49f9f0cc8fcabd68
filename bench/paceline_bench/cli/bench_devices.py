"""`paceline bench --device`: collectives between devices instead of ranks."""

import click
from click.core import ParameterSource
from paceline import _core
from paceline.cli.common import console, set_options, write_json

ABOUT = {
    "emulated": """\
Model time, not measured: each device has a copy engine each way and a compute unit. LP: \
linear pipeline in blocks of 64 KiB, at most 1024, or of the model's length; MST: minimal spanning \
tree; BE: bidirectional exchange. Bound: the time of the bytes that every device must send or \
receive.""",
    "cuda": """\
Measured: medians of 10 calls, each to its end, enqueued by one process. LP: linear pipeline in \
blocks of 64 KiB, at most 1024, of the model's length, or of the fastest length. Graph: the \
fastest LP as a plan, in 8 starts in a row. MST: minimal spanning tree. BE: bidirectional \
exchange. The model has the copies and sums measured in the same process, or is --machine. Copy \
bound: the time of all bytes that must be moved and summed, at the rates of one copy and one sum \
in the same process. Participants that share a device share its memory.""",
    "staged": """\
Measured: median of 10 calls of the slowest rank, and its first call. Then the share of the calls' \
time in which each stage of the pipeline worked; stages overlap, so the sum may exceed 100 %. \
Register: pinning memory, which a pool keeps for later calls.""",
    "peers": """\
Measured: median of 10 calls of the slowest process, each to its end, its first call, and one of 8 \
calls in a row. Each process has a device, and works on the devices of the others through CUDA \
IPC. Emulated devices are host memory and threads; their times say nothing about a GPU."""}
PAIR = ("Two devices send to each other at the same time: there an allreduce by LP takes half "
        "as long as on three or more.")
SIZES = {"emulated": "4KiB..1GiB*8", "cuda": "4KiB..1GiB*8", "staged": "4KiB..64MiB*8",
         "peers": "4KiB..64MiB*8"}
NO_MODEL = ("auto", "usual")  # values of --machine that leave the model to us
OWN = ("collective", "sizes", "ranks", "device", "json")  # of bench's options
CUTS = ("algorithm", "segments", "window")  # which ranks with a device each heed, too


def was_given(context, name):
    """True if the command line has this option."""
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def check(context, kind, collective, ranks):
    """Raises click.UsageError for what --device does not time, and for options without effect."""
    from paceline_bench.measure import devices

    if collective not in devices.WAYS:
        raise click.UsageError(f"--device times {', '.join(devices.WAYS)}, and not {collective}.")
    if ranks < 2:
        raise click.UsageError("--device times transfers between devices; --ranks must be at least "
                               "2.")
    library = {row["name"] for row in _core.options()} - {
        "algorithm", "segments", "window", "radix", "blocks"}
    own = (*OWN, *CUTS, *library) if kind in ("staged", "peers") else (*OWN, *library)
    others = [one.opts[0] for one in context.command.params
              if one.name not in own and was_given(context, one.name)]
    if others:
        raise click.UsageError(f"--device {kind} does not take these options; leave out "
                               f"{', '.join(others)}.")


def calls_of(context):
    """Options of the calls of ranks with a device each: the algorithm and its cut."""
    given = {}
    for name in CUTS:
        value = context.params[name]
        if not was_given(context, name):
            continue
        if isinstance(value, (list, tuple)):
            if len(value) != 1:
                raise click.UsageError(f"--device times one --{name}; not {','.join(value)}.")
            value = value[0]
        if name == "segments" and not str(value).isdigit():
            raise click.UsageError(f"--device takes a number of segments; not {value}.")
        given[name] = value if name == "algorithm" else int(value)
    return given


def model_of(kind, options):
    """The model's name, as --machine has it; None: to be measured. Raises click.UsageError for
    probe."""
    from paceline.device import USUAL

    asked = options.get("machine") or "auto"
    if asked == "probe":
        raise click.UsageError("--machine probe measures what is between nodes; --device wants a "
                               "model: auto, a name, or settings such as alpha_us=5.")
    if asked not in NO_MODEL:
        return asked
    return None if kind == "cuda" and asked == "auto" else USUAL


def rows_of(kind, collective, sizes, ranks, machine, calls, out):
    """Times and prints; the records. calls: options of the calls of ranks with a device each."""
    from paceline import device

    from paceline_bench.measure import devices, devices_cuda, devices_peers, stages

    if kind in ("staged", "peers"):
        way = stages if kind == "staged" else devices_peers
        rows = way.run(collective, sizes, ranks, calls)
        out.print(way.table(rows, collective, ranks))
        return [{**way.record(row, collective, ranks), "chosen": not calls} for row in rows]
    if kind == "cuda":
        found = device.cuda()
        rows, count = devices_cuda.measure(collective, sizes, ranks, machine, devices=found)
        out.print(devices_cuda.table(rows, count))
        return [devices.record(row, kind, devices_cuda.about(found, count)) for row in rows]
    rows = devices.measure(collective, sizes, ranks, machine)
    out.print(devices.table(rows, machine))
    return [devices.record(row) for row in rows]


def show(context, kind, collective, sizes, ranks, options, file):
    """Times collectives between devices, prints and writes; the status."""
    from paceline.cli.common import Sizes
    from paceline.provenance import provenance

    check(context, kind, collective, ranks)
    machine = model_of(kind, options) if kind in ("emulated", "cuda") else None
    set_options(options)
    if not was_given(context, "sizes"):
        sizes = Sizes().convert(SIZES[kind], None, context)
    out = console()
    records = rows_of(kind, collective, sizes, ranks, machine, calls_of(context), out)
    out.print(ABOUT[kind], style="dim", soft_wrap=True)
    if kind in ("emulated", "cuda") and (collective, ranks) == ("allreduce", 2):
        out.print(PAIR, style="dim", soft_wrap=True)
    if file:
        write_json({**provenance(None), "records": records, "notes": []}, file, out)
    return 0
