"""Describes the bytes that the steps of a call read and write, in words and in traces.

The core counts them from the schedules (src/simulate/traffic.hpp); docs/design/0020-traffic.md has
the rules.
"""

from dataclasses import replace

from paceline import _core


def sentences(world, count, element_bytes=4):
    """Bytes that all ranks of a node move together, in two lines; empty if messages are sent.

    `count`: elements per unit of the message, as for World.simulate.
    """
    if not world.is_load_store:
        return ""
    found = world.traffic(count, element_bytes)
    parts = [f"{name} {_core.human_bytes(moved.total)}" for name, moved in found.passes.items()]
    total, again = (_core.human_bytes(n) for n in (found.total.total, found.total.again))
    soon = f"{again} of it are read as soon as made; " if found.total.again else ""
    return (f"all ranks read and write {total}: {', '.join(parts) or 'nothing'}\n"
            f"{soon}signals: {found.signals}; waits of a rank: at most {found.syncs}")


def kind_of(steps):
    """The work of these steps of one rank: 'reduce + copy in' if a sum goes on into a stage."""
    names = [name for step in steps for name in step.passes]
    return " + ".join(dict.fromkeys(names))


def labelled(trace, world, count, element_bytes=4):
    """The trace of a call, with the bytes and the work of each event's steps."""
    if not world.is_load_store:
        return trace
    ranks = world.traffic_by_step(count, element_bytes)
    events = []
    for event in trace.events:
        steps = ranks[event.rank][event.step : event.step + event.steps]
        events.append(replace(event, what=kind_of(steps) or event.activity,
                              moved=sum(step.total.total for step in steps)))
    return replace(trace, events=events, counted=sentences(world, count, element_bytes))
