"""The picture of a training step, as SVG: computing and transfers of each rank."""

from html import escape

from paceline.units import number, ticks

COLOURS = {"forward": "#4c78a8", "backward": "#e8964a", "waits for gradients": "#c9cdd4",
           "update": "#54a24b", "gradients on their way": "#8a6bbd"}  # fmt: skip
*STEP, ON_THEIR_WAY = COLOURS
WIDTH, LEFT, RIGHT, TOP, HEAD = 960, 84, 24, 78, 30
LANE, THIN, GAP = 24, 9, 10  # heights of what a rank computes, of what is on its way, of no ink


def picture(title, about, panels):
    """The SVG. A panel is a heading and, for each rank, the edges of its step (see Way.step) and
    the spans in which gradients were on their way, in seconds of one clock."""
    zeros = [min(edges[0] for edges, _ in ranks) for _, ranks in panels]
    span_s = max(edges[-1] - zero for zero, (_, ranks) in zip(zeros, panels) for edges, _ in ranks)
    pixels = (WIDTH - LEFT - RIGHT) / span_s
    bottom = TOP + sum(HEAD + len(ranks) * (LANE + THIN + GAP) for _, ranks in panels)
    parts = [text(LEFT, 30, title, 16)]
    for at, (kind, fill) in enumerate(COLOURS.items()):
        parts += [box(LEFT + 160 * at, 46, 12, 12, fill), text(LEFT + 18 + 160 * at, 57, kind)]
    for tick in ticks(span_s, 10):
        x = LEFT + pixels * tick
        parts += [box(x, TOP, 1, bottom - TOP, "#e0e0e6"),
                  text(x - 4, bottom + 16, number(1e3 * tick))]  # fmt: skip
    y = TOP
    for zero, (heading, ranks) in zip(zeros, panels):
        parts.append(text(LEFT, y + 20, heading, 13))
        y += HEAD
        for rank, (edges, spans) in enumerate(ranks):
            parts.append(text(16, y + 17, f"rank {rank}"))
            boxes = [(*row, y, LANE) for row in zip(STEP, edges, edges[1:])]
            boxes += [(ON_THEIR_WAY, *span, y + LANE + 1, THIN) for span in spans]
            for kind, start, end, top, height in boxes:
                x, width = LEFT + pixels * (start - zero), pixels * (end - start)
                tip = f"{kind}: {1e3 * (end - start):.2f} ms"
                parts.append(box(x, top, width, height, COLOURS[kind], tip))
            y += LANE + THIN + GAP
    parts.append(text(LEFT, bottom + 36, f"ms since the first rank began the step; {about}"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 48}" '
            'font-family="Helvetica, Arial, sans-serif">\n'
            + "\n".join([box(0, 0, WIDTH, bottom + 48, "#ffffff"), *parts]) + "\n</svg>\n")


def text(x, y, words, size=12):
    """A line of text."""
    return f'<text x="{x:.1f}" y="{y}" font-size="{size}" fill="#22272e">{escape(words)}</text>'


def box(x, y, width, height, fill, tip=""):
    """A rectangle, and what is shown when a pointer rests on it."""
    return (f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{fill}">'
            f"<title>{escape(tip)}</title></rect>")
