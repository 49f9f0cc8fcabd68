"""concom: several communicators, so that several sums are under way (section 4.2 of the paper)."""

from paceline.communicator import Communicator
from paceline.engine import Engine
from paceline.errors import UsageError
from paceline.kvstore.store import KVStore


class ConCom(KVStore):
    """push() waits for the gradient, and starts its sum on the communicator that the key's hash
    selects. Once `outstanding` sums are under way, push() waits for a barrier()."""

    type = "concom"

    def __init__(
        self,
        comm: Communicator | None = None,
        communicators: int = 4,
        outstanding: int = 8,
        engine: Engine | None = None,
        op: str = "sum",
    ):
        for name, value in (("communicators", communicators), ("outstanding", outstanding)):
            if not isinstance(value, int) or value < 1:
                raise UsageError(f"kvstore: concom: {name} is {value!r}; it is a number from 1 on.")
        super().__init__(comm, engine, op, communicators, outstanding)
