"""depcha: a chain of dependent tasks makes the calls in one order (section 4.3 of the paper)."""

from typing import Any

from paceline.buffers import Buffer
from paceline.communicator import Communicator
from paceline.kvstore.store import Entry, KVStore


class DepCha(KVStore):
    """push() returns at once. Every allreduce writes one dummy variable besides its buffer, so that
    each runs when the one pushed before it is complete; local sums and copies back of other keys
    run meanwhile. Push all keys, then pull all: a pull waits for its own key alone."""

    type = "depcha"

    def __init__(self, comm: Communicator | None = None, **options: Any):
        super().__init__(comm, **options)
        self._chain = self._engine.variable("the order of allreduces")

    def _push(self, entry: Entry, arrays: list[Buffer], priority: int) -> None:
        self._sum_locally(entry, arrays, priority)
        self._engine.call(
            self._comm, "allreduce", entry.buffer, op=self._op, write=[self._chain],
            priority=priority, name=entry.name,
        )  # fmt: skip
