"""concom: several communicators, so that several sums are under way (section 4.2 of the paper)."""

import zlib
from typing import Any

from paceline.buffers import Buffer
from paceline.communicator import Communicator
from paceline.errors import UsageError
from paceline.kvstore.store import Entry, KVStore


class ConCom(KVStore):
    """push() waits for the gradient; its sum goes on in the background, on the communicator that
    the key is hashed onto. Once `outstanding` sums are under way, push() waits for a barrier()."""

    type = "concom"

    def __init__(
        self,
        comm: Communicator | None = None,
        communicators: int = 4,
        outstanding: int = 8,
        **options: Any,
    ):
        for name, value in (("communicators", communicators), ("outstanding", outstanding)):
            if not isinstance(value, int) or value < 1:
                raise UsageError(f"kvstore: concom: {name} is {value!r}; it is a number from 1 on.")
        super().__init__(comm, **options)
        self._communicators = [self._comm.dup() for _ in range(communicators)]
        self._outstanding = outstanding
        self._under_way = 0  # at most; a barrier ends them all, on all ranks alike

    def _push(self, entry: Entry, arrays: list[Buffer], priority: int) -> None:
        if self._under_way == self._outstanding:
            self.barrier()
        comm = self._communicators[zlib.crc32(entry.name.encode()) % len(self._communicators)]
        self._make_ready(comm, entry, arrays, priority)
        self._under_way += 1
        self._engine.call(
            comm, "allreduce", entry.buffer, op=self._op, priority=priority, name=entry.name
        )

    def barrier(self) -> None:
        super().barrier()
        self._under_way = 0
