"""Way against way in files of `paceline train replay`, by ratios of times of the same launch."""

from dataclasses import dataclass

from paceline_bench.measure import statistics
from paceline_bench.report.lines import Figure
from paceline_bench.report.verdicts import Cell

HEADINGS = ("network", "computing by communicating", "network links, MPI", "", "times as fast as",
            "", "95 %", "with perfect links", "launches", "verdict")
NO_VERDICT = "no verdict"
DIGITS = 3


@dataclass(frozen=True)
class Compared:
    """One way beside another, in the launches of a file. `ratios`: its time by the other's."""

    model: str
    computing: float   # by communicating; None where a time was given
    network: str
    peer: str          # the MPI; may be empty
    way: str
    other: str
    ratios: tuple
    perfect: float     # speed as a multiple of the other's, with perfect links

    @property
    def gain(self):
        """Speed as a multiple."""
        return 1 / statistics.summarize([[one] for one in self.ratios]).median

    @property
    def interval(self):
        """Limits of the gain; None of too few launches."""
        if len(self.ratios) < statistics.LEAST_LAUNCHES:
            return None
        low, high = statistics.interval(self.ratios)
        return 1 / high, 1 / low

    @property
    def word(self):
        """Faster or slower, if the whole interval is, as printed."""
        if not self.interval:
            return NO_VERDICT
        low, high = (round(end, DIGITS) for end in self.interval)
        return "faster" if low > 1 else "slower" if high < 1 else "undecided"

    @property
    def cell(self):
        """The Cell of a claim: the speed, with its interval if there is one."""
        ratio = "" if self.computing is None else (
            f", computing {self.computing:g} x communicating")
        launches = "" if self.interval else f", {len(self.ratios)} launches"
        return Cell("measured", f"{self.model}{ratio}{launches}", self.gain,
                    *(self.interval or (None, None)), self.place)

    @property
    def place(self):
        """The network, and the MPI if there is one."""
        return f"{self.network}, {self.peer}" if self.peer else self.network

    @property
    def row(self):
        """Cells below HEADINGS."""
        interval = " to ".join(f"{end:.{DIGITS}f}" for end in self.interval or ())
        return (self.model, "" if self.computing is None else f"{self.computing:g}", self.place,
                self.way, self.other, f"{self.gain:.{DIGITS}f}", interval,
                f"{self.perfect:.{DIGITS}f}", str(len(self.ratios)), self.word)


@dataclass(frozen=True)
class Paired(Figure):
    """A Figure that remembers what its table compares."""

    compared: tuple = ()


def compared(content, network, peer, pairs):
    """The Compared of a file; `peer`: the MPI's version, `pairs`: of ways."""
    for model, bounds in content["bounds"].items():
        times = [launch["times"].get(model, {}) for launch in content["launches"]]
        for way, other in pairs:
            ratios = tuple(one[way] / one[other] for one in times if way in one and other in one)
            if ratios:
                yield Compared(model, content["plan"]["ratio"], network, peer.split(",")[0], way,
                               other, ratios, bounds[other] / bounds[way])


def table(found):
    """The rows of some Compared; empty for none."""
    return (HEADINGS, *(one.row for one in found)) if found else ()
