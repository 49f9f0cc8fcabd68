"""`paceline explain`: the algorithm that a call takes, the reason, and the costs of the others."""

import click
from rich.markup import escape
from rich.table import Table

from paceline import _core
from paceline.cli import attach
from paceline.cli.common import (
    COLLECTIVES, Collective, Number, Segments, Size, console, details, knob_options,
)
from paceline.cli.explain_keys import plan_text
from paceline.schedules import SENDS, how, unit_count
from paceline.units import human_time

LARGEST = 1 << 30  # where the table of all decisions ends; beyond it nothing changes


def able(collective, ranks, choice):
    """Rows of _core.algorithms that can serve the call, with the chosen one's; then the names of
    those that could serve it only if all ranks were on one node."""
    rows = [row for row in _core.algorithms(ranks, choice["group"] if choice["on_nodes"] else 1)
            if row["collective"] == collective
            and (row["canonical"] or not choice["canonical"])
            and (_core.option("numbers") == "fast" or not row["follows_arrival"]
                 or row["name"] == choice["algorithm"])
            and (choice["on_nodes"] or row["access"] != "nodes")]
    far = [row["name"] for row in rows if row["access"] not in SENDS and not choice["one_node"]
           and row["name"] != choice["algorithm"]]
    return [row for row in rows if row["name"] not in far], far


def candidates(collective, ranks, size, choice, where):
    """One row per algorithm, each with the cut that a call would use; the chosen one is marked.
    `where`: keywords of _core.choose: the machine, and if the system copies between ranks."""
    machine = where["machine"]
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    out.add_column("algorithm", no_wrap=True)
    for heading in ("rounds", "bytes", "combined", f"expected on {machine.split(',')[0]}"):
        out.add_column(heading, justify="right")
    for row in able(collective, ranks, choice)[0]:
        rounds, volume = (row[key] + row[f"near_{key}"] for key in ("rounds", "volume"))
        chosen = row["name"] == choice["algorithm"]
        use = choice if chosen else _core.choose(
            collective, ranks, size, row["name"], **where)
        impossible = row["access"] not in SENDS and not choice["one_node"]   # and yet asked for
        time = "needs one node" if impossible else human_time(use["expected_s"])
        out.add_row(
            f"{row['name']}{details(use, window=False)}{'  <- chosen' if chosen else ''}",
            f"{rounds:g}", _core.human_bytes(volume * size),
            _core.human_bytes(row["reduced"] * size), time,
            style="bold" if chosen else "")
    return out


def times_message(moved, size):
    """Bytes, and how often the message that is: "256 MiB, 4 n"; empty for none."""
    return f"{_core.human_bytes(moved)}, {moved / size:.3g} n" if moved else ""


def counted(collective, ranks, size, choice):
    """Table of what the chosen algorithm's steps read and write on a node; None if it sends."""
    world = _core.World(collective, choice["algorithm"], ranks, **how(choice))
    if not world.is_load_store:
        return None
    count = unit_count(collective, ranks, size)
    node = world.traffic(count, 4)
    busiest = max(world.traffic_by_rank(count, 4), key=lambda rank: rank.total.total)
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    out.add_column("read and written", no_wrap=True)
    for heading in ("by the busiest rank", "by all ranks"):
        out.add_column(heading, justify="right", no_wrap=True)

    def add(name, bytes_of):
        if bytes_of(node):
            out.add_row(name, *(times_message(bytes_of(who), size) for who in (busiest, node)))

    for name in node.passes:
        add(name, lambda who, name=name: name in who.passes and who.passes[name].total)
    add("together", lambda who: who.total.total)
    for name in node.homes:
        add(f"  in {name}", lambda who, name=name: name in who.homes and who.homes[name].total)
    add("  as soon as made", lambda who: who.total.again)
    out.add_row("signals", str(busiest.signals), str(node.signals))
    out.add_row("waits of a rank", str(busiest.syncs), f"at most {node.syncs}")
    return out


