"""What a benchmark is to measure."""

from dataclasses import asdict, dataclass, field

import click

from paceline import _core
from paceline.bench.links import Cluster
from paceline.bench.variants import Variant


@dataclass
class Plan:
    """Everything that the ranks and the report need to know."""

    collective: str
    sizes: list  # bytes of the full message
    ranks: int
    dtype: str
    op: str
    root: int
    repeats: int  # 0: by size
    pin: bool
    variants: list
    peer: str = ""  # the label of the variant that the others are compared with
    mpiexec: tuple = ()  # the command that starts the ranks; empty: `paceline run`
    environment: dict = field(default_factory=dict)  # of the ranks, besides this process's own
    separate: bool = False  # allreduce and reduce with an output of their own
    native: bool = False  # timed in the core; else through Python
    cluster: Cluster | None = None  # ranks are on its nodes; None: on this machine
    batch: int = 0  # calls between two looks at the clock, natively; 0: by size

    def specification(self, folder):
        """The same as JSON for the ranks; `folder` is where they meet and leave their times."""
        spec = asdict(self)
        return {**spec, "folder": str(folder), "ceiling": self.ranks > 1 and not self.cluster}


def algorithms_of(collective, wanted):
    """Names for a list that may say auto and all; auto is the empty name."""
    # The buffers here are private ones. What ranks of a node show each other is what auto takes.
    rows = [row for row in _core.algorithms()
            if row["collective"] == collective and not row["shared"]]
    known = [row["name"] for row in rows]
    every = [row["name"] for row in rows if not row["straight"]]
    names = []
    for name in wanted:
        if name not in ("auto", "all", *known):
            raise click.UsageError(
                f"--algorithm: {collective} has no '{name}'; use auto, all, or some of "
                f"{', '.join(known)}.")
        names += ["", *every] if name == "all" else ["" if name == "auto" else name]
    return list(dict.fromkeys(names))


def variants_for(collective, knobs, against, shared=False):
    """Each algorithm with each number of segments, in shared buffers what is chosen for them; then
    the peer, torch's with ours beside it."""
    algorithms, segments, window, radix, blocks = knobs
    try:
        counts = [int(count) for count in segments]
    except ValueError:
        counts = [-1]
    if not all(0 <= count <= 4096 for count in counts):
        raise click.UsageError(
            f"--segments is '{','.join(segments)}'; it must be numbers from 0 to 4096.")
    names = algorithms_of(collective, algorithms)
    for name in names:
        _core.choose(collective, 2, 0, name, radix=radix, blocks=blocks)  # raises where it must
    variants = [
        Variant("paceline", name, count, window, radix, blocks)
        for name in names for count in counts
    ]
    if shared:
        if not any(row["shared"] for row in _core.algorithms() if row["collective"] == collective):
            raise click.UsageError(
                f"--shared: {collective} has no algorithm for shared buffers; leave it out.")
        variants.append(Variant("paceline", shared=True))
    if against == "mpi":
        variants.append(Variant("mpi"))
    elif against:
        variants += [Variant("torch:paceline"), Variant(f"torch:{against}")]
    return variants
