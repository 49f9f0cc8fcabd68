"""KVStore: arrays by key, summed over all ranks in the background.

    store = paceline.kvstore.create("auto")
    store.init([0, 1], [weights, bias])             # all ranks get rank 0's values
    for batch in batches:
        ...                                         # gradients of this rank
        store.push([0, 1], [dweights, dbias])       # starts the sums over all ranks
        store.pull([0, 1], [dweights, dbias])
        store.wait()

The interface is that of MXNet, with the types of A. Mamidala, "Efficient Embedding of MPI
Collectives in MXNET DAGs for scaling Deep Learning" (arXiv 1802.06949).
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

    auto     the usual choice: puts keys into buckets, in the order in which gradients become ready,
             with several sums under way. Options: `outstanding`, the number of sums under way (4);
             `show`, True prints the plan on stderr of rank 0
    funnel   the calling thread waits for each gradient, and makes its allreduce
    concom   several communicators, one for each key by a hash. Options: `communicators`, their
             number (4); `outstanding`, the number of sums under way before push() waits for a
             barrier (8)
    depcha   sums run in the background, one after the other in the order of the pushes; local sums,
             exchanges and copies back of different keys overlap

    Every type takes two more options. `engine`: a paceline.engine.Engine to share; the store then
    waits for tasks that write its arrays. `op`: the operation that combines the values of ranks
    (sum).

    Raises UsageError for an unknown type or option.
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
