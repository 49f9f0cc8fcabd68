"""The table on a report's page: published claims, the cells that they are about, one word each.

One rule serves all pages. A claim is data (claims.py); a page hands in cells, which are numbers.
A number is judged as it is printed, so that the word and the number cannot disagree.
"""

import math
from dataclasses import dataclass

REPRODUCED, DIRECTION, NOT_REPRODUCED = "reproduced", "in direction only", "not reproduced"
BEYOND, NOT_MEASURED, ELSEWHERE = "beyond", "not measured", "elsewhere"
MOST_LISTED = 4  # cells of an outcome; of more, the least and the most


@dataclass(frozen=True)
class Source:
    """A publication."""

    authors: str
    title: str
    where: str
    year: int
    verb: str = "published"  # or asked

    @property
    def words(self):
        """One line, for the top of a page."""
        return f"{self.authors}: {self.title}. {self.where}, {self.year}."

    @property
    def short(self):
        """Wang 2016."""
        return f"{self.authors.split(',')[0].split()[-1]} {self.year}"


@dataclass(frozen=True)
class Claim:
    """A published claim. A cell has to lie above `above` or below `below`, which is the direction,
    and from `low` to `high`, which is the magnitude as printed."""

    source: Source
    says: str
    quantity: str     # "speed of the ring in segments, by the whole ring"
    printed: str = "the direction alone"
    above: float | None = None
    below: float | None = None
    low: float = -math.inf
    high: float = math.inf
    judged: str = "each"  # cell, or the "most" or the "mean" of all, against low and high
    digits: int = 2
    fitted: str = ""      # parameter of the model that was chosen: then no model can confirm it
    ours: bool = False    # this library beside the published system
    elsewhere: str = ""   # the page that has it
    note: str = ""        # what a reader should know about the comparison

    def holds(self, cell):
        """True if the direction holds, of measured launches with their interval."""
        value = round(cell.value if cell.low is None else cell.low, self.digits)
        return (self.above is None or value > self.above) and (
            self.below is None or value < self.below)

    def outside(self, value):
        """Distance from the published range, 0 in it."""
        value = round(value, self.digits)
        return max(self.low - value, value - self.high, 0)


@dataclass(frozen=True)
class Cell:
    """A number that a claim is about. `low`, `high`: the interval of its median, launch by
    launch."""

    kind: str    # simulated, emulated, measured or counted
    where: str   # "8 ranks, 1 GiB"
    value: float
    low: float | None = None
    high: float | None = None
    group: str = ""  # cells of a group have a verdict of their own

    def shown(self, digits):
        """Its place, the number, and its interval."""
        limits = "" if self.low is None else f" ({self.low:.{digits}f} to {self.high:.{digits}f})"
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.value:.{digits}f}{limits}"


@dataclass(frozen=True)
class Outcome:
    """A verdict: its kind of cells, their numbers, the word, and a reason."""

    kind: str
    found: str
    word: str
    why: str = ""

    @property
    def verdict(self):
        """The word, with the reason."""
        return f"{self.word} ({self.why})" if self.why else self.word


@dataclass(frozen=True)
class Row:
    """A claim and its outcomes; `name`: its figure or table."""

    name: str
    claim: Claim
    outcomes: tuple


def verdict(claim, cells):
    """(word, reason) of cells of one kind."""
    if claim.elsewhere:
        return ELSEWHERE, claim.elsewhere
    if not cells:
        return NOT_MEASURED, claim.note
    values = [cell.value for cell in cells]
    asked = {"each": values, "most": [max(values)], "mean": [sum(values) / len(values)]}
    off = max(asked[claim.judged], key=claim.outside)
    wrong = [cell for cell in cells if not claim.holds(cell)]
    if claim.above is None is claim.below and claim.outside(off):
        wrong = [max(cells, key=lambda cell: claim.outside(cell.value))]
    if wrong:
        worst = max(wrong, key=lambda cell: cell.value if claim.above is None else -cell.value)
        return NOT_REPRODUCED, worst.shown(claim.digits)
    if claim.ours:
        launches = all(cell.low is not None for cell in cells)
        return (BEYOND, "") if launches else (NOT_MEASURED, "fewer than ten launches")
    if claim.fitted and cells[0].kind != "measured":
        return NOT_MEASURED, f"fitted: {claim.fitted}"
    if claim.outside(off):
        return DIRECTION, f"{off:.{claim.digits}f}; {claim.source.verb}: {claim.printed}"
    return REPRODUCED, ""


def found_of(claim, cells):
    """The numbers of cells, in words."""
    if len(cells) <= MOST_LISTED:
        return "; ".join(cell.shown(claim.digits) for cell in cells)
    least, most = (pick(cells, key=lambda cell: cell.value) for pick in (min, max))
    mean = sum(cell.value for cell in cells) / len(cells)
    average = f"; on average {mean:.{claim.digits}f}" if claim.judged == "mean" else ""
    return (f"{len(cells)} cells, least {least.shown(claim.digits)}; most "
            f"{most.shown(claim.digits)}{average}")


def rows(claims, cells):
    """A Row for each of {key: Claim}; `cells`: {key: Cells}, of which no key may be unknown."""
    unknown = set(cells) - set(claims)
    if unknown:
        raise KeyError(f"no claim is called {', '.join(sorted(unknown))}")
    found = []
    for key, claim in claims.items():
        groups = {}
        for cell in cells.get(key, ()):
            groups.setdefault((cell.kind, cell.group), []).append(cell)
        outcomes = [
            Outcome(kind, f"{group}: {found_of(claim, some)}" if group else found_of(claim, some),
                    *verdict(claim, some)) for (kind, group), some in groups.items()]
        name = f"{claim.source.short}, {key.partition(':')[0]}"
        found.append(Row(name, claim,
                         tuple(outcomes) or (Outcome("", "", *verdict(claim, ())),)))
    return found


def print_to(console, table):
    """The same table in a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    out = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("", "the document", "here", "", "verdict"):
        out.add_column(name)
    for row in table:
        said = [row.name, row.claim.says]
        for outcome in row.outcomes:
            cells = (*said, outcome.found, outcome.kind, outcome.verdict)
            out.add_row(*(Text(cell) for cell in cells))
            said = ["", ""]
    console.print(out)
