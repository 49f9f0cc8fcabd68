"""The table on top of a report: what a document claims, figure by figure, and what came out here.

A row is a Claim. Of what was simulated and of what was measured it has an Outcome each: what was
found, in numbers, and one of three words.
"""

from dataclasses import dataclass

from paceline.errors import UsageError

REPRODUCED, NOT_REPRODUCED, BEYOND = "reproduced", "not reproduced", "beyond"
WORDS = (REPRODUCED, NOT_REPRODUCED, BEYOND)
KINDS = ("simulated", "emulated", "measured", "counted", "neither")


@dataclass(frozen=True)
class Outcome:
    """What was found for a claim, in one way. `why` explains what was not reproduced."""

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
    """A row. `fitted`: which parameter of the model was chosen so that it agrees with the document,
    and so proves nothing."""

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
    """The Outcome of a figure that this report does not have."""
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
