"""PACELINE_REPLACE=gloo (or mpi): serves CPU tensors of unchanged scripts that name that backend.

torch asks BackendConfig for the backend of a device. It answers Paceline for the replaced backend.
The name stays, so that scripts and torch find the name that they expect: dist.get_backend() is
"gloo". A group of several backends has one that stands for all by its type. While such a group is
made, the name stands for Paceline and not for gloo's class, which DDP's C++ would use.

Some versions or settings of torch may still choose another backend. So each new group is checked,
and a message names the backend that serves it if it is not Paceline.
"""

import functools
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from paceline import _core

_taken_for = ""  # the name, while a group is made in its place
_is_said = False


def install() -> None:
    """Replaces the backend that PACELINE_REPLACE names. Raises UsageError for an unknown name."""
    name = _core.option("replace")
    if name == "off":
        return
    config, helper = c10d.BackendConfig, c10d._new_process_group_helper
    if hasattr(helper, "paceline"):  # it is done: `import torch` and `import paceline.torch`
        return
    usual = config.get_device_backend_map

    def get_device_backend_map(self: Any) -> dict[str, Any]:
        found = usual(self)
        if not _is_replaced(found, name):
            return found
        ours = dist.Backend("paceline")
        return {device: ours if other == name else other for device, other in found.items()}

    def new_process_group(size: int, rank: int, ranks: list[int], backend: Any, store: Any,
                          *more: Any, **keywords: Any) -> Any:  # fmt: skip
        global _taken_for
        named = str(backend).lower()
        if named not in (name, dist.Backend.UNDEFINED) and f"cpu:{name}" not in named:
            return helper(size, rank, ranks, backend, store, *more, **keywords)
        if not _is_replaced(usual(c10d.BackendConfig(backend)), name):
            return helper(size, rank, ranks, backend, store, *more, **keywords)
        if size < 0:  # torch leaves it to MPI to find the ranks
            timeout = keywords.get("timeout") or c10d.default_pg_timeout
            store, rank, size = _meet(timeout)
        types = dist.Backend.backend_type_map
        theirs = types[name]
        _taken_for, types[name] = name, types["paceline"]
        try:
            return helper(size, rank, ranks, backend, store, *more, **keywords)
        finally:
            _taken_for, types[name] = "", theirs

    usual_start = c10d.init_process_group

    @functools.wraps(usual_start)
    def init_process_group(*arguments: Any, **keywords: Any) -> Any:
        done = usual_start(*arguments, **keywords)
        _look_who_serves(name)
        return done

    c10d.init_process_group = dist.init_process_group = init_process_group
    config.get_device_backend_map = get_device_backend_map
    new_process_group.paceline = True  # type: ignore[attr-defined]
    c10d._new_process_group_helper = new_process_group
    if name == "mpi":
        c10d._MPI_AVAILABLE = True


def taken_for(rank: int) -> str:
    """The name of the backend that the new group replaces, or "". Prints it once, on rank 0."""
    if _taken_for:
        _say(f"serves CPU tensors in place of {_taken_for} (PACELINE_REPLACE).", rank)
    return _taken_for


def _look_who_serves(name: str) -> None:
    """Prints a message if the replaced backend still serves CPU tensors of the default group."""
    from paceline.torch.minors import part_of  # not before a group is there: it asks torch much

    group = dist.group.WORLD
    serves = part_of(group)
    if group is None or name not in str(getattr(serves, "name", str)()).lower() or \
            getattr(serves, "getBackendName", str)() == "paceline":
        return
    others = ", ".join(device.type for device in group._device_types
                       if device.type != "cpu" and _is_here(device.type))
    why = (f"the group also serves {others}, which Paceline in its place would not" if others else
           f"torch {torch.__version__} makes groups in a way that Paceline does not know")
    _say(f"does not serve in place of {name}, which PACELINE_REPLACE asks for: {why}.",
         dist.get_rank())


def _say(sentence: str, rank: int) -> None:
    """Prints the sentence once, on rank 0."""
    global _is_said
    if not _is_said and rank == 0:
        sys.stderr.write(f"paceline: {sentence}\n")
    _is_said = True


def _is_replaced(backends: dict[str, Any], name: str) -> bool:
    """True if the CPU's backend is the one to replace, and the group serves no other device.

    Paceline in its place serves only the CPU; other groups stay as they are.
    """
    if backends.get("cpu") != name:
        return False
    return not any(device != "cpu" and _is_here(device) for device in backends)


def _is_here(device: str) -> bool:
    module = getattr(torch, device, None)
    return module is not None and module.is_available()


def _meet(timeout: timedelta) -> tuple[Any, int, int]:
    store, rank, size = next(iter(dist.rendezvous("env://", timeout=timeout)))
    store.set_timeout(timeout)
    return dist.PrefixStore("default_pg", store), rank, size
