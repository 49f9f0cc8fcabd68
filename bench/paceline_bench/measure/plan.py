"""The plan of a benchmark."""

from dataclasses import asdict, dataclass, field, replace

import click
from paceline import _core

from paceline_bench.measure.links import Cluster
from paceline_bench.measure.variants import Variant


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
    arrival: str = ""  # arrival pattern, as paceline.patterns has it; empty: together
    batch: int = 0  # calls between two looks at the clock, natively; 0: by size

    def specification(self, folder):
        """The same as JSON for the ranks; `folder` is where they meet and leave their times."""
        spec = asdict(self)
        return {**spec, "folder": str(folder), "ceiling": self.ranks > 1 and not self.cluster}

    def parts(self):
        """This plan, cut where variants need processes with another environment."""
        by_environment = {}
        for variant in self.variants:
            by_environment.setdefault(tuple(variant.environment.items()), []).append(variant)
        return [replace(self, variants=some, environment={**self.environment, **dict(more)})
                for more, some in by_environment.items()]


def algorithms_of(collective, wanted):
    """Names for a list that may say auto and all; auto is the empty name."""
    # The buffers here are private: auto alone uses memory that ranks of a node share.
    rows = [row for row in _core.algorithms()
            if row["collective"] == collective and row["access"] != "symmetric"]
    known = [row["name"] for row in rows]
    every = [row["name"] for row in rows if row["access"] == "messages"]
    names = []
    for name in wanted:
        if name not in ("auto", "all", *known):
            raise click.UsageError(
                f"--algorithm: {collective} has no '{name}'; use auto, all, or some of "
                f"{', '.join(known)}.")
        names += ["", *every] if name == "all" else ["" if name == "auto" else name]
    return list(dict.fromkeys(names))


def cuts_of(words, option, least):
    """[(number of segments, bytes of one)] from words such as 4 and 4MiB; one of the two is 0."""
    cuts = []
    for word in words:
        try:
            cuts.append((int(word), 0) if word.isdigit() else (0, _core.parse_bytes(word)))
        except ValueError:
            cuts.append((-1, 0))
    if not all(size >= 1 or least <= count <= 4096 and size == 0 for count, size in cuts):
        raise click.UsageError(
            f"{option} is '{','.join(words)}'; it must be numbers from {least} to 4096, or sizes "
            "such as 4MiB.")
    return cuts


def peers_for(against, forms):
    """The variants of the peer; `forms`: (words of --peer-segments, True for --peer-ring)."""
    words, ring = forms
    if against != "mpi":
        return [Variant("torch:paceline"), Variant(f"torch:{against}")] if against else []
    return [Variant("mpi"),
            *(Variant("mpi", segments=count, segment_bytes=size, form="concurrent")
              for count, size in cuts_of(words, "--peer-segments", 1)),
            *([Variant("mpi", form="sendrecv_ring")] if ring else [])]


def variants_for(collective, knobs, against, shared=False, forms=((), False), transfers=False,
                 predict=""):
    """Each algorithm with each number of segments, in shared buffers the library's choice; then
    the peer, torch's with ours beside it. `transfers`: each of ours without arithmetic, too;
    `predict`: the choice under that PACELINE_PREDICT, too."""
    algorithms, segments, window, radix, blocks = knobs
    cuts = cuts_of(segments, "--segments", 0)
    names = algorithms_of(collective, algorithms)
    for name in names:
        _core.choose(collective, 2, 0, name, radix=radix, blocks=blocks)  # raises where it must
    variants = [
        Variant("paceline", name, count, window, radix, blocks, segment_bytes=size)
        for name in names for count, size in cuts
    ]
    if transfers:
        variants = [one for v in variants for one in (v, v.without_arithmetic())]
    if predict:
        variants.append(Variant("paceline", predict=predict))
    if shared:
        if not any(row["access"] == "symmetric" for row in _core.algorithms()
                   if row["collective"] == collective):
            raise click.UsageError(
                f"--shared: {collective} has no algorithm for shared buffers; leave it out.")
        variants.append(Variant("paceline", shared=True))
    return variants + peers_for(against, forms)
