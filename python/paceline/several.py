"""Waiting for one or for all of several requests, also of several communicators."""

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
                "as iallreduce() and its like return. A plan's start has a wait() of its own."
            )
    return listed


def wait_any(requests: Sequence[Request], timeout_ms: int = 0) -> int | None:
    """Waits until one of the requests is complete; returns its index, the lowest of several.

    A request that is complete already is found at once, so a caller that wants each of them once
    takes out what it was given. timeout_ms, in milliseconds: None is returned when so long has
    passed and no request is complete, and nothing is broken; 0 waits without a limit of its own.
    The time-out of a communicator goes on counting for its calls.

    As MPI_Waitany, but an empty list is a UsageError. Raises what went wrong with a request that
    it finds ended: TimeoutError, MismatchError, RankLost.
    """
    listed = _check("wait_any", requests)
    if not listed:
        raise UsageError("wait_any: there are no requests; give one at least.")
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

    timeout_ms, in milliseconds, is for each request what it is in Request.wait(); 0 leaves each
    to its communicator's limit. As MPI_Waitall: an error of one request is raised when all have
    ended, so that no buffer is in use any more; of several errors, the first in the list.
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
