"""The space-time picture as SVG, piece by piece. Used through paceline.draw."""

import colorsys
from html import escape

from .trace import LABELS, first, kind, kinds, messages, rows
from .units import human_bytes, number, ticks, unit_of

# Hue and saturation by activity, apart also for eyes that do not tell red from green. The lightness
# is left to the pipeline segment.
TONES = {
    "send": (0.585, 0.62), "recv": (0.455, 0.55), "reduce": (0.075, 0.82), "copy": (0.76, 0.32),
    "signal": (0.585, 0.45), "wait": (0.60, 0.10), "compute": (0.13, 0.30),
    "copy in": (0.76, 0.40), "copy out": (0.455, 0.55),
}  # fmt: skip
WAY_IN = {"wait": 0.85}   # lightness of an activity without segments
INK, FAINT, LANE, ABSENT = "#22272e", "#77808c", "#f3f5f8", "#dfe3e9"


def colour(name, segment=0, segments=1):
    """The colour of a kind of event; early segments are dark, late ones light."""
    hue, saturation = TONES[first(name)]
    late = segment / (segments - 1) if segments > 1 else WAY_IN.get(name, 0.35)
    red, green, blue = colorsys.hls_to_rgb(hue, 0.40 + 0.36 * late, saturation)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def told(event, start_s):
    """The tool tip of an event's box."""
    unit, scale = unit_of(max(event.end_s - start_s, 1e-9))
    begin, end = ((t - start_s) / scale for t in (event.begin_s, event.end_s))
    peer = {"send": f" to {event.peer}", "signal": f" to {event.peer}",
            "recv": f" from {event.peer}", "wait": f" from {event.peer}"}  # fmt: skip
    name = kind(event)
    size = f", {human_bytes(event.bytes)}" if event.bytes else ""
    if event.moved:
        size = f", {human_bytes(event.moved)} read and written"
    step = f"step {event.step}"
    if event.steps > 1:
        step = f"steps {event.step} to {event.step + event.steps - 1} together"
    return (
        f"rank {event.rank}: {LABELS.get(name, name)}{peer.get(event.activity, '')}{size}, "
        f"segment {event.segment}, {step}, {number(begin)} to {number(end)} {unit}"
    )


def stacked(events):
    """Gives each of these events a level, so that no two at one level overlap: [(event, level)].

    In a simulated trace one level does; measured receives are posted long before they complete.
    """
    ends, placed = [], []
    for e in sorted(events, key=lambda e: (e.begin_s, e.end_s)):
        slack = 1e-9 * abs(e.begin_s)
        level = next((i for i, end in enumerate(ends) if end <= e.begin_s + slack), len(ends))
        ends[level : level + 1] = [e.end_s]
        placed.append((e, level))
    return placed


