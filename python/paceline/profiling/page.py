"""A profile as one HTML file with its pictures in it."""

from pathlib import Path

from paceline.profiling import pictures
from paceline.profiling.terminal import duration, factor, heading, percent
from paceline.report.page import check_extra, made_here


def render(title, found, calls):
    """The HTML text of a Summary and the Calls that it is of."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("paceline.profiling", "."), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"time": duration, "factor": factor, "percent": percent}
    return environment.get_template("page.html").render(
        title=title, found=found, heading=heading(found).plain,
        sites=[row for row in found.sites if row["site"]],
        pictures=pictures.all_of(found, calls), provenance=made_here())


def write(title, found, calls, file):
    """Writes the page. Raises UsageError where what draws is not installed."""
    check_extra()
    Path(file).write_text(render(title, found, calls), encoding="utf-8")
