"""Features that only gloo has: barriers that name missing ranks, and sums of sparse tensors."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from paceline import calls
from paceline.communicator import Communicator
from paceline.errors import RefusalError, TimeoutError, UsageError
from paceline.torch.work import Requests, Work

_GRACE = timedelta(seconds=10)  # for rank 0 to tell how it went, beyond its own limit


class GlooOnly:
    """Mixed into the process group, which sets the attributes below."""

    _comm: Communicator
    _knobs: calls.Knobs
    _store: Any
    _begin: Callable[..., Any]
    _work: Callable[..., Work]
    _monitored = 0  # barriers so far

    def monitored_barrier(
        self, timeout: Any = None, wait_all_ranks: bool = False
    ) -> None:
        """A barrier through torch's store, which rank 0 monitors. Later calls work after a failure.

        Raises TimeoutError if a rank does not enter within `timeout` (None: the group's): on rank
        0, with the first missing rank, or with all of them if wait_all_ranks is set; and on the
        ranks that have entered.
        """
        limit = getattr(timeout, "timeout", timeout)  # a backend is given options
        if limit is None or limit < timedelta(0):
            limit = timedelta(milliseconds=self._knobs.timeout_ms)
        store = dist.PrefixStore(f"monitored{self._monitored}", self._store)
        before = dist.PrefixStore(f"monitored{self._monitored - 1}", self._store)
        self._monitored += 1
        if self._comm.rank:
            return self._report(store, limit)
        missing = self._missing(store, limit, wait_all_ranks)
        store.set("missing", ",".join(map(str, missing)))
        if missing:
            ranks = f"Rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
            raise TimeoutError(f"{ranks} failed to pass monitoredBarrier in {_ms(limit)} ms.")
        for key in ("missing", *map(str, range(1, self._comm.size))):  # the ranks that came read it
            before.delete_key(key)

    def _missing(self, store: Any, limit: timedelta, wait_all_ranks: bool) -> list[int]:
        """On rank 0: the ranks that did not enter in time; only the first without
        wait_all_ranks."""
        missing: list[int] = []
        end = time.monotonic() + limit.total_seconds()
        for rank in range(1, self._comm.size):
            left = timedelta(seconds=end - time.monotonic())
            if left <= timedelta(0) and not wait_all_ranks:
                store.set("missing", str(rank))
                raise TimeoutError(f"Rank 0 timed out in monitoredBarrier after {_ms(limit)} ms.")
            try:
                store.wait([str(rank)], max(left, timedelta(milliseconds=1)))
            except RuntimeError:  # the stores' only way to say that time is up
                missing.append(rank)
                if not wait_all_ranks:
                    break
        return missing

    def _report(self, store: Any, limit: timedelta) -> None:
        """On other ranks: reports the arrival, and reads the missing ranks from rank 0."""
        store.set(str(self._comm.rank), "")
        try:
            store.wait(["missing"], limit + _GRACE)
            missing = store.get("missing").decode()
        except RuntimeError:
            missing = "0"
        if missing:
            raise TimeoutError(
                f"Rank {self._comm.rank} successfully reached monitoredBarrier, but received "
                f"errors while waiting for send/recv from rank 0. Missing: rank {missing}."
            )

    def _allreduce_sparse(self, tensor: torch.Tensor, op: str) -> Work:
        """Sums COO tensors of one shape that may have different elements. Waits for their counts.

        The result is coalesced. Raises UsageError if shapes differ, before elements are sent.
        """
        if op != "sum":
            raise RefusalError(f"{op} of sparse tensors is not supported; only SUM is.")
        own = tensor.coalesce()
        indices, values = own._indices().t().contiguous(), own._values().contiguous()
        counts = self._counts_of_sparse(tensor, indices.shape[0])
        ranks_indices = self._gathered(indices, counts)
        ranks_values = self._gathered(values, counts)

        def finish() -> None:
            total = torch.sparse_coo_tensor(
                ranks_indices[1].t(), ranks_values[1], tensor.shape, check_invariants=True
            )
            tensor.copy_(total.coalesce())

        return self._work(Requests([ranks_indices[0], ranks_values[0]]), [tensor], finish)

    def _counts_of_sparse(self, tensor: torch.Tensor, count: int) -> list[int]:
        mine = torch.tensor([count, tensor.sparse_dim(), *tensor.shape])
        cards = torch.empty(self._comm.size, len(mine), dtype=torch.int64)
        self._comm.run("allgather", mine, cards, "sum", 0, None, None, self._knobs)
        for rank, card in enumerate(cards.tolist()):
            if card[1:] != mine[1:].tolist():
                raise UsageError(
                    f"all_reduce: sparse tensors differ: rank {rank} has {card[1]} sparse "
                    f"dimensions of shape {card[2:]}, rank {self._comm.rank} {mine[1]} of "
                    f"{list(tensor.shape)}; they must be equal."
                )
        return cards[:, 0].tolist()

    def _gathered(self, rows: torch.Tensor, counts: Sequence[int]) -> tuple[Any, torch.Tensor]:
        """A request that gathers the rows of all ranks, and the tensor for them."""
        row = rows[0].numel() if len(rows) else rows.new_empty(1, *rows.shape[1:]).numel()
        target = rows.new_empty(sum(counts), *rows.shape[1:])
        lengths = [count * row for count in counts]
        return self._begin("allgather", rows, target, "sum", 0, lengths), target


def _ms(limit: timedelta) -> int:
    return round(limit.total_seconds() * 1e3)
