"""PACELINE_REPLACE=gloo, or mpi: CPU tensors of scripts that name that backend, as they stand.

torch asks BackendConfig which backend serves which device. There it is ours if a script has
named the one whose place we take; the name itself stays, so that scripts, and torch, find the
backend that they expect: dist.get_backend() is "gloo". A group that is made of backends has one
that stands for all, by its type: while such a group is made the name means ours, and not gloo's
class, which DDP in C++ would look for.

torch may have reasons of its own to leave us out, and newer ones may make groups in another way:
once a group is there it is looked at, and a sentence names the backend that serves it, if not ours.
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
    """Takes the place that PACELINE_REPLACE names; UsageError for a name that has none."""
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
    """The backend in whose place a group is being made, if it is; says so once, on rank 0."""
    if _taken_for:
        _say(f"serves CPU tensors in place of {_taken_for} (PACELINE_REPLACE).", rank)
    return _taken_for


def _look_who_serves(name: str) -> None:
    """Says so if the default group's CPU tensors are still served by the one to replace."""
    from paceline.torch.minors import part_of  # not before a group is there: it asks torch much

    group = dist.group.WORLD
    serves = part_of(group)
    if group is None or name not in str(getattr(serves, "name", str)()).lower() or \
            getattr(serves, "getBackendName", str)() == "paceline":
        return
    others = ", ".join(device.type for device in group._device_types
                       if device.type != "cpu" and _is_here(device.type))
    why = (f"the group serves {others} as well, and Paceline in its place would not" if others else
           f"torch {torch.__version__} makes groups in another way than those that Paceline knows")
    _say(f"does not serve in place of {name}, which PACELINE_REPLACE asks for: {why}.",
         dist.get_rank())


def _say(sentence: str, rank: int) -> None:
    """Prints the sentence once, on rank 0."""
    global _is_said
    if not _is_said and rank == 0:
        sys.stderr.write(f"paceline: {sentence}\n")
    _is_said = True


def _is_replaced(backends: dict[str, Any], name: str) -> bool:
    """True if the CPU's backend is the one to replace, and no device that is here needs another.

    A group of ours serves the CPU alone; one that serves a device as well is left as it is.
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
