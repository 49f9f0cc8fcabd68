"""Draws the space-time picture of a trace, as SVG or for the terminal.

Time runs to the right. Every rank has a lane: sends on top, sums in the middle, receives below. A
load/store call has copies in, sums, copies out, and signals and waits instead. Thin lines lead from
the sender of each message to its receiver. Traces come from the simulator or from a measurement.
"""

from .picture import Picture
from .time_breakdown import table
from .trace import Event, Trace, checked, from_core, from_json, read, to_json

__all__ = ["Event", "Trace", "from_core", "from_json", "read", "to_json", "to_svg", "to_terminal"]


def to_svg(trace, width_px=1000, summary=False):
    """The picture as an SVG document. Boxes have tool tips.

    `summary`: adds a table of each rank's time by activity.
    """
    room = (width_px - Picture.LEFT - Picture.RIGHT) / Picture.CHARACTER - Picture.NAMES
    return Picture(checked(trace), width_px, table(trace, room) if summary else ()).svg()


def to_terminal(trace, width=100, summary=False):
    """The picture as a rich.text.Text of `width` columns.

    A rank has two lines: sends and sums above, receives below. If there are more than 16
    ranks, each has one line, with messages in its upper half and sums in its lower half.
    """
    from .terminal import Screen  # it needs rich

    return Screen(checked(trace), width).text(summary)
