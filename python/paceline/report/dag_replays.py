"""Steps in a row between nodes: way against way, by ratios of times of the same launch."""

from dataclasses import dataclass

from paceline.bench import statistics
from paceline.report.lines import Figure
from paceline.report.verdicts import beyond, judged

# Who is compared with whom.
CHAINED, NUMBERED = "depcha:numbered", "auto:numbered"
READY = "auto:ready"
PAIRS = ((CHAINED, "funnel:numbered"), (CHAINED, "concom:numbered"), (NUMBERED, CHAINED),
         (READY, "depcha:ready"), (READY, "ddp:paceline"), (READY, "ddp:gloo"), (READY, "ddp:mpi"))
HOLDS = 0.999   # times as fast, at least, where something is to be as fast
HEADINGS = ("network", "computing by communicating", "network links, MPI", "", "times as fast as",
            "", "95 %", "with perfect links", "launches", "verdict")


@dataclass(frozen=True)
class Compared:
    """One way beside another, in the launches of a file. `ratios`: its time by the other's."""

    model: str
    computing: float   # by communicating; None where a time was given
    network: str
    where: str         # the network and the MPI
    way: str
    other: str
    ratios: tuple
    perfect: float     # how many times as fast with perfect links

    @property
    def gain(self):
        """Times as fast."""
        return 1 / statistics.summarize([[one] for one in self.ratios]).median

    @property
    def row(self):
        """Cells below HEADINGS."""
        interval, word = "", "no verdict"
        if len(self.ratios) >= statistics.LEAST_LAUNCHES:
            verdict = statistics.judge(self.ratios)
            interval, word = f"{1 / verdict.high:.3f} to {1 / verdict.low:.3f}", verdict.word
        return (self.model, "" if self.computing is None else f"{self.computing:g}", self.where,
                self.way, self.other, f"{self.gain:.3f}", interval, f"{self.perfect:.3f}",
                str(len(self.ratios)), word)


def compared(files):
    """The Compared of all files of `paceline train replay`."""
    for file in files:
        if not file.is_replay:
            continue
        peer = file.origin.peer.split(",")[0]
        where = f"{file.network}, {peer}" if peer else file.network
        for model, bounds in file.content["bounds"].items():
            times = [launch["times"].get(model, {}) for launch in file.content["launches"]]
            for way, other in PAIRS:
                ratios = tuple(one[way] / one[other] for one in times
                               if way in one and other in one)
                if ratios:
                    yield Compared(model, file.plan["ratio"], file.network, where, way, other,
                                   ratios, bounds[other] / bounds[way])


@dataclass(frozen=True)
class Replays(Figure):
    """The figure, which remembers what its table compares."""

    compared: tuple = ()


def figure(files, panels, missing):
    """The Replays of files; `panels`: the times of each."""
    found = tuple(compared(files))
    return Replays(
        "replay", "steps in a row between nodes",
        "Beyond the documents: the time of a step of recorded gradients in the lab. The dashed "
        "line is what the best way would take with perfect links. Ratios are of times of the same "
        "launch; a verdict takes ten.",
        tuple(panels), "" if panels else missing, drawn="bars",
        table=(HEADINGS, *(one.row for one in found)) if found else (), compared=found)


def words_of(gains):
    """1.02 to 1.25 times."""
    return f"{min(gains):.2f} to {max(gains):.2f} times"


def gains(told):
    """Times as fast, of some Compared."""
    return [one.gain for one in told]


def outcomes(found):
    """What the Compared say of the documents' order, and beyond it on each network."""
    def those(*pairs, network=None):
        return [one for one in found if (one.way, one.other) in pairs
                and network in (None, one.network)]

    def ours(network, others, *pairs):
        if told := those(*pairs, network=network):
            said = f"{network}: auto is {words_of(gains(told))} as fast as {others}"
            verdicts = ", ".join(dict.fromkeys(one.row[-1] for one in told))
            yield beyond("measured", said) if min(gains(told)) >= HOLDS else judged(
                "measured", said, False, "the document has neither; launch by launch: " + verdicts)

    if chained := gains(those((CHAINED, "funnel:numbered"), (CHAINED, "concom:numbered"))):
        yield judged("measured", f"depcha is {words_of(chained)} as fast as funnel and concom, "
                     "keys as numbered", min(chained) >= HOLDS, "its calls follow one another, so "
                     "that links are idle between them")
    for network in dict.fromkeys(one.network for one in found):
        yield from ours(network, "depcha", (NUMBERED, CHAINED), (READY, "depcha:ready"))
        yield from ours(network, "DDP's buckets over paceline, gloo and the MPI",
                        *((READY, f"ddp:{over}") for over in ("paceline", "gloo", "mpi")))
