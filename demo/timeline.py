"""Draws one measured step of every rank: what it computed and what it sent, as SVG and as JSON.

A panel is a dict: label (backend), note (a line of text), run (the ranks' records), step (index).
All panels share one time axis, so lengths may be compared by eye.
"""

import json
from html import escape

WIDTH, LEFT, RIGHT = 1200, 132, 28
COMPUTE_HEIGHT, ROW_HEIGHT, LANE_GAP, RANK_GAP = 30, 17, 5, 16
HEADER, PANEL_HEAD, PANEL_GAP, AXIS_HEIGHT = 96, 40, 22, 48
COLOURS = {
    "forward": "#4c78a8",
    "backward": "#e8964a",
    "wait": "url(#wait)",
    "optimizer": "#54a24b",
    "bucket": "#8a6bbd",
}
LEGEND = [
    ("forward", "forward"),
    ("backward", "backward"),
    ("wait", "waits for communication"),
    ("optimizer", "optimizer"),
    ("bucket", "gradient bucket on its way (all-reduce)"),
]
SPACED = 'font-family="Helvetica, Arial, sans-serif"'


def compute_spans(step: dict) -> list[tuple[str, int, int]]:
    """(kind, begin, end) of one rank's step in ns, in order of time.

    Backward waits while it is held inside an all-reduce call, and from the end of the last such
    call on: by then every gradient has been computed.
    """
    begin, forward_end, backward_end, end = step["edges"]
    spans, reached = [("forward", begin, forward_end)], forward_end
    for _, _, issue, issued, _ in sorted(step["buckets"], key=lambda bucket: bucket[2]):
        spans += [("backward", reached, issue), ("wait", issue, issued)]
        reached = issued
    tail = "wait" if step["buckets"] else "backward"
    return [*spans, (tail, reached, backward_end), ("optimizer", backward_end, end)]


def rows_of(buckets: list) -> list[tuple[int, list]]:
    """(row, bucket) pairs such that buckets on their way at the same time get different rows."""
    free_at, placed = [], []
    for bucket in sorted(buckets, key=lambda entry: entry[2]):
        issue, done = bucket[2], bucket[4]
        row = next((i for i, until in enumerate(free_at) if until <= issue), len(free_at))
        free_at[row : row + 1] = [done]
        placed.append((row, bucket))
    return placed


def origin(panel: dict) -> int:
    """The moment at which the first rank begins the step (ns): the panel's time zero."""
    return min(record["steps"][panel["step"]]["edges"][0] for record in panel["run"])


def length_ms(panel: dict) -> float:
    """Milliseconds from the panel's time zero until the last rank ends the step."""
    ends = [record["steps"][panel["step"]]["edges"][-1] for record in panel["run"]]
    return (max(ends) - origin(panel)) / 1e6


def size_text(byte_count: int) -> str:
    """Bytes as a person writes them."""
    return f"{byte_count / 1e6:.1f} MB" if byte_count >= 1e5 else f"{byte_count / 1e3:.1f} kB"


def chrome_trace(panels: list[dict], about: dict) -> str:
    """The panels as Chrome trace JSON (chrome://tracing, Perfetto); times in microseconds."""
    events = []
    for number, panel in enumerate(panels):
        zero = origin(panel)
        for record in panel["run"]:
            rank, step = record["rank"], record["steps"][panel["step"]]
            pid = 100 * number + rank
            name = {"name": f"{panel['label']} rank {rank}"}
            events.append({"name": "process_name", "ph": "M", "pid": pid, "args": name})
            spans = [(kind, 0, begin, end, {}) for kind, begin, end in compute_spans(step)]
            for row, (index, byte_count, issue, issued, done) in rows_of(step["buckets"]):
                more = {"bytes": byte_count, "call_returned_us": (issued - zero) / 1e3}
                spans.append((f"bucket {index}", 1 + row, issue, done, more))
            for kind, thread, begin, end, args in spans:
                events.append({
                    "name": kind, "cat": "communication" if thread else "compute", "ph": "X",
                    "pid": pid, "tid": thread, "ts": (begin - zero) / 1e3,
                    "dur": (end - begin) / 1e3, "args": args,
                })
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about})


class Canvas:
    """Collects SVG elements; x positions are given in ms, y positions in pixels."""

    def __init__(self, span_ms: float):
        self.px_per_ms = (WIDTH - LEFT - RIGHT) / span_ms
        self.parts: list[str] = []

    def x(self, ms: float) -> float:
        """Pixel of a time (ms)."""
        return LEFT + ms * self.px_per_ms

    def text(self, x: float, y: float, words: str, size=12, fill="#333", more="") -> None:
        """One line of text whose baseline starts at (x, y) pixels."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" {more}>'
            f"{escape(words)}</text>"
        )

    def box(self, begin_ms: float, end_ms: float, y: float, height: float, kind: str, tip: str,
            label: str = "") -> None:
        """A span with a tool tip, and a label where it fits."""
        width = max((end_ms - begin_ms) * self.px_per_ms, 0.8)
        self.parts.append(
            f'<rect x="{self.x(begin_ms):.2f}" y="{y:.1f}" width="{width:.2f}" '
            f'height="{height:.1f}" rx="{min(2.5, width / 4):.1f}" fill="{COLOURS[kind]}" '
            f'stroke="#fff" stroke-width="{0.7 if width > 4 else 0}">'
            f"<title>{escape(tip)}</title></rect>"
        )
        if label and width > 6.6 * len(label) + 8:
            middle, baseline = self.x(begin_ms) + width / 2, y + height / 2 + 4
            fill = "#555" if kind == "wait" else "#fff"
            self.text(middle, baseline, label, 11, fill, 'text-anchor="middle"')


def rank_height(panel: dict, record: dict) -> float:
    """Pixels that one rank's pair of lanes takes."""
    rows = [row for row, _ in rows_of(record["steps"][panel["step"]]["buckets"])]
    return COMPUTE_HEIGHT + LANE_GAP + ROW_HEIGHT * (1 + max(rows, default=0))


