"""funnel: the thread that pushes does all the communication (section 4.1 of the paper)."""

from paceline.buffers import Buffer
from paceline.kvstore.store import Entry, KVStore


class Funnel(KVStore):
    """push() waits for each gradient in turn and makes its allreduce; pull() copies it back in the
    background, which overlaps with the next push."""

    type = "funnel"

    def _push(self, entry: Entry, arrays: list[Buffer], priority: int) -> None:
        # The local sum has waited for pulls of the value that it has overwritten.
        self._make_ready(self._comm, entry, arrays, priority)
        self._comm.allreduce(entry.buffer, op=self._op, tag=entry.name)
