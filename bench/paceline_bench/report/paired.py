"""Way against way in files of `paceline train replay`, by ratios of times of the same launch."""

from dataclasses import dataclass

from paceline_bench.measure import statistics
from paceline_bench.report.lines import Figure
from paceline_bench.report.verdicts import Cell

HEADINGS = ("network", "computing by communicating", "network links, MPI", "", "times as fast as",
            "", "95 %", "with perfect links", "launches", "verdict")
NO_VERDICT = "no verdict"


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
    def verdict(self):
        """The statistics.Verdict; None of too few launches."""
        enough = len(self.ratios) >= statistics.LEAST_LAUNCHES
        return statistics.judge(self.ratios) if enough else None

    @property
    def word(self):
        """The word of the verdict."""
        return self.verdict.word if self.verdict else NO_VERDICT

    @property
    def cell(self):
        """The Cell of a claim: the speed, with its interval if there is one."""
        verdict = self.verdict
        low, high = (1 / verdict.high, 1 / verdict.low) if verdict else (None, None)
        ratio = "" if self.computing is None else (
            f", computing {self.computing:g} x communicating")
        launches = "" if verdict else f", {len(self.ratios)} launches"
        return Cell("measured", f"{self.model} against {self.other}{ratio}, {self.network}"
                    f"{launches}", self.gain, low, high, self.peer)

    @property
    def row(self):
        """Cells below HEADINGS."""
        verdict = self.verdict
        interval = f"{1 / verdict.high:.3f} to {1 / verdict.low:.3f}" if verdict else ""
        where = f"{self.network}, {self.peer}" if self.peer else self.network
        return (self.model, "" if self.computing is None else f"{self.computing:g}", where,
                self.way, self.other, f"{self.gain:.3f}", interval, f"{self.perfect:.3f}",
                str(len(self.ratios)), self.word)


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
