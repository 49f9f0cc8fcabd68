"""funnel: the thread that pushes does all the communication (section 4.1 of the paper)."""

from paceline.communicator import Communicator
from paceline.engine import Engine
from paceline.kvstore.store import KVStore


class Funnel(KVStore):
    """push() waits for each gradient in turn, and makes its allreduce. pull() copies the sum back
    in the background, beside the next push."""

    type = "funnel"

    def __init__(
        self, comm: Communicator | None = None, engine: Engine | None = None, op: str = "sum"
    ):
        super().__init__(comm, engine, op)
