"""Work for tensors on a CUDA device: streams wait for it, and the host does not.

As with NCCL, a call starts after the work that is on the current stream when it is made. Work that
is put on the current stream after wait() starts after the call. The next call, is_completed() and
exception() report errors, since the host does not wait for them.
"""

from datetime import timedelta

import torch

from paceline.torch.minors import CallWork


def is_on_device(request: object) -> bool:
    """True if a request, or the first of several, is of memory on a CUDA device."""
    several = getattr(request, "_requests", None)
    if several is not None:
        return bool(several) and is_on_device(several[0])
    return bool(getattr(request, "is_on_device", False))


def requests_of(request: object) -> list:
    """The requests that a request stands for."""
    several = getattr(request, "_requests", None)
    return [request] if several is None else list(several)


class DeviceWork(CallWork):
    """One call on tensors of a CUDA device, perhaps of several requests."""

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Makes the current stream wait, and returns True. Raises errors that are known already."""
        if self._error is not None:
            raise self._error
        if self._request is not None:
            self._join()
        return True

    synchronize = wait

    def get_future(self) -> torch.futures.Future:
        """A future that is complete at once: waiting for it makes the current stream wait."""
        with self._lock:
            if self._future is None:
                device = self._device()
                self._future = torch.futures.Future(devices=[device])
                side = torch.cuda.Stream(device)
                with torch.cuda.stream(side):
                    self._join(locked=True)
                    self._future.set_result(self._value(None))
            return self._future

    def _device(self) -> torch.device:
        return self._tensors[0].device

    def _join(self, locked: bool = False) -> None:
        """Makes later work on the current stream start after the call."""
        stream = torch.cuda.current_stream(self._device())
        for request in requests_of(self._request):
            request.join(stream.cuda_stream)
        for tensor in self._tensors:  # its memory is not given to others before that
            tensor.record_stream(stream)
        if locked:
            finish, self._finish = self._finish, None
        else:
            with self._lock:
                finish, self._finish = self._finish, None
        if finish is not None:
            finish()
