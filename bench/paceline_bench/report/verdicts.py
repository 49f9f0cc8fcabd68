"""The table on top of a report: a document's claims, figure by figure, and their outcomes here.

A row is a Claim. It has an Outcome each for what was simulated and for what was measured: the
finding, in numbers, and one of three words.
"""

from dataclasses import dataclass

from paceline.errors import UsageError

REPRODUCED, NOT_REPRODUCED, BEYOND = "reproduced", "not reproduced", "beyond"
WORDS = (REPRODUCED, NOT_REPRODUCED, BEYOND)
KINDS = ("simulated", "emulated", "measured", "counted", "neither")


@dataclass(frozen=True)
class Outcome:
    """The finding for a claim, in one way. `why` explains what was not reproduced."""

    kind: str  # one of KINDS
    found: str
    word: str  # one of WORDS
    why: str = ""

    def __post_init__(self):
        if self.kind not in KINDS or self.word not in WORDS:
            raise UsageError(f"report: an outcome is {', '.join(KINDS)} and says "
                             f"{', '.join(WORDS)}; this one is {self.kind!r}, {self.word!r}.")
        if self.word == NOT_REPRODUCED and not self.why:
            raise UsageError(f"report: {self.found!r} is not reproduced, and nothing says why.")

    @property
    def verdict(self):
        """The word, with the reason."""
        return f"{self.word} ({self.why})" if self.why else self.word


@dataclass(frozen=True)
class Claim:
    """A row. `fitted`: a parameter of the model that was chosen to agree with the document, and so
    proves nothing."""

    name: str  # "figure 3", "table 2": as the document counts
    claim: str
    outcomes: tuple
    fitted: str = ""


def judged(kind, found, holds, why=""):
    """The Outcome of a claim that holds or does not; `why` is for the second case."""
    return Outcome(kind, found, REPRODUCED) if holds else Outcome(
        kind, found, NOT_REPRODUCED, why)


def beyond(kind, found):
    """The Outcome of something that the document does not have."""
    return Outcome(kind, found, BEYOND)


def left_out(why):
    """The Outcome of a figure that this report lacks."""
    return Outcome("neither", "nothing", NOT_REPRODUCED, why)


def print_to(console, claims):
    """The same table in a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, pad_edge=False)
    for name in ("", "the document", "here", "", "verdict"):
        table.add_column(name)
    for claim in claims:
        said = [claim.name, claim.claim]
        for outcome in claim.outcomes:
            cells = (*said, outcome.found, outcome.kind, outcome.verdict)
            table.add_row(*(Text(cell) for cell in cells))
            said = ["", ""]
    console.print(table)
