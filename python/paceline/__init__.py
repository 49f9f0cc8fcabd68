"""Paceline: pipelined, arrival-aware collective communication.

    import numpy, paceline
    comm = paceline.init()
    x = numpy.full(1000, comm.rank, "float32")
    comm.allreduce(x)          # in place: every rank holds the sum

Started by `paceline run -n 4 script.py`, by torchrun, or alone as the only rank.
"""

import importlib
from typing import TYPE_CHECKING

from paceline.errors import (
    Error,
    InternalError,
    MismatchError,
    RankLost,
    RefusalError,
    ResourceError,
    TimeoutError,
    UsageError,
)

if TYPE_CHECKING:
    from paceline._core import Plan, Request
    from paceline.communicator import Communicator
    from paceline.profiling import profile
    from paceline.several import wait_all, wait_any
    from paceline.world import empty, finalize, init, is_initialized

# Loaded when first used: torch imports this package at start-up, and must not need the core for it.
_LAZY = {
    "Communicator": "paceline.communicator",
    "Plan": "paceline._core",
    "Request": "paceline._core",
    "empty": "paceline.world",
    "finalize": "paceline.world",
    "init": "paceline.world",
    "is_initialized": "paceline.world",
    "profile": "paceline.profiling",
    "wait_all": "paceline.several",
    "wait_any": "paceline.several",
}

__all__ = [
    "Communicator", "Error", "InternalError", "MismatchError", "Plan", "RankLost", "RefusalError",
    "Request", "ResourceError", "TimeoutError", "UsageError", "empty", "finalize", "init",
    "is_initialized", "profile", "wait_all", "wait_any",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module 'paceline' has no attribute '{name}'")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
