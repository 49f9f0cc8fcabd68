"""Simulated lines: the library's own schedules under a model of a machine.

A collective that is cut into n parts, all of which start at once, is n concurrent collectives, as
published. So the window is as wide as there are segments.
"""

from dataclasses import dataclass

from paceline import _core
from paceline.schedules import unit_count

from paceline_bench.report.lines import Line, Panel, Point

ELEMENT = 4  # bytes
MOST_SEGMENTS = 4096


@dataclass(frozen=True)
class Way:
    """One way to do a collective: an algorithm, whole, in so many segments, or in segments of a
    size."""

    collective: str
    algorithm: str
    segments: int = 1
    segment_bytes: int = 0

    @property
    def label(self):
        """The label of `paceline bench`, but for a collective that is not cut."""
        if self.segment_bytes:
            return f"{self.algorithm} by {_core.human_bytes(self.segment_bytes)}"
        return self.algorithm + (f" x {self.segments}" if self.segments > 1 else "")

    def count(self, nbytes):
        """Segments of a message."""
        wanted = -(-nbytes // self.segment_bytes) if self.segment_bytes else self.segments
        return min(wanted, MOST_SEGMENTS)


def seconds(way, ranks, nbytes, model):
    """Seconds from the first start to the last end."""
    segments = way.count(nbytes)
    world = _core.World(way.collective, way.algorithm, ranks, fused=True, segments=segments,
                        window=segments)
    count = unit_count(way.collective, ranks, nbytes)
    return world.simulate(count, ELEMENT, model.machine).span_s


def line(way, ranks, sizes, model, label=""):
    """A Line over sizes."""
    points = tuple(Point(ranks, nbytes, seconds(way, ranks, nbytes, model)) for nbytes in sizes)
    return Line(label or way.label, model, points)


def bound_s(collective, ranks, nbytes, model):
    """A bound for all algorithms on this machine; transfers alone."""
    return _core.bound_s(collective, ranks, nbytes, model.machine)


def panel(ways, ranks, sizes, model):
    """A Panel of lines over sizes, with the bound."""
    collective = ways[0].collective
    return Panel(f"{collective}, {ranks} ranks, {model.name}", collective,
                 tuple(line(way, ranks, sizes, model) for way in ways),
                 {nbytes: bound_s(collective, ranks, nbytes, model) for nbytes in sizes})


def over_ranks(ways, nbytes, model):
    """A Panel over ranks; `ways`: {Way: list of ranks}."""
    lines = tuple(
        Line(way.label, model, tuple(Point(ranks, nbytes, seconds(way, ranks, nbytes, model))
                                     for ranks in many))
        for way, many in ways.items())
    collective = next(iter(ways)).collective
    every = sorted({ranks for many in ways.values() for ranks in many})
    title = f"{collective} of {_core.human_bytes(nbytes)}, {model.name}"
    return Panel(title, collective, lines,
                 {ranks: bound_s(collective, ranks, nbytes, model) for ranks in every}, "ranks")