def decisions(collective, ranks, where):
    """(first size, last size, the choices between) for each algorithm that is chosen in turn."""
    found, size = [], 1
    while size <= LARGEST:
        choice = _core.choose(collective, ranks, size, **where)
        if found and found[-1][2][-1]["algorithm"] == choice["algorithm"]:
            found[-1][1] = size
            found[-1][2].append(choice)
        else:
            found.append([size, size, [choice]])
        size *= 2
    return found


def span(choices, knob):
    """"8 blocks", "2-16 segments"; empty where it is never more than one."""
    values = [choice[knob] for choice in choices]
    if max(values) <= 1:
        return ""
    several = f"{min(values)}-{max(values)}" if min(values) < max(values) else str(max(values))
    return f"{several} {knob}"


def table_of_all(ranks, where):
    """Table of the choices for every collective, with the size from which each holds."""
    out = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    out.add_column("collective", no_wrap=True)
    out.add_column("from", justify="right", no_wrap=True)
    for heading in ("algorithm", "pieces"):
        out.add_column(heading, no_wrap=True)
    out.add_column("why")
    for collective in _core.collectives():
        for number, (first, _, choices) in enumerate(decisions(collective, ranks, where)):
            pieces = span(choices, "segments") or span(choices, "blocks")
            radix = choices[0]["radix"]
            out.add_row(
                "" if number else collective, "" if first == 1 else _core.human_bytes(first),
                choices[0]["algorithm"] + (f", radix {radix}" if radix else ""), pieces,
                choices[-1]["why"])
    return out


def numbers():
    """A sentence on how the option `numbers` limits the choice; empty if it does not."""
    if _core.option("numbers") == "fast":
        return ("numbers=fast: the order of floating-point sums may depend on predicted late "
                "ranks, so that last bits differ from run to run; the choice shown assumes no late "
                "rank")
    if _core.option("numbers") != "canonical":
        return ""
    return ("numbers=canonical: sums, products and averages of floating types take only algorithms "
            "that add all ranks' values at once, in rank order; the table shows such calls")


def attached(trouble):
    """Says if ranks' buffers are copied straight from one to another, or why not."""
    if trouble:
        return f"not attached: {trouble}"
    return ("ranks of a node are attached: the system copies straight from one's memory into "
            "another's")


def explain_one(collective, ranks, size, choice, where, out):
    """The choice for one size, and the table of candidates."""
    out.print(
        f"{collective} of {_core.human_bytes(size)} on {ranks} ranks: "
        f"[bold]{escape(choice['algorithm'])}[/]{details(choice)} - {escape(choice['why'])}\n",
        soft_wrap=True)
    out.print(candidates(collective, ranks, size, choice, where))
    traffic = counted(collective, ranks, size, choice)
    if traffic is not None:
        out.print()
        out.print(traffic)
    if choice["on_nodes"]:
        out.print(f"\non {ranks // choice['group']} nodes of {choice['group']} ranks",
                  soft_wrap=True)
    far = able(collective, ranks, choice)[1]
    if far:
        out.print(f"left out, since they need all ranks on one node: {', '.join(far)}",
                  soft_wrap=True)
    if _core.has_op(collective) and numbers():
        out.print(numbers(), soft_wrap=True)


def explain_keys(keys, ranks, machine, of_keys, out, more):
    """The plan of auto for them."""
    if more:
        raise click.UsageError("--keys shows the calls of KVStore auto; leave out the "
                               "collective and its knobs.")
    about, plan = plan_text(keys, ranks=ranks, machine=machine, **of_keys)
    for line in f"{ranks} ranks on {_core.machine(machine)}", about, plan:
        out.print(line, soft_wrap=line is plan, markup=False)
    return 0


@click.command("explain", epilog=COLLECTIVES)
@click.argument("collective", required=False, type=Collective())
@click.option("--size", default="1MiB", show_default=True, type=Size(),
              help="Size of the full message: the vector, or all ranks' pieces together.")
