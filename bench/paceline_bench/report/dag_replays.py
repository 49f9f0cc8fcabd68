"""Steps in a row between nodes: types of a KVStore and DDP's buckets, way against way."""

from paceline_bench.report import paired

# Pairs of ways that are compared.
CHAINED, NUMBERED = "depcha:numbered", "auto:numbered"
READY = "auto:ready"
PAIRS = ((CHAINED, "funnel:numbered"), (CHAINED, "concom:numbered"), (NUMBERED, CHAINED),
         (READY, "depcha:ready"), (READY, "ddp:paceline"), (READY, "ddp:gloo"), (READY, "ddp:mpi"))


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
        "Beyond the publications: the time of a step with recorded gradients in the lab. The "
        "dashed line is the time of the best way over perfect links. Ratios compare times of the "
        "same launch; a verdict takes ten launches.",
        tuple(panels), "" if panels else missing, drawn="bars",
        table=paired.table(found), compared=found)
