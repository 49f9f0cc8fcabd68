"""The publication's hierarchical allreduces in parts, also with sums in nodes in order of arrival.

Hierarchical-RSA has the ranks of a node sum to a leader, the leaders reduce-scatter and allgather,
and each leader broadcast. With Small-PAP the first rank of a node leads and adds what comes; with
Large-PAP ranks add along a chain in the order in which they enter. Each part is simulated by
itself, and a rank begins one when it has left the part before.
"""

from paceline import _core
from paceline.schedules import unit_count

from paceline_bench.report.simulated import ELEMENT

PLAIN = ("reduce", "staged")  # to rank 0, through the node's staging buffers
SMALL = ("allreduce", "dynamic_leader")  # its first rank leaves with the sum
LARGE = ("reduce", "arrival_chain")


def part(collective, algorithm, ranks, nbytes, machine, arrivals, blocks=0):
    """Exit times of the ranks from one part."""
    world = _core.World(collective, algorithm, ranks, fused=True, arrivals=arrivals, blocks=blocks)
    return list(world.simulate(unit_count(collective, ranks, nbytes), ELEMENT, machine,
                               arrivals).exit_s)


def exits(inside, nbytes, machine, arrivals, per_node):
    """Exit times of the ranks from the allreduce. `inside`: PLAIN, SMALL or LARGE; `machine`: a
    model."""
    between = machine.partition(",ranks_per_node")[0]
    nodes = [arrivals[first : first + per_node] for first in range(0, len(arrivals), per_node)]
    blocks = 0 if inside == SMALL else 4
    sums = [part(*inside, per_node, nbytes, machine, node, blocks) for node in nodes]
    first = [node.index(min(node)) if inside == SMALL else 0 for node in nodes]
    there = part("allreduce", "rabenseifner", len(nodes), nbytes, between,
                 [left[leader] for left, leader in zip(sums, first)])
    found = []
    for left, leader, result_s in zip(sums, first, there):
        begin = [max(left[rank], result_s if rank == leader else 0) for rank in range(per_node)]
        begin[0], begin[leader] = begin[leader], begin[0]  # the broadcast's root is its rank 0
        end = part("broadcast", "staged", per_node, nbytes, machine, begin, 4)
        end[0], end[leader] = end[leader], end[0]
        found += end
    return found
