"""torch's key-value stores, as Paceline's core wants them."""

from datetime import timedelta

import torch.distributed as dist

from paceline.errors import TimeoutError


class TorchStore:
    """A torch.distributed.Store under a prefix of its own: set(key, bytes), get(key, timeout)."""

    def __init__(self, store: dist.Store, prefix: str):
        self._store = dist.PrefixStore(prefix, store)

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)  # type: ignore[arg-type]  # bytes are fine

    def get(self, key: str, timeout: timedelta) -> bytes:
        """Waits for the key; raises TimeoutError, which names it."""
        try:
            self._store.wait([key], timeout)
        except RuntimeError as error:  # the stores' only way to say that time is up
            raise TimeoutError(
                f"start-up: nobody set '{key}' in torch's store within {timeout} ({error}). "
                "Did every rank start?"
            ) from error
        return self._store.get(key)


_kept: list[dist.Store] = []


def torchrun_store(start_timeout_ms: int) -> tuple[int, int, TorchStore]:
    """Rank, ranks and store of a process that torchrun started: the agent's store.

    Where a script has set the variables it is rank 0's, and lives as long as that process: others
    may read it when rank 0 has read all it needs.
    """
    handler = dist.rendezvous("env://", timeout=timedelta(milliseconds=start_timeout_ms))
    store, rank, ranks = next(handler)
    _kept.append(store)
    return rank, ranks, TorchStore(store, "paceline")
