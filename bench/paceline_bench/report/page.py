"""A report as one HTML file with its pictures in it, and the CSV beside it."""

import re
from pathlib import Path

from paceline.profiling.page import made_here

from paceline_bench.report import figures, tables


def origins(parts):
    """(models, records) of all lines, each once."""
    found = dict.fromkeys(line.origin for figure in parts for panel in figure.panels
                          for line in panel.lines)
    return ([origin for origin in found if origin.kind != "measured"],
            [origin for origin in found if origin.kind == "measured"])


def code(text):
    """HTML of a text: `words` become code."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def number(value):
    """268,435,456, or 13.47: no exponents."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def render(title, about, parts, csv_name, sources=(), rows=()):
    """The HTML text; `parts`: Figures, `rows`: verdicts."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("paceline_bench.report", "."), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"code": code, "number": number}
    models, records = origins(parts)
    drawn = [(figure, figures.to_svg(figure) or figure.picture, table_of(figure))
             for figure in parts]
    first = next((at for at, (_, picture, _) in enumerate(drawn) if picture), 0)
    return environment.get_template("page.html").render(
        title=title, about=about, sources=sources, rows=rows, csv=csv_name, models=models,
        records=records, provenance=made_here(), first=drawn[first : first + 1],
        others=drawn[:first] + drawn[first + 1 :])


def table_of(figure):
    """The best rate of each line, and its fraction of the bound."""
    found = []
    for panel in figure.panels if figure.drawn != "ratios" else ():
        for line in panel.lines:
            if not any(point.mb_per_s for point in line.points):
                continue  # not about how fast messages are
            best = max(line.points, key=lambda point: point.mb_per_s)
            bound = panel.bounds.get(panel.across(best))
            found.append({"panel": panel.title, "line": line.label, "kind": line.kind,
                          "ranks": best.ranks, "bytes": best.bytes, "rate": best.mb_per_s,
                          "fraction": bound / best.seconds if bound else None})
    return found


def write(title, about, parts, file, sources=(), rows=()):
    """The page, and the table beside it; returns both names."""
    page = Path(file)
    table = page.with_suffix(".csv")
    tables.write(parts, table)
    page.write_text(render(title, about, parts, table.name, sources, rows), encoding="utf-8")
    return page, table
