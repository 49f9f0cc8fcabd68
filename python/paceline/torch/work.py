"""Work: the result of calls of torch.distributed. Its futures raise errors in C++, too."""

import copy
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work as _Work

from paceline.errors import TimeoutError
from paceline.torch.futures import completer


class Work(_Work):
    """One call, with one request or several. Results are copied out once."""

    # Values of a Work that is complete from the start: most are, and should cost little.
    _request: Any = None
    _finish: Callable[[], object] | None = None
    _source = -1
    _any: Any = None
    _error: BaseException | None = None
    _gathered: torch.Tensor | None = None  # what the future holds instead of the tensors
    _future: torch.futures.Future | None = None
    _is_nested = False  # the future was asked for inside a callback of another
    _lock = threading.Lock()  # only to make a future

    def __init__(
        self,
        request: Any,
        tensors: list[torch.Tensor],
        finish: Callable[[], object] | None = None,
        source: int = -1,
    ):
        """request: the request to wait for; None if the call is complete. finish: runs once, when
        the call is complete without an error."""
        super().__init__()
        self._tensors = tensors
        if request is None:
            if finish is not None:
                finish()
            return
        self._request = request
        self._finish = finish
        self._source = source
        self._any = request if hasattr(request, "source") else None
        self._lock = threading.Lock()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Returns True when the call is complete. Raises its error.

        Raises TimeoutError after `timeout`; timedelta(0): the group's time-out. After a `timeout`
        of its own the call goes on, and wait() may be called again. The group's time-out breaks it.
        """
        limit_ms = max(1, round(timeout.total_seconds() * 1e3)) if timeout > timedelta(0) else 0
        if not self._ends_within(limit_ms):
            raise TimeoutError(
                f"Operation timed out! wait: the call has not ended within {limit_ms} ms; it goes "
                "on until the group's time-out. Call wait() again, or with a longer timeout."
            )
        if self._error is not None:
            raise copy.copy(self._error)
        return True

    def _ends_within(self, limit_ms: int) -> bool:
        """True if the call ends within `limit_ms` milliseconds, with or without an error; 0: no
        limit."""
        request = self._request
        if request is not None:
            try:
                if limit_ms and not request.wait_for(limit_ms):
                    return False
                if not limit_ms:
                    request.wait()
            except Exception as error:
                self._settle(error)
            else:
                self._settle()
        return True

    def is_completed(self) -> bool:
        """True if the call has ended, with or without an error. Makes progress."""
        request = self._request
        if request is not None:
            try:
                if not request.test():
                    return False
            except Exception as error:
                self._settle(error)
            else:
                self._settle()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        return self._tensors

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        """The rank in the group that sent the received tensor."""
        return self._source if self._any is None else self._any.source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """A future of the list of tensors. Its errors are raised in Python and in C++."""
        with self._lock:
            if self._future is not None:
                return self._future
            # An exception that Python sets on a Future is invisible to C++ (Future::wait returns,
            # and DDP would go on with wrong gradients). One that a callback raises is not.
            self._base: torch.futures.Future = torch.futures.Future()
            self._future = self._base.then(self._value)
        completer.add(self)
        return self._future

    def _value(self, _: torch.futures.Future) -> list[torch.Tensor]:
        if self._error is not None:
            raise copy.copy(self._error)
        return self._tensors if self._gathered is None else [self._gathered]

    def _settle(self, error: BaseException | None = None) -> None:
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None and error is None:
                try:
                    finish()
                except Exception as failed:  # this call's own: others' futures go on
                    error = failed
            if self._error is None and error is not None:
                self._error = _without_frames(error)  # raised as copies, which have their own
            self._request = None  # last: a thread that sees None finds everything done


def _without_frames(error: BaseException) -> BaseException:
    """The error, and all that it comes from, without tracebacks: their frames have torch's wrapper
    around the Work that keeps the error, a circle through C++ that no garbage collector sees."""
    chain: list[BaseException | None] = [error]
    for one in chain:
        if one is not None:
            one.__traceback__ = None
            chain += [other for other in (one.__cause__, one.__context__) if other not in chain]
    return error


class Requests:
    """Several requests as one: complete when all are, failed when one has failed."""

    def __init__(self, requests: Sequence[Any]):
        self._requests = list(requests)

    def wait(self) -> None:
        for request in self._requests:
            request.wait()

    def wait_for(self, milliseconds: int) -> bool:
        return _each_within(milliseconds, [request.wait_for for request in self._requests])

    def sleep_for(self, milliseconds: int) -> bool:
        return all(request.sleep_for(milliseconds) for request in self._requests)

    def test(self) -> bool:
        return all([request.test() for request in self._requests])


class Works:
    """Several works as one request."""

    def __init__(self, works: Sequence[Work]):
        self._works = list(works)

    def wait(self) -> None:
        for work in self._works:
            work.wait()

    def wait_for(self, milliseconds: int) -> bool:
        is_over = _each_within(milliseconds, [work._ends_within for work in self._works])
        if is_over:
            self.wait()  # raises what went wrong
        return is_over

    def sleep_for(self, milliseconds: int) -> bool:
        for work in self._works:
            request = work._request
            if request is not None:
                return request.sleep_for(milliseconds)
        return True

    def test(self) -> bool:
        over = all([work.is_completed() for work in self._works])
        for work in self._works if over else ():
            work.wait()  # raises what went wrong
        return over


def _each_within(milliseconds: int, waits: list[Callable[[int], bool]]) -> bool:
    """True if all end within `milliseconds`, together."""
    end = time.monotonic() + 1e-3 * milliseconds
    return all(wait(max(1, round(1e3 * (end - time.monotonic())))) for wait in waits)
