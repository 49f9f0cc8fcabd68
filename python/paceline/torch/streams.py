"""Works on tensors of a CUDA device: streams wait for them, and the host does not.

A call starts after what is on the stream that is current where it is made, and whatever is put on
the current stream after wait() comes after the call, as with NCCL. Errors show in the
next call, in is_completed() and in exception(): the host has not waited to see them.
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
        """Has the current stream wait, and returns True; raises what has gone wrong already."""
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
        """Makes what is enqueued on the current stream from now on come after the call."""
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
