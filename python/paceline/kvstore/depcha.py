"""depcha: a chain of dependent tasks makes the calls in one order (section 4.3 of the paper)."""

from paceline.communicator import Communicator
from paceline.engine import Engine
from paceline.kvstore.store import KVStore


class DepCha(KVStore):
    """push() returns at once. Every allreduce writes a common dummy variable besides its buffer, so
    that it runs when the one pushed before is complete. Local sums and copies back of other keys
    run meanwhile. Push all keys, then pull all: a pull waits for its own key alone."""

    type = "depcha"

    def __init__(
        self, comm: Communicator | None = None, engine: Engine | None = None, op: str = "sum"
    ):
        super().__init__(comm, engine, op)