class Picture:
    """Computes the layout, and makes the SVG of it piece by piece."""

    LEFT, RIGHT, TOP = 74, 24, 66
    LINE, CHARACTER, NAMES = 17, 6.4, 16   # of the summary: pixels, and the longest name

    def __init__(self, trace, width, summary=()):
        self.summary = summary
        self.trace, self.width, self.parts, self.labels = trace, width, [], []
        self.start_s = min([*trace.arrival_s, *(e.begin_s for e in trace.events)], default=0.0)
        end_s = max([*trace.exit_s, *(e.end_s for e in trace.events)], default=0.0)
        self.span_s = end_s - self.start_s
        self.segments = 1 + max((e.segment for e in trace.events), default=0)
        self.row = 13 if trace.ranks <= 8 else 9 if trace.ranks <= 16 else 5
        self.gap = max(5, self.row)
        self.rows = rows(trace)
        self.lane = (1 + max([2, *self.rows.values()])) * (self.row + 1) - 1
        self.bottom = self.TOP + trace.ranks * (self.lane + self.gap)

    def x(self, time_s):
        room = self.width - self.LEFT - self.RIGHT
        return self.LEFT + (room * (time_s - self.start_s) / self.span_s if self.span_s else 0)

    def y(self, rank, row=0):
        return self.TOP + rank * (self.lane + self.gap) + row * (self.row + 1)

    def rect(self, x, y, width, height, fill, more="", inner=""):
        end = f">{inner}</rect>" if inner else "/>"
        self.parts.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="{fill}"{more}{end}'
        )

    def line(self, x1, y1, x2, y2, stroke, more=""):
        ends = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
        self.parts.append(f'<line {ends} stroke="{stroke}"{more}/>')

    def text(self, x, y, text, size=11, fill=INK, more=""):
        self.parts.append(
            f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" fill="{fill}"{more}>'
            f"{escape(str(text))}</text>"
        )

    def frame(self):
        self.rect(0, 0, self.width, self.height(), "#ffffff")
        self.text(self.LEFT, 26, self.trace.title or "trace", 16, INK, ' font-weight="600"')
        unit, scale = unit_of(self.span_s)
        span = f"{number(self.trace.span_s / scale)} {unit} from the first arrival to the last exit"
        self.text(self.LEFT, 44, span, 11.5, FAINT)
        for rank in range(self.trace.ranks):
            left = self.x(self.trace.exit_s[rank])
            self.rect(self.LEFT, self.y(rank), left - self.LEFT, self.lane, LANE)
        for tick in ticks(self.span_s, max(4, self.width // 90)):
            x = self.x(self.start_s + tick)
            self.line(x, self.TOP - 6, x, self.bottom, "#d4d9e0", ' stroke-width="0.8"')
            label = f"{number(tick / scale)} {unit}" if tick == 0 else number(tick / scale)
            self.text(x, self.bottom + 14, label, 10.5, FAINT, ' text-anchor="middle"')

    def ranks(self):
        """Labels, and when each rank came and left."""
        every = 1 if self.lane + self.gap >= 14 else 4
        for rank in range(self.trace.ranks):
            y, mid = self.y(rank), self.y(rank) + self.lane / 2
            if rank % every == 0:
                self.text(self.LEFT - 14, mid + 4, f"rank {rank}", 11.5, INK, ' text-anchor="end"')
            came, left = self.x(self.trace.arrival_s[rank]), self.x(self.trace.exit_s[rank])
            if came > self.LEFT:
                self.rect(self.LEFT, y, came - self.LEFT, self.lane, "url(#absent)")
            self.line(left, y, left, y + self.lane, INK, ' stroke-width="1.2" class="exit"')
            self.parts.append(arrival_mark(came, mid))

    def events(self):
        lanes = {}
        for e in self.trace.events:
            lanes.setdefault((e.rank, self.rows[kind(e)]), []).append(e)
        for (rank, row), events in sorted(lanes.items()):
            placed = stacked(events)
            height = self.row / (1 + max(level for _, level in placed))
            for e, level in placed:
                x, y = self.x(e.begin_s), self.y(rank, row) + level * height
                width = max(self.x(e.end_s) - x, 1.0)
                outline = ' stroke="#ffffff" stroke-width="0.5"' if width > 3 else ""
                fill = colour(kind(e), e.segment, self.segments)
                tip = f"<title>{escape(told(e, self.start_s))}</title>"
                corner = f' rx="{min(1.5, width / 6):.2g}" class="event"'
                self.rect(x, y, width, height, fill, corner + outline, tip)
                if self.segments > 1 and width > 12 and height > 8:
                    self.labels.append((x + width / 2, y + height / 2 + 3.2, e.segment))

    def lines(self):
        pairs = messages(self.trace)
        opacity = min(0.55, max(0.08, 40 / max(1, len(pairs))))
        head = ' marker-end="url(#head)"' if len(pairs) <= 400 else ""   # else they cover the lanes
        self.parts.append(f'<g stroke-width="0.9" stroke-opacity="{opacity:.2f}">')
        for out, into in pairs:
            y1 = self.y(out.rank, self.rows[kind(out)]) + self.row / 2
            y2 = self.y(into.rank, self.rows[kind(into)]) + self.row / 2
            x1, x2 = self.x(out.begin_s), self.x(into.end_s)
            self.line(x1, y1, x2, y2, INK, ' class="message"' + head)
        self.parts.append("</g>")

    def numbers(self):
        """The segments in their boxes, above the lines."""
        for x, y, segment in self.labels:
            ink = "#ffffff" if segment < 0.45 * self.segments else INK
            self.text(x, y, segment, 9, ink, ' text-anchor="middle" pointer-events="none"')

    def legend(self):
        x, y = self.LEFT, self.bottom + 30
        for name in kinds(self.trace):
            label = LABELS.get(name, name)
            self.rect(x, y, 16, 11, colour(name), ' rx="1.5"')
            self.text(x + 21, y + 9.5, label)
            x += 38 + 5.8 * len(label)
        if self.segments > 1:
            shown = min(self.segments, 8)
            for i in range(shown):
                segment = round(i * (self.segments - 1) / (shown - 1))
                self.rect(x + 11 * i, y, 11, 11, colour("send", segment, self.segments))
            label = f"segments 0 to {self.segments - 1}"
            self.text(x + 11 * shown + 5, y + 9.5, label)
            x += 11 * shown + 22 + 5.8 * len(label)
        arrows = sorted({out.activity for out, _ in messages(self.trace)})
        if arrows:
            label = " or ".join("message" if name == "send" else name for name in arrows)
            self.line(x, y + 1, x + 18, y + 10, INK, ' stroke-width="0.9" marker-end="url(#head)"')
            self.text(x + 24, y + 9.5, label)
            x += 57.4 + 5.8 * len(label)
        self.parts.append(arrival_mark(x + 4, y + 5.5))
        self.text(x + 9, y + 9.5, "arrival")
        self.line(x + 60, y, x + 60, y + 11, INK, ' stroke-width="1.2"')
        self.text(x + 65, y + 9.5, "exit")
        self.text(self.LEFT, y + 32, self.trace.provenance, 10.5, FAINT, ' font-style="italic"')

    def notes(self):
        """The bottom of the picture: counted bytes, and the table of times."""
        y = self.bottom + 62
        for line in self.trace.counted.splitlines():
            y += self.LINE
            self.text(self.LEFT, y, line, 10.5, FAINT)
        for label, cells in self.summary:
            y += self.LINE
            x = self.LEFT + self.CHARACTER * self.NAMES
            self.text(self.LEFT, y, label)
            for text, width in cells:
                x += self.CHARACTER * width
                if text:
                    self.text(x, y, text, 11, INK if label else FAINT, ' text-anchor="end"')

    def height(self):
        lines = len(self.summary) + len(self.trace.counted.splitlines())
        return self.bottom + 76 + self.LINE * lines

    def svg(self):
        self.frame()
        self.ranks()
        self.events()
        self.lines()
        self.numbers()
        self.legend()
        self.notes()
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
            f'height="{self.height()}" viewBox="0 0 {self.width} {self.height()}" '
            'font-family="Inter, Helvetica Neue, Arial, DejaVu Sans, sans-serif">'
            f"<title>{escape(self.trace.title)}</title><defs>"
            '<pattern id="absent" width="6" height="6" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><rect width="6" height="6" fill="{LANE}"/>'
            f'<rect width="2.2" height="6" fill="{ABSENT}"/></pattern>'
            '<marker id="head" markerUnits="userSpaceOnUse" markerWidth="6" markerHeight="6" '
            f'refX="5" refY="3" orient="auto"><path d="M0,0.8 L5.5,3 L0,5.2 Z" fill="{INK}" '
            'fill-opacity="0.7"/></marker></defs>'
        )
        return "\n".join([head, *self.parts, "</svg>\n"])


def arrival_mark(x, y):
    points = f"{x:.2f},{y:.2f} {x - 7:.2f},{y - 4.5:.2f} {x - 7:.2f},{y + 4.5:.2f}"
    return f'<polygon points="{points}" fill="#c2255c" class="arrival"/>'
