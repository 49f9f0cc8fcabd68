"""Work: what torch.distributed's calls return. Futures of it fail loudly, also for C++."""

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import Work as _Work

_LOOK_MS = 10  # how long the completer sleeps at most before it looks at all requests


class Work(_Work):
    """One call, perhaps of several requests; what it has to copy out is copied once."""

    # Of one that is complete from the start: most are, and should cost little.
    _request: Any = None
    _finish: Callable[[], object] | None = None
    _source = -1
    _any: Any = None
    _error: BaseException | None = None
    _future: torch.futures.Future | None = None
    _lock = threading.Lock()  # only to make a future

    def __init__(
        self,
        request: Any,
        tensors: list[torch.Tensor],
        finish: Callable[[], object] | None = None,
        source: int = -1,
    ):
        """request: what to wait for; None if it is complete. finish: runs once it is, if it is."""
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
        """Returns True when the call is complete; raises what went wrong."""
        request = self._request
        if request is not None:
            try:
                request.wait(max(0, round(timeout.total_seconds() * 1e3)) if timeout else 0)
            except Exception as error:
                self._settle(error)
            else:
                self._settle()
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Whether it is over, well or not. Works on what is under way."""
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
        """The rank in the group that a received tensor came from."""
        return self._source if self._any is None else self._any.source

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future:
        """A future of the list of tensors. It fails in Python and in C++ alike."""
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
            raise self._error
        return self._tensors

    def _settle(self, error: BaseException | None = None) -> None:
        with self._lock:
            finish, self._finish = self._finish, None
            if finish is not None and error is None:
                finish()
            if self._error is None:
                self._error = error
            self._request = None  # last: whoever sees None finds everything done


class Requests:
    """Several requests as one: complete when all are, failed when one is."""

    def __init__(self, requests: Sequence[Any]):
        self._requests = list(requests)

    def wait(self, timeout_ms: int = 0) -> None:
        for request in self._requests:
            request.wait(timeout_ms)

    def sleep_for(self, milliseconds: int) -> bool:
        return all(request.sleep_for(milliseconds) for request in self._requests)

    def test(self) -> bool:
        return all([request.test() for request in self._requests])


class Works:
    """Several works as one request."""

    def __init__(self, works: Sequence[Work]):
        self._works = list(works)

    def wait(self, timeout_ms: int = 0) -> None:
        for work in self._works:
            work.wait(timedelta(milliseconds=timeout_ms))

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


class _Completer:
    """Completes futures: one thread per process, started by the first get_future()."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # the thread may have held the lock

    def _begin(self) -> None:
        self._works: list[Work] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, work: Work) -> None:
        if work.is_completed():  # saves a change of threads
            work._base.set_result(None)
            return
        with self._changed:
            self._works.append(work)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name="paceline-futures", daemon=True
                )
                self._thread.start()
                # A thread that comes back from C++ while the interpreter ends, ends the process.
                atexit.unregister(self._stop)
                atexit.register(self._stop)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._works and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
            self._look()

    def _look(self) -> None:
        """Waits a moment for the oldest work, then completes the futures of all that are over."""
        with self._changed:
            works = list(self._works)
        request = works[0]._request
        try:
            if request is not None:
                request.sleep_for(_LOOK_MS)
        except Exception:
            pass  # is_completed() meets it again, and keeps it for whoever waits
        for work in works:
            if work.is_completed():
                with self._changed:
                    self._works.remove(work)
                work._base.set_result(None)

    def _stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(1)


completer = _Completer()