@click.option("--ranks", "-n", default=4, show_default=True, type=Number(1, 1024),
              help="Number of ranks.")
@click.option("--algorithm", default="", metavar="NAME",
              help="Explain this algorithm, not the chosen one.")
@click.option("--segments", default=0, type=Segments(),
              help="Number of pipeline segments of the message, or the size of one: 4MiB; 0 = "
              "chosen.")
@click.option("--window", default=0, type=Number(0, 1024),
              help="Number of segments under way at a time; 0 = chosen.")
@knob_options
@click.option("--machine", default="shm", show_default=True,
              help="Machine model, by name or settings; shm = all ranks share a node. `paceline "
              "draw allreduce --machine list` lists the models.")
@click.option("--keys", default="", metavar="NET|FILE|SIZES",
              help="Show the plan of a KVStore of type auto for these gradients: a recorded "
              "network (resnet50, alexnet, vgg11, ...), a file of `paceline train record`, or "
              "sizes from the first layer on, such as 160x1KiB,25MiB.")
@click.option("--compute-s", default=0.0, type=click.FloatRange(0),
              help="With --keys: seconds of computing in a step. [default: as recorded; 0 for "
              "sizes]")
@click.option("--cores", default=0, type=Number(0, 4096),
              help="With --keys on one node: number of its cores. [default: those of this machine]")
@click.option("--threads", default=1, show_default=True, type=Number(1, 4096),
              help="With --keys on one node: number of threads that compute on each rank.")
@click.option("--every-call", is_flag=True, help="With --keys: list every call.")
def command(collective, size, ranks, algorithm, segments, window, radix, blocks, machine, keys,
            **of_keys):
    """Show which algorithm a call takes, and why.

    The choice depends on the collective, the size, the number of ranks, the machine model, and
    whether the system copies between ranks; so all ranks make the same one. Without COLLECTIVE the
    command lists the choices for every collective, each with the size from which it holds.

    Rounds, bytes and combined bytes count the longest path of the schedule without segments. The
    expected time is the price of a call. Between nodes Paceline takes the cheapest algorithm of its
    table; a later row must be 5 % cheaper than those before it. In shared memory it takes the first
    row whose measured lengths fit. `paceline draw` simulates the schedule. If ranks share memory
    and send nothing, a second table counts the bytes that the steps read and write; n is the
    message.

    With --keys the command shows how a KVStore of type auto exchanges the gradients of a network:
    its calls, their predicted ends, and the predicted times of other ways.

    \b
    paceline explain --ranks 16 --machine edr-100g
    paceline explain allreduce --size 64MiB --ranks 16 --machine edr-100g
    paceline explain --keys resnet50 --ranks 4 --machine lab-200mbit
    paceline explain --keys 160x1KiB --ranks 2
    """
    out = console()
    if keys:
        return explain_keys(keys, ranks, machine, of_keys, out,
                            collective or algorithm or segments or window or radix or blocks)
    trouble = attach.trouble()
    where = {"machine": machine, "attach": not trouble}
    if collective is None:
        if algorithm or segments or window or radix or blocks:
            raise click.UsageError("--algorithm and its knobs need a COLLECTIVE.")
        out.print(f"{ranks} ranks on {escape(_core.machine(machine))}")
        out.print(attached(trouble))
        out.print(f"{numbers()}\n" if numbers() else "", soft_wrap=True)
        out.print(table_of_all(ranks, where))
        return 0
    choice = _core.choose(
        collective, ranks, size, algorithm, segments, window, radix, blocks, **where)
    explain_one(collective, ranks, size, choice, where, out)
    if choice["one_node"] and any(
            row["access"] == "single_copy" for row in _core.algorithms()
            if row["collective"] == collective):
        out.print(attached(trouble), soft_wrap=True)
    return 0
