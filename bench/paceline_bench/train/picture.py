"""The last step of every rank as an SVG: forward, backward, and the exchange with the update."""

from html import escape

WIDTH, LEFT, RIGHT, HEAD, FOOT, ROW, GAP = 1000, 90, 20, 70, 30, 26, 10
PARTS = (("forward", "#4c78a8"), ("backward", "#e8964a"), ("exchange and update", "#8a6bbd"))


def svg(ranks, title):
    """`ranks`: {"rank", "edges"} of each, edges in seconds of one clock."""
    return stacked([(title, ranks)])


def stacked(panels):
    """One picture of several (title, ranks), below each other, each from its own begin on, all with
    one scale."""
    span = max(one["edges"][-1] - begin_of(ranks) for _, ranks in panels for one in ranks) or 1.0
    parts, top = [], 0
    for title, ranks in panels:
        body, height = panel(ranks, title, span)
        parts.append(f'<g transform="translate(0 {top})">{body}</g>')
        top += height
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
            f'font-family="Helvetica, Arial, sans-serif"><rect width="100%" height="100%" '
            f'fill="#fff"/>' + "\n".join(parts) + "</svg>\n")


def begin_of(ranks):
    """Time at which the first rank began the step."""
    return min(one["edges"][0] for one in ranks)


def panel(ranks, title, span):
    """(elements, height) of one run."""
    zero = begin_of(ranks)
    scale = (WIDTH - LEFT - RIGHT) / span
    bottom = HEAD + len(ranks) * (ROW + GAP)
    parts = [f'<text x="16" y="26" font-size="16">{escape(title)}</text>']
    for place, (name, colour) in enumerate(PARTS):
        x = 16 + 190 * place
        parts.append(f'<rect x="{x}" y="38" width="14" height="14" fill="{colour}"/>'
                     f'<text x="{x + 20}" y="50" font-size="12">{name}</text>')
    for row, one in enumerate(ranks):
        y = HEAD + row * (ROW + GAP)
        parts.append(f'<text x="16" y="{y + 17}" font-size="12">rank {one["rank"]}</text>')
        for (name, colour), begin, end in zip(PARTS, one["edges"], one["edges"][1:]):
            parts.append(
                f'<rect x="{LEFT + (begin - zero) * scale:.2f}" y="{y}" height="{ROW}" '
                f'width="{max((end - begin) * scale, 0.5):.2f}" fill="{colour}">'
                f"<title>{name}: {1e3 * (end - begin):.2f} ms</title></rect>")
    for tick in range(6):
        x = LEFT + tick * span * scale / 5
        parts.append(f'<text x="{x:.1f}" y="{bottom + 14}" font-size="11" text-anchor="middle">'
                     f"{1e3 * tick * span / 5:.3g} ms</text>")
    return "\n".join(parts), bottom + FOOT
