"""Waits for one or for all of several requests, also of several communicators."""

import time
from collections.abc import Sequence

from paceline._core import Request
from paceline.errors import UsageError

# A caller first asks all requests in turn, then waits for one of them so long at a time. While it
# waits for one of a communicator, all calls of that communicator's process go on.
ASK_S = 200e-6
TURN_MS = 1


def _check(name: str, requests: Sequence[Request]) -> list[Request]:
    listed = list(requests)
    for at, request in enumerate(listed):
        if not isinstance(request, Request):
            raise UsageError(
                f"{name}: requests[{at}] is a {type(request).__name__}; each must be a Request, "
                "as iallreduce() and its like return. Call wait() of a Plan itself."
            )
    return listed


def wait_any(requests: Sequence[Request], timeout_ms: int = 0) -> int | None:
    """Waits until one of the requests is complete; returns its index, the lowest of several.

    Like MPI_Waitany, but it also returns requests that were complete before: remove a returned
    request from the list before the next call.

    timeout_ms: milliseconds after which it returns None if no request is complete; this breaks
    nothing. 0: no limit. The time-outs of the communicators apply in both cases.

    Raises UsageError for an empty list. Raises the error of a failed request that it finds:
    TimeoutError, MismatchError or RankLost.
    """
    listed = _check("wait_any", requests)
    if not listed:
        raise UsageError("wait_any: there are no requests; pass at least one.")
    if timeout_ms < 0:
        raise UsageError(f"wait_any: timeout_ms is {timeout_ms}; it must be 0 (no limit) or more.")
    began = time.monotonic()
    turn = 0
    while True:
        for at, request in enumerate(listed):
            if request.test():
                return at
        passed = time.monotonic() - began
        if timeout_ms and 1e3 * passed >= timeout_ms:
            return None
        if passed >= ASK_S:
            listed[turn].wait_for(TURN_MS)
            turn = (turn + 1) % len(listed)


def wait_all(requests: Sequence[Request], timeout_ms: int = 0) -> list[object]:
    """Waits until all requests are complete; returns their results, in the order of the list.

    Like MPI_Waitall. timeout_ms: time-out of each wait in milliseconds, as in Request.wait(); 0:
    the communicator's. If requests fail, raises the error of the first of them in the list, but
    only when all have ended: then no buffer is in use any more.
    """
    results: list[object] = []
    error: Exception | None = None
    for request in _check("wait_all", requests):
        try:
            results.append(request.wait(timeout_ms))
        except Exception as failure:   # noqa: BLE001  KeyboardInterrupt is not one
            error = error or failure
    if error is not None:
        raise error
    return results
