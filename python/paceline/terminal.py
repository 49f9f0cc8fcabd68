"""The space-time picture in character cells, for the terminal. Used through paceline.draw."""

from rich.text import Text

from .picture import Picture, colour
from .time_breakdown import table
from .trace import LABELS, kind, kinds, rows
from .units import number, ticks, unit_of


class Screen:
    """A trace in character cells: each shows the kind that took most of its time."""

    LABEL = 9
    ENOUGH = 0.2                       # of a cell's time; less is left blank, so that gaps show

    def __init__(self, trace, width):
        self.trace = trace
        self.columns = max(10, width - self.LABEL)
        self.start_s = min([*trace.arrival_s, *(e.begin_s for e in trace.events)], default=0.0)
        end_s = max([*trace.exit_s, *(e.end_s for e in trace.events)], default=0.0)
        self.span_s = end_s - self.start_s
        self.cell_s = self.span_s / self.columns or 1.0
        self.segments = 1 + max((e.segment for e in trace.events), default=0)
        self.rows = rows(trace)
        self.shares = {}               # rank, row, column -> {(kind, segment): seconds}
        for e in trace.events:
            self.spread(e)

    def spread(self, e):
        first, last = (int((t - self.start_s) / self.cell_s) for t in (e.begin_s, e.end_s))
        for column in range(first, min(last, self.columns - 1) + 1):
            begin = self.start_s + column * self.cell_s
            share = min(e.end_s, begin + self.cell_s) - max(e.begin_s, begin)
            cell = self.shares.setdefault((e.rank, self.rows[kind(e)], column), {})
            what = (kind(e), e.segment)
            cell[what] = cell.get(what, 0.0) + share

    def colour(self, rank, rows, column):
        """The colour of the cell's main occupation in any of these rows; None: mostly idle."""
        shares = [item for row in rows for item in self.shares.get((rank, row, column), {}).items()]
        if not shares or sum(s for _, s in shares) < self.ENOUGH * self.cell_s:
            return None
        (name, segment), _ = max(shares, key=lambda item: (item[1], item[0]))
        return colour(name, segment, self.segments)

    def line(self, out, rank, upper, lower):
        """One row of cells; a half block shows two of the lane's rows at once."""
        absent = (self.trace.arrival_s[rank] - self.start_s) / self.cell_s
        for column in range(self.columns):
            top = self.colour(rank, upper, column)
            below = self.colour(rank, lower, column) if lower else None
            if top:
                out.append("▀", f"{top} on {below}" if below else top)
            elif below:
                out.append("▄", below)
            else:
                out.append("░" if column + 1 <= absent else " ", "dim")
        out.append("\n")

    def axis(self, out):
        unit, scale = unit_of(self.span_s)
        marks, labels = [" "] * self.columns, [" "] * (self.columns + 12)
        for tick in ticks(self.span_s, max(2, self.columns // 12)):
            column = min(self.columns - 1, int(tick / self.cell_s))
            marks[column] = "┴"
            text = number(tick / scale) + (f" {unit}" if tick == 0 else "")
            labels[column : column + len(text)] = text
        pad = " " * self.LABEL
        out.append(pad + "".join("─" if m == " " else m for m in marks) + "\n", "dim")
        out.append(pad + "".join(labels)[: self.columns].rstrip() + "\n", "dim")

    def legend(self, out):
        out.append(" " * self.LABEL)
        for name in kinds(self.trace):
            out.append("█", colour(name))
            out.append(f" {LABELS.get(name, name)}  ")
        if self.segments > 1:
            shown = min(self.segments, 6)
            for i in range(shown):
                segment = round(i * (self.segments - 1) / (shown - 1))
                out.append("█", colour("send", segment, self.segments))
            out.append(f" segments 0 to {self.segments - 1}  ")
        if max(self.trace.arrival_s, default=0.0) > self.start_s:
            out.append("░", "dim")
            out.append(" not there yet")
        out.append("\n")

    def notes(self, out, summary):
        """Adds the counts, and the table of times."""
        pad = " " * self.LABEL
        for line in self.trace.counted.splitlines():
            out.append(f"\n{pad}{line}", "dim")
        for label, cells in table(self.trace, self.columns - Picture.NAMES) if summary else ():
            line = "".join(text.rjust(width) for text, width in cells)
            out.append(f"\n{pad}{label.ljust(Picture.NAMES)}{line}", "" if label else "dim")

    def text(self, summary=False):
        unit, scale = unit_of(self.span_s)
        out = Text(no_wrap=True)
        out.append(self.trace.title or "trace", "bold")
        out.append(f"  {number(self.trace.span_s / scale)} {unit}\n")
        for rank in range(self.trace.ranks):
            out.append(f"rank {rank}".ljust(self.LABEL))
            if self.trace.ranks > 16:
                self.line(out, rank, (0, 2, 3), (1,))
            else:
                self.line(out, rank, (0,), (1,))
                out.append(" " * self.LABEL)
                self.line(out, rank, (2,), (3,))
        self.axis(out)
        self.legend(out)
        out.append(" " * self.LABEL + self.trace.provenance, "dim italic")
        self.notes(out, summary)
        return out
