"""Limits of links between nodes, and the least traffic on them: figures that break it are refused.

Ranks on the nodes of an emulated cluster (./dev lab) could find a way round its links, and would
then measure something else. So the byte counters of every node's interface are read around each
call, and must show at least what the algorithm sends: for one of ours what its schedule says, for
another library's what any algorithm must. From LEAST_BYTES on, no call is faster than the links.
"""

from dataclasses import dataclass
from pathlib import Path

from paceline import _core, patterns
from paceline.files import member, number, read_json, whole

LEAST_BYTES = 1 << 20  # below, what a link lets pass at once makes it look faster than it is
MOST_FRACTION = 1.02
LIMIT_S = 60  # to start, and for each size besides its calls
MOST = 65536  # nodes, and ranks on each
CALLS = 40  # of a variant at a size, at the most


@dataclass(frozen=True)
class Cluster:
    """Facts about the nodes."""

    nodes: int
    ppn: int
    rate: float  # bits per second of each link, each way
    interface: str
    folder: str  # which all ranks see, and in which they meet
    about: dict  # for readers of the figures

    @property
    def machine(self):
        """The machine in the words of --machine, as far as a bound asks."""
        return f"gbit_per_s={self.rate / 1e9:.9g},ranks_per_node={self.ppn}"

    def bound_s(self, collective, ranks, nbytes):
        """A bound for all algorithms, in seconds; None if there is none."""
        return _core.bound_s(collective, ranks, nbytes, self.machine) or None

    def message_s(self, nbytes):
        """Seconds of `nbytes` on a link."""
        return 8 * nbytes / self.rate

    def limit_s(self, plan):
        """Seconds after which a launch has taken too long; launchers do hang now and then."""
        pattern = plan.arrival and patterns.parse(plan.arrival)
        calls = sum(self.bound_s(plan.collective, plan.ranks, nbytes) or 0 for nbytes in plan.sizes)
        if pattern:
            calls += sum(pattern.longest_s(self.message_s(nbytes)) for nbytes in plan.sizes)
        return LIMIT_S * (1 + len(plan.sizes)) + CALLS * len(plan.variants) * calls


def cluster_from(file):
    """The Cluster that a file describes."""
    return read_json(file, "description of a cluster", _checked)


def _checked(fields):
    return Cluster(
        nodes=whole(fields, "nodes", 1, MOST), ppn=whole(fields, "ppn", 1, MOST),
        rate=number(fields, "rate"), interface=member(fields, "interface", str),
        folder=member(fields, "folder", str), about=member(fields, "about", dict),
    )  # fmt: skip


def counters(interface):
    """(bytes sent, bytes received) by an interface of this process's network, ever."""
    for line in Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            found = numbers.split()
            return int(found[8]), int(found[0])
    raise LookupError(f"bench: there is no interface {interface}; the ranks run outside the lab.")


def idle_clock():
    """(ticks without work, all ticks) of all cores so far."""
    line = Path("/proc/stat").read_text(encoding="ascii").split("\n")[0]
    ticks = [int(number) for number in line.split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


@dataclass(frozen=True)
class Crossing:
    """Bytes of one call that cross the borders of nodes, at least."""

    sent: list  # by node
    received: list
    total: int  # sent by all


def least(collective, nbytes, ranks_of, root=0):
    """The Crossing of any algorithm. ranks_of: by node its ranks; `nbytes` as in Case."""
    n, nodes, p = nbytes, len(ranks_of), sum(map(len, ranks_of))
    share = [len(ranks) / p for ranks in ranks_of]
    at_root = [root in ranks for ranks in ranks_of]
    rest = [n * (1 - part) for part in share]  # share that a node lacks, or others lack of it
    own = [n * part for part in share]
    whole, nothing = [n] * nodes, [0] * nodes
    away = [0 if here else n for here in at_root]
    home = [n if here else 0 for here in at_root]
    sent, received, total = {
        "allreduce": (whole, whole, 2 * (nodes - 1) * n),
        "broadcast": (home, away, (nodes - 1) * n),
        "reduce": (away, home, (nodes - 1) * n),
        "reduce_scatter": (rest, own, (nodes - 1) * n),
        "allgather": (own, rest, (nodes - 1) * n),
        "gather": ([0 if here else part for here, part in zip(at_root, own)],
                   [part if here else 0 for here, part in zip(at_root, rest)], 0),
        "scatter": ([part if here else 0 for here, part in zip(at_root, rest)],
                    [0 if here else part for here, part in zip(at_root, own)], 0),
        "alltoall": ([len(r) * part for r, part in zip(ranks_of, rest)],
                     [len(r) * part for r, part in zip(ranks_of, rest)], 0),
        "barrier": (nothing, nothing, 0),
    }[collective]  # fmt: skip
    if nodes == 1:
        sent, received, total = nothing, nothing, 0
    return Crossing([int(b) for b in sent], [int(b) for b in received], max(total, int(sum(sent))))


def of_schedule(world, count, element_bytes, ranks_of):
    """The Crossing of one of ours: the bytes that steps of a _core.World send to other nodes."""
    node_of = {rank: node for node, ranks in enumerate(ranks_of) for rank in ranks}
    sent, received = [0] * len(ranks_of), [0] * len(ranks_of)
    for event in world.simulate(count, element_bytes, "edr-100g").events:
        if event.activity == "send" and node_of[event.rank] != node_of[event.peer]:
            sent[node_of[event.rank]] += event.bytes
            received[node_of[event.peer]] += event.bytes
    return Crossing(sent, received, sum(sent))


def short_of(needed, counted, names):
    """A sentence on bytes of a Crossing that the counters lack; empty if none.

    counted: (sent, received) of one call, by node; names: of the nodes."""
    for what, least_bytes, place in (("sent", needed.sent, 0), ("received", needed.received, 1)):
        for node, name in enumerate(names):
            if counted[node][place] < least_bytes[node]:
                return (f"{name} {what} {counted[node][place]:,.0f} bytes a call, and must "
                        f"{what.replace('sent', 'send').replace('received', 'receive')} "
                        f"{least_bytes[node]:,}")
    total = sum(sent for sent, _ in counted)
    if total < needed.total:
        return f"all nodes sent {total:,.0f} bytes a call, and must send {needed.total:,}"
    return ""


def too_fast(fraction, nbytes):
    """A sentence if the time is shorter than links allow; empty if not."""
    if fraction is None or nbytes < LEAST_BYTES or fraction <= MOST_FRACTION:
        return ""
    return f"{fraction:.2f} of what the links allow: nothing can be faster than 1"
