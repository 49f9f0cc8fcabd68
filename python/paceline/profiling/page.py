"""A profile as one HTML file with its pictures in it."""

import platform
from pathlib import Path

from paceline.errors import UsageError
from paceline.profiling import pictures
from paceline.profiling.terminal import duration, factor, heading, percent
from paceline.provenance import provenance, version_of

EXTRA = ("jinja2", "matplotlib")


def check_extra():
    """Raises UsageError if matplotlib is not installed."""
    try:
        for name in EXTRA:
            __import__(name)
    except ImportError as error:
        raise UsageError(f"report: {error.name} is not installed; pictures and pages need it. "
                         "pip install 'paceline[profile]'") from None


def made_here():
    """Date, machine, versions and command of this page."""
    found = provenance()
    versions = {"paceline": found["versions"]["paceline"], "python": platform.python_version(),
                **{name: version_of(name) for name in EXTRA}}
    machine = found["machine"]
    return {"date": found["date"], "command": found["command"],
            "machine": f"{machine['processor']}, {machine['cores_allowed']} of {machine['cores']} "
                       f"cores, {machine['system']}",
            "versions": ", ".join(f"{name} {version}" for name, version in versions.items())}


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
    """Writes the page. Raises UsageError if matplotlib is not installed."""
    check_extra()
    Path(file).write_text(render(title, found, calls), encoding="utf-8")
