"""KVStore: arrays by key, summed over all ranks while the rest of the program goes on.

    store = paceline.kvstore.create("auto")
    store.init([0, 1], [weights, bias])             # rank 0's values, everywhere
    for batch in batches:
        ...                                         # gradients of this rank
        store.push([0, 1], [dweights, dbias])       # sums over all ranks, in the background
        store.pull([0, 1], [dweights, dbias])
        store.wait()

Names and types are MXNet's with those of A. Mamidala, "Efficient Embedding of MPI Collectives in
MXNET DAGs for scaling Deep Learning" (arXiv 1802.06949).
"""

from typing import Any

from paceline.errors import UsageError
from paceline.kvstore.auto import Auto
from paceline.kvstore.concom import ConCom
from paceline.kvstore.depcha import DepCha
from paceline.kvstore.funnel import Funnel
from paceline.kvstore.store import KVStore

__all__ = ["TYPES", "KVStore", "create"]

TYPES: dict[str, type[KVStore]] = {kind.type: kind for kind in (Auto, Funnel, ConCom, DepCha)}


def create(type: str, comm: Any = None, **options: Any) -> KVStore:
    """Makes a KVStore of all ranks of `comm` (None: paceline.init()). Collective.

    auto     ours: keys in buckets, in the order in which gradients become ready, several sums
             under way; choose it unless you compare. Options: `outstanding` (4), `show` (prints the
             plan)
    funnel   the calling thread makes each allreduce when the gradient is there, and waits for it
    concom   several communicators, keys hashed onto them. Options: `communicators` (4), and
             `outstanding` (8): this many sums may be under way, then push() waits for a barrier
    depcha   sums run in the background, in the order of the pushes, one after the other; local
             sums, the exchange and copies back of different keys overlap

    Every type takes `engine`, a paceline.engine.Engine to share, whose tasks' arrays are waited for
    before they are exchanged, and `op`, by which the ranks' values are combined (sum). Raises
    UsageError for another type or option.
    """
    try:
        kind = TYPES[type]
    except (KeyError, TypeError):
        raise UsageError(
            f"kvstore: there is no type {type!r}; types are {', '.join(TYPES)}."
        ) from None
    try:
        return kind(comm, **options)
    except TypeError as error:
        raise UsageError(f"kvstore: {type}: {error}") from error