def panel_height(panel: dict) -> float:
    """Pixels from a panel's heading to the end of its last lane."""
    lanes = sum(rank_height(panel, record) + RANK_GAP for record in panel["run"])
    return PANEL_HEAD + lanes


def draw_rank(canvas: Canvas, panel: dict, record: dict, top: float) -> None:
    """One rank: its compute lane, and below it one box per bucket."""
    zero, step = origin(panel), record["steps"][panel["step"]]
    canvas.text(28, top + 20, f"rank {record['rank']}", 13, "#222", 'font-weight="600"')
    canvas.text(LEFT - 10, top + 19, "compute", 10, "#777", 'text-anchor="end"')
    spans = compute_spans(step)
    for kind, begin, end in spans:
        # One label per kind is enough: on its longest piece.
        longest = all(end - begin >= e - b for other, b, e in spans if other == kind)
        first, last = (begin - zero) / 1e6, (end - zero) / 1e6
        tip = f"{kind}: {last - first:.2f} ms"
        canvas.box(first, last, top, COMPUTE_HEIGHT, kind, tip,
                   kind if longest else "")
    rows_top = top + COMPUTE_HEIGHT + LANE_GAP
    canvas.text(LEFT - 10, rows_top + 12, "all-reduce", 10, "#777", 'text-anchor="end"')
    for row, (index, byte_count, issue, _, done) in rows_of(step["buckets"]):
        first, last = (issue - zero) / 1e6, (done - zero) / 1e6
        tip = f"bucket {index}: {byte_count} bytes, {last - first:.2f} ms"
        canvas.box(first, last, rows_top + row * ROW_HEIGHT, ROW_HEIGHT - 1, "bucket", tip,
                   size_text(byte_count))


def tick_ms(span_ms: float) -> float:
    """Distance of the axis' ticks (ms): a round number that gives about ten of them."""
    return next((step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
                 if span_ms / step <= 14), 1000)


def grid(canvas: Canvas, span_ms: float, top: float, bottom: float) -> list[str]:
    """The grid lines of one panel, which belong behind its boxes."""
    tick = tick_ms(span_ms)
    xs = [canvas.x(i * tick) for i in range(int(span_ms / tick) + 1)]
    return [f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="#e0e0e6"/>' for x in xs]


def draw_axis(canvas: Canvas, span_ms: float, bottom: float) -> None:
    """Labels the axis below the panels."""
    tick = tick_ms(span_ms)
    for i in range(int(span_ms / tick) + 1):
        x, label = canvas.x(i * tick), f"{i * tick:g}"
        canvas.text(x, bottom + 17, label, 11, "#555", 'text-anchor="middle"')
    middle = (LEFT + WIDTH - RIGHT) / 2
    canvas.text(middle, bottom + 36, "ms since the first rank began the step", 11, "#555",
                'text-anchor="middle"')


def draw_header(canvas: Canvas, title: str, subtitle: str) -> None:
    """Title, provenance and legend."""
    canvas.text(28, 36, title, 19, "#111", 'font-weight="700"')
    canvas.text(28, 57, subtitle, 12, "#555")
    x = 28.0
    for kind, words in LEGEND:
        canvas.parts.append(
            f'<rect x="{x:.0f}" y="70" width="14" height="14" rx="2.5" fill="{COLOURS[kind]}"/>'
        )
        canvas.text(x + 20, 81.5, words, 12)
        x += 44 + 6.2 * len(words)


def svg(panels: list[dict], title: str, subtitle: str) -> str:
    """The whole picture."""
    span_ms = 1.01 * max(length_ms(panel) for panel in panels)
    canvas = Canvas(span_ms)
    draw_header(canvas, title, subtitle)
    top, cards = HEADER, []
    for panel in panels:
        height = panel_height(panel)
        cards.append(
            f'<rect x="14" y="{top:.0f}" width="{WIDTH - 28}" height="{height:.0f}" rx="8" '
            f'fill="#f7f7fa"/>'
        )
        cards += grid(canvas, span_ms, top + PANEL_HEAD - 6, top + height)
        canvas.text(28, top + 25, panel["label"], 15, "#111", 'font-weight="700"')
        canvas.text(LEFT, top + 25, panel["note"], 12, "#555")
        y = top + PANEL_HEAD
        for record in panel["run"]:
            draw_rank(canvas, panel, record, y)
            y += rank_height(panel, record) + RANK_GAP
        top += height + PANEL_GAP
    bottom = top - PANEL_GAP + 4
    draw_axis(canvas, span_ms, bottom)
    height = bottom + AXIS_HEIGHT
    wait = (
        '<defs><pattern id="wait" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" fill="#e6e1d8"/>'
        '<path d="M0 0V6" stroke="#b9b0a0" stroke-width="2"/></pattern></defs>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}" '
        f'viewBox="0 0 {WIDTH} {height:.0f}" {SPACED}>{wait}'
        f'<rect width="100%" height="100%" fill="#fff"/>'
    )
    return "\n".join([head, *cards, *canvas.parts, "</svg>"]) + "\n"
