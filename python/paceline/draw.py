"""draw: the space-time picture of a trace, as SVG or for the terminal.

Time runs to the right, every rank has a lane: what it sends on top, what it computes in the middle,
what it receives below; of a load/store call its copies in, sums,
copies out and meetings. Thin lines
lead every message from its sender to its receiver. Traces come from the
simulator or from a measurement; nothing here knows which.
"""

from .picture import Picture
from .time_breakdown import table
from .trace import Event, Trace, checked, from_core, from_json, read, to_json

__all__ = ["Event", "Trace", "from_core", "from_json", "read", "to_json", "to_svg", "to_terminal"]


def to_svg(trace, width_px=1000, summary=False):
    """The picture as an SVG document of its own; a box tells what it is when pointed at.

    `summary`: with a table of where each rank's time went.
    """
    room = (width_px - Picture.LEFT - Picture.RIGHT) / Picture.CHARACTER - Picture.NAMES
    return Picture(checked(trace), width_px, table(trace, room) if summary else ()).svg()


def to_terminal(trace, width=100, summary=False):
    """The picture as a rich.text.Text of `width` columns: send and work above, receive below.

    Beyond 16 ranks a rank has one line: the wire in its upper half, work in its lower.
    """
    from .terminal import Screen  # it needs rich

    return Screen(checked(trace), width).text(summary)
