"""Torch's key-value stores, such as torchrun's, with the interface of Paceline's core."""

import os
import time
from datetime import timedelta

import torch.distributed as dist

from paceline.errors import ResourceError, TimeoutError

_SHORTEST_S, _LONGEST_S = 0.0005, 0.05  # between two looks


def attempt() -> str:
    """Number of torchrun's restarts of these ranks: its store keeps the keys of earlier starts."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


class TorchStore:
    """A torch.distributed.Store under a prefix of its own: set(key, bytes), get(key, timeout)."""

    def __init__(self, store: dist.Store, prefix: str):
        self._store = dist.PrefixStore(prefix, store)

    def set(self, key: str, value: bytes) -> None:
        self._store.set(key, value)  # type: ignore[arg-type]  # bytes are fine

    def get(self, key: str, timeout: timedelta) -> bytes:
        """Waits for the key. Raises TimeoutError, which names the key.

        Polls in growing intervals: a wait() of torch's store that ends without the key writes
        warnings, and may take seconds more.
        """
        begin = time.monotonic()
        while not self._is_there(key):
            waited = time.monotonic() - begin
            left = timeout.total_seconds() - waited
            if left <= 0:
                raise TimeoutError(
                    f"start-up: no rank set '{key}' in torch's store within {timeout}. "
                    "Did every rank start?"
                )
            time.sleep(min(left, max(_SHORTEST_S, min(_LONGEST_S, waited / 8))))
        return self._store.get(key)

    def _is_there(self, key: str) -> bool:
        try:
            return self._store.check([key])
        except dist.DistNetworkError as error:
            raise ResourceError(
                f"start-up: torch's store no longer answers ({error}). Its process, rank 0 "
                "or torchrun's agent, has ended; look at its last output."
            ) from error


_kept: list[dist.Store] = []


def torchrun_store(start_timeout_ms: int) -> tuple[int, int, TorchStore]:
    """Rank, ranks and store of a process that torchrun started. The store is the agent's.

    If a script has set torchrun's variables, the store is rank 0's and ends with that process;
    other ranks may still read it after rank 0 has read all keys.
    """
    handler = dist.rendezvous("env://", timeout=timedelta(milliseconds=start_timeout_ms))
    store, rank, ranks = next(handler)
    _kept.append(store)
    return rank, ranks, TorchStore(store, f"paceline/{attempt()}")
