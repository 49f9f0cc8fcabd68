"""Differences between minor versions of torch, found by tests of its features.

A Python class becomes part of a process group in one of two ways:
- As its backend for one device, if Python can derive from torch's Backend (2.14 and 2.15). Then
  groups may have other backends for other devices, torch's hooks see each call, and its dispatcher
  refuses some tensors before it calls the backend (docs/conformance.md).
- As the whole group, in older versions.

torch 2.14 and 2.15 wrap the Work of a Python backend into one that passes on only wait() and
get_future(), so that is_completed() never becomes true. This module replaces the other methods of
Work by some that find the Work behind the wrapper.
"""

import functools
import importlib.metadata
import threading
import warnings
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend
from torch._C._distributed_c10d import Work as _Work

from paceline.communicator import Communicator
from paceline.errors import RefusalError
from paceline.provenance import TORCH, minor
from paceline.torch.work import Work

_CPU = torch.device("cpu")


class _Part:
    """Methods that torch calls on a backend and on a whole group."""

    _comm: Communicator
    _backend_name: str  # "paceline", or the one whose place it takes

    supports_splitting = supports_coalescing = supports_time_estimate = False
    _supports_time_estimate = False

    def getBackendName(self) -> str:
        return "paceline"  # where it is "gloo", DDP in C++ asks for gloo's own class

    def name(self) -> str:
        return self._backend_name

    _get_backend_name = name

    def supports_tensor_alloc(self, device: torch.device | int) -> bool:
        return False

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return 0


class AsBackend(_Part, Backend):
    """The base of a backend for the CPU, which torch puts into a group of its own."""

    def _attach(self, store: Any, comm: Communicator, timeout: timedelta) -> None:
        Backend.__init__(self, comm.rank, comm.size)  # type: ignore[call-arg]
        self._store = store
        see_through_wrappers()
        self._options = Backend.Options(self._backend_name, timeout)

    @property
    def options(self) -> Any:
        return self._options


class AsGroup(_Part, dist.ProcessGroup):
    """The base of a whole group, which stands in the place of torch's."""

    def _attach(self, store: Any, comm: Communicator, timeout: timedelta) -> None:
        # The other form, with the store, is not for subclasses: C++ then makes a group of its own.
        dist.ProcessGroup.__init__(self, comm.rank, comm.size)  # type: ignore[call-arg]
        self._store = store
        self._name, self._desc = "", ""

    # torch looks for these in C++ (get...) and in Python (the others).
    def getRank(self) -> int:
        return self._comm.rank

    def getSize(self) -> int:
        return self._comm.size

    def getGroupName(self) -> str:
        return self._name

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupDesc(self) -> str:
        return self._desc

    def setGroupDesc(self, desc: str) -> None:
        self._desc = desc

    def get_group_store(self) -> Any:
        return self._store

    def _get_backend(self, device: torch.device) -> Any:
        """The backend of a device, which torch asks for its features: the group itself."""
        if torch.device(device).type not in ("cpu", "cuda"):
            raise RefusalError(
                f"the backend 'paceline' serves the CPU and CUDA devices, but not {device}."
            )
        return self

    _set_group_name = setGroupName
    _set_group_desc = setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    @property
    def _device_types(self) -> list[torch.device]:
        return [_CPU, torch.device("cuda")] if torch.cuda.is_available() else [_CPU]


def can_derive_backend() -> bool:
    """True if Python can derive from torch's Backend and make an object of the class."""

    class Probe(Backend):
        pass

    try:
        Probe(0, 1)  # type: ignore[call-arg]
    except TypeError:
        return False
    return True


Base: Any = AsBackend if can_derive_backend() else AsGroup

_WRAPPED = ("is_completed", "is_success", "exception", "result", "synchronize",
            "source_rank", "_source_rank")  # fmt: skip
_search = threading.local()  # .found: a list, while this thread looks for the Work behind another


class CallWork(Work):
    """A Work that is found behind torch's wrapper."""

    def get_future(self) -> torch.futures.Future:
        found = getattr(_search, "found", None)
        if found is None:
            return super().get_future()
        found.append(self)
        return _NOBODY_WAITS


_NOBODY_WAITS: torch.futures.Future = torch.futures.Future()


def behind(work: _Work) -> _Work:
    """The Work of Paceline that torch has wrapped into `work`; `work` itself if there is none."""
    _search.found = found = []
    try:
        work.get_future()
    except Exception:
        pass  # another backend's, which has none
    finally:
        _search.found = None
    return found[0] if found else work


@functools.cache
def see_through_wrappers() -> None:
    """Makes torch's wrappers pass on all methods of Paceline's Work, unless they do so already."""
    if passes_on():
        return

    def seeing(name: str, original: Callable) -> Callable:
        @functools.wraps(original)
        def call(work: _Work) -> Any:
            ours = behind(work) if type(work) is _Work else work  # others' classes are no wrappers
            return original(work) if ours is work else getattr(ours, name)()

        return call

    for name in _WRAPPED:
        setattr(_Work, name, seeing(name, getattr(_Work, name)))


def passes_on() -> bool:
    """True if calls of a wrapper's methods reach the Work behind it."""

    class Probe(Backend):
        getBackendName = staticmethod(lambda: "probe")

        def barrier(self, _: Any) -> _Work:
            return CallWork(None, [])

    group, probe = dist.ProcessGroup(dist.HashStore(), 0, 1), Probe(0, 1)  # type: ignore[call-arg]
    group._set_default_backend(dist.ProcessGroup.BackendType.CUSTOM)
    group._register_backend(_CPU, dist.ProcessGroup.BackendType.CUSTOM, probe)
    return group.barrier().is_completed()


def part_of(group: dist.ProcessGroup | None) -> Any:
    """The part of a group that serves the CPU: its backend, or the group if it is its own; None for
    None."""
    if group is None or isinstance(group, AsGroup):
        return group
    try:
        part = group._get_backend(_CPU)
    except RuntimeError:  # the group has none for the CPU
        return None
    while hasattr(part, "wrapped_pg"):  # TORCH_DISTRIBUTED_DEBUG=DETAIL puts a check around it
        part = part.wrapped_pg
    return part


def warn_if_newer(version: str | None = None) -> None:
    """Warns if torch has a newer minor version than those that Paceline was tested with."""
    version = importlib.metadata.version("torch") if version is None else version
    newest = TORCH[1]
    if minor(version) > minor(newest):
        warnings.warn(
            f"paceline: torch {version} is newer than {newest}, the newest that the backend "
            "'paceline' was tested with, so please report what fails.",
            stacklevel=2,
        )
