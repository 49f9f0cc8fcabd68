"""The parts of a report: figures of panels of lines, each of which knows its numbers' origin.

A line is measured or simulated by its origin alone: legend, table and page ask the line.
"""

from dataclasses import dataclass, replace

from paceline import _core


@dataclass(frozen=True)
class Model:
    """The origin of simulated numbers: a model of a machine, in the words of --machine. Emulated:
    what was enqueued on devices of the host, timed by the model."""

    name: str
    machine: str
    kind: str = "simulated"  # or emulated

    @property
    def words(self):
        """The model's numbers."""
        return _core.machine(self.machine)


@dataclass(frozen=True)
class Records:
    """The origin of measured numbers: a file of `paceline bench --json`."""

    file: str
    network: str  # "200mbit, 8 nodes", or "one machine"
    peer: str  # the MPI in whose processes it ran
    date: str
    machine: str
    command: str
    kind = "measured"

    @property
    def words(self):
        """The file and its date."""
        return f"{self.file}, {self.date}"


@dataclass(frozen=True)
class Counted:
    """The origin of numbers that take no run: sizes of a network."""

    name: str
    words: str
    kind = "counted"


@dataclass(frozen=True)
class Point:
    """A time, and limits of its median, if they are known."""

    ranks: int
    bytes: int
    seconds: float | None  # None: not about time
    low_s: float | None = None
    high_s: float | None = None
    value: float | None = None  # a loss or an accuracy at that time

    @property
    def mb_per_s(self):
        """Millions of bytes of the message per second, as the publication has it; None: no time."""
        return self.bytes / self.seconds / 1e6 if self.seconds is not None else None


@dataclass(frozen=True)
class Line:
    """Times of one way to do a collective."""

    label: str
    origin: object  # Model or Records
    points: tuple

    @property
    def kind(self):
        """measured or simulated."""
        return self.origin.kind

    @property
    def legend(self):
        """The label with its kind, for the picture."""
        return f"{self.label} ({self.kind})"


@dataclass(frozen=True)
class Panel:
    """Lines with common axes. `bounds`: lower bounds in seconds, by the value on the axis."""

    title: str
    collective: str
    lines: tuple
    bounds: dict
    over: str = "bytes"  # or ranks: the axis
    value: str = ""  # name of its points' values, if they have some
    marks: tuple = ()  # of ratios: (words, value) that they are held against

    def across(self, point):
        """The place of a point on the axis."""
        return getattr(point, self.over)


MOST_LINES = 6  # of a panel: an eye tells no more apart


def split(panel):
    """The panel, or several if it has more than MOST_LINES, each with its share of them."""
    parts = -(-len(panel.lines) // MOST_LINES)
    if parts <= 1:
        return [panel]
    return [replace(panel, title=f"{panel.title}, part {n + 1} of {parts}",
                    lines=panel.lines[n * len(panel.lines) // parts:
                                      (n + 1) * len(panel.lines) // parts])
            for n in range(parts)]


@dataclass(frozen=True)
class Figure:
    """Panels that answer one question."""

    name: str  # "figure 3": as the publication counts
    title: str
    about: str  # its contents, and omissions of the model
    panels: tuple
    missing: str = ""  # reason why something is not there
    # or bars, times (over ranks), curves (of values), counts (by size), or ratios, whose points
    # have one in the place of seconds
    drawn: str = "lines"
    table: tuple = ()  # rows of words, the first of them headings
    picture: str = ""  # SVG that is drawn already, of no panels

    def of(self, kind):
        """Its panels whose lines are of this kind: simulated or measured."""
        return [panel for panel in self.panels if panel.lines and panel.lines[0].kind == kind]
