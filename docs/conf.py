"""Settings of Sphinx, which `./dev docs --site` runs: the pages of the tree, where they lie in it.

README.md is the first page, with NAVIGATION behind it. A page that is not in there fails the build,
as a dead link does.
"""

import re

project = "Paceline"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "bench/README.md", "tests/*.md"]
exclude_patterns = [".venv*", "build", "out", "src", "python", "tools"]
myst_heading_anchors = 4
highlight_language = "none"
default_role = "code"
autodoc_member_order = "bysource"
html_theme = "furo"
html_title = "Paceline"
html_copy_source = html_show_sphinx = False

GUIDE = "start pytorch frameworks several-nodes mpi-programs without-torch c when-it-hangs see " \
        "performance late-ranks your-own-algorithm".split()
NAVIGATION = {
    "Guide": [f"docs/guide/{name}" for name in GUIDE],
    "Reference": ["docs/options", "docs/api", "docs/algorithms/README", "docs/GLOSSARY",
                  "docs/conformance", "docs/reliability", "CHANGELOG"],
    "Inside": ["docs/ARCHITECTURE", "HACKING", "tests/README", "tests/FLAKY", "bench/README",
               "docs/design/README"],
}
BELOW = {"docs/algorithms/README": "[a-z]*", "docs/design/README": "0*"}  # their own pages


def toctree(pages, *options):
    lines = [":hidden:", ":maxdepth: 1", *options, *pages]
    return "\n\n```{toctree}\n" + "\n".join(lines) + "\n```\n"


def add_navigation(app, name, text):
    if name == root_doc:
        text[0] += "".join(toctree(pages, f":caption: {title}")
                           for title, pages in NAVIGATION.items())
    elif name in BELOW:
        text[0] += toctree([BELOW[name]], ":glob:")


def as_text(app, what, name, thing, options, lines):
    """Docstrings are plain text with `code` and lists: indented rows keep their columns, signs mean
    themselves."""
    out = []
    for block in "\n".join(lines).split("\n\n"):
        rows = block.split("\n")
        at = next((n for n, row in enumerate(rows) if row.startswith(("  ", "- "))), len(rows))
        is_list = rows[at:] and rows[at].startswith("- ")
        if at < len(rows) and not is_list and not rows[at - 1].endswith(":"):
            at = 0   # a table
        out += [*map(escaped, rows[:at]), ""]
        if is_list:
            out += [*map(escaped, rows[at:]), ""]
        elif rows[at:]:
            out += ["::", "", *(f"  {row}" for row in rows[at:]), ""]
    lines[:] = out


def escaped(line):
    parts = line.split("`")
    parts[::2] = [re.sub(r"([*|]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def setup(app):
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", as_text)
