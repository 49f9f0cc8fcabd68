"""Checks that figures of ranks on several nodes are credible, from the files of the ranks."""

import math

import numpy as np
from paceline import _core
from paceline.calls import CUT

from paceline_bench.measure import links, messages

REFUSED = "refused:"


def refused(variant, nbytes, why):
    """The sentence that says why figures are refused."""
    return f"{REFUSED} {variant.label} at {_core.human_bytes(nbytes)}: {why}"


def choice(variant, nbytes, plan, machine=""):
    """The choice for one of our variants; between nodes, of ranks that assume this machine."""
    more = {"machine": machine} if plan.cluster and machine else {}
    return _core.choose(plan.collective, plan.ranks, nbytes, **variant.wish(nbytes), **more)


def needed(variant, case, plan, ranks_of):
    """The Crossing of a variant: of its schedule if it is known, else of any algorithm.

    case: from a rank's file."""
    nbytes, machine = case["bytes"], case.get("machine", "")
    explained = case["explained"].get(variant.label, "")
    any_one = links.least(plan.collective, nbytes, ranks_of, plan.root)
    if variant.library != "paceline" or plan.arrival:  # the ranks taken for late are not known
        return any_one
    made = choice(variant, nbytes, plan, machine)
    if made["algorithm"] != explained.split(":")[0].split(",")[0]:
        return any_one
    world = _core.World(plan.collective, made["algorithm"], plan.ranks, root=plan.root,
                        **{name: made[name] for name in CUT}, **nodes(ranks_of))
    size = _core.types()[plan.dtype]
    pieces = 1 if plan.collective in ("allreduce", "reduce", "broadcast") else plan.ranks
    return links.of_schedule(world, nbytes // (size * pieces), size, ranks_of)


def nodes(ranks_of):
    """Nodes of the ranks, in the words of _core.World; `ranks_of`: by node its ranks, nodes in
    the order of their first ranks."""
    node_of = {rank: node for node, ranks in enumerate(ranks_of) for rank in ranks}
    shared = 1 < len(ranks_of) < len(node_of)
    return {"nodes": [node_of[rank] for rank in sorted(node_of)]} if shared else {}


def places(launch):
    """(names of nodes, by node its ranks) from the files of a launch's ranks."""
    ranks_of = {}
    for rank, found in enumerate(launch):
        ranks_of.setdefault(found["node"], []).append(rank)
    return list(ranks_of), list(ranks_of.values())


def refusal(variant, launches, found, times, plan):
    """The reason to refuse the figures of a variant at a size; empty if there is none.

    launches: the files of all ranks; found: their cases at this size; times: by label."""
    label, cluster = variant.label, plan.cluster
    if not cluster or label not in times:
        return ""
    for launch, cases, some in zip(launches, found, times[label]):
        names, ranks_of = places(launch)
        expected = min(cluster.nodes, math.ceil(plan.ranks / cluster.ppn))
        if len(names) != expected:
            return f"the ranks ran on {len(names)} nodes and not on {expected}: {', '.join(names)}"
        # Ranks of a node have read the same counters; the first one's will do.
        first = [cases[ranks[0]] for ranks in ranks_of]
        counted = [np.divide(case["moved"][label], case["calls"][label]) for case in first]
        nbytes = cases[0]["bytes"]
        limit = cluster.bound_s(plan.collective, plan.ranks, nbytes)
        why = (links.short_of(needed(variant, cases[0], plan, ranks_of), counted, names)
               or links.too_fast(limit and limit / float(np.median(some)), nbytes))
        if why:
            return why
    return ""


def counted(variant, launches, found, plan):
    """(messages, rounds) of a call, the median and the least of all launches; (None, None) if
    none were counted."""
    if not plan.cluster or not any(found[0][0].get("passed", {}).values()):
        return None, None
    sent, chains = [], []
    for launch, cases in zip(launches, found):
        first = [cases[ranks[0]]["passed"][variant.label] for ranks in places(launch)[1]]
        calls = [[messages_of(node, plan) for node in call] for call in zip(*first)]
        sent += [messages.messages(call) for call in calls]
        chains.append(messages.rounds(calls))
    return float(np.median(sent)), min(chains)


def messages_of(rows, plan):
    """The Messages of a node in one call, from a rank's file."""
    segments = [messages.Segment(at, sent, tuple(way), size) for at, sent, way, size in rows]
    return messages.joined(segments, plan.cluster.about["mtu"])


def known(variant, found):
    """(the choice, the machine it was made for, share of this machine that was idle) of a variant
    at a size."""
    first = found[0][0]
    if "idle" not in first:
        return "", "", None
    idle = float(np.median([launch[0]["idle"] for launch in found]))
    return first["explained"].get(variant.label, ""), first.get("machine", ""), idle
