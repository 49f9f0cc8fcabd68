"""Steps in a row between nodes: types of a KVStore and DDP's buckets, way against way."""

from paceline_bench.report import paired
from paceline_bench.report.paired import words_of
from paceline_bench.report.verdicts import beyond, judged

# Pairs of ways that are compared.
CHAINED, NUMBERED = "depcha:numbered", "auto:numbered"
READY = "auto:ready"
PAIRS = ((CHAINED, "funnel:numbered"), (CHAINED, "concom:numbered"), (NUMBERED, CHAINED),
         (READY, "depcha:ready"), (READY, "ddp:paceline"), (READY, "ddp:gloo"), (READY, "ddp:mpi"))
HOLDS = 0.999   # least ratio of speeds that counts as equally fast


def compared(files):
    """The paired.Compared of all files of `paceline train replay`."""
    for file in files:
        if file.is_replay:
            yield from paired.compared(file.content, file.network, file.origin.peer, PAIRS)


def figure(files, panels, missing):
    """The paired.Paired of files; `panels`: the times of each."""
    found = tuple(compared(files))
    return paired.Paired(
        "replay", "steps in a row between nodes",
        "Beyond the documents: the time of a step of recorded gradients in the lab. The dashed "
        "line is what the best way would take with perfect links. Ratios are of times of the same "
        "launch; a verdict takes ten.",
        tuple(panels), "" if panels else missing, drawn="bars",
        table=paired.table(found), compared=found)


def gains(told):
    """Times as fast, of some Compared."""
    return [one.gain for one in told]


def outcomes(found):
    """Outcomes for the documents' order, and beyond it for each network."""
    def those(*pairs, network=None):
        return [one for one in found if (one.way, one.other) in pairs
                and network in (None, one.network)]

    def ours(network, others, *pairs):
        if told := those(*pairs, network=network):
            said = f"{network}: auto is {words_of(gains(told))} as fast as {others}"
            verdicts = ", ".join(dict.fromkeys(one.word for one in told))
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
