"""The worlds that this process has joined; it leaves them at exit. A fork has none."""

import atexit
import contextlib
import os
import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from paceline import mpi

if TYPE_CHECKING:
    from paceline.communicator import Communicator

_open: "weakref.WeakSet[Communicator]" = weakref.WeakSet()
_before: list[Callable[[], None]] = []  # at exit, while the worlds are still there
_settle: list[Callable[[], None]] = []  # before finalize() leaves a world
_inherited: Any = None  # in a child of fork(): what its parent had joined, kept as it is
_spoiled = False  # a world has been left broken: a rank may be missing


def keep(world: "Communicator") -> "Communicator":
    """Has the process leave the world at exit. Returns the world."""
    if not _open:
        _register()
    _open.add(world)
    return world


def before_leaving(end: Callable[[], None], settle: Callable[[], None]) -> None:
    """Registers `end()`, which is called at exit before the worlds are left, and `settle()`, which
    finalize() calls before it leaves a world."""
    _before.append(end)
    _settle.append(settle)
    _register()


def settle() -> None:
    """Returns when the calls that are still to be made have been made; at once after an error,
    which may keep them from coming."""
    if sys.exc_info()[0] is None:
        for each in _settle:
            each()


def _register() -> None:
    atexit.unregister(_end)
    atexit.register(_end)


def fatal_error() -> BaseException | None:
    """The exception that ends this program; None if it ends normally. In an interactive session the
    last exception that Python keeps has ended nothing."""
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)


def leave(world: "Communicator", fatal: BaseException | None = None) -> None:
    """Leaves the world of a communicator that keep() has; a second call does nothing.

    Completes calls under way first, since a peer may wait for them. After a fatal error it does
    not: peers get the error at once, with the word that it was Ctrl-C.
    """
    global _spoiled
    if world in _open:
        try:
            if fatal is None:
                world._core.complete()
        finally:
            _spoiled = _spoiled or bool(world.broken)
            _open.discard(world)
            world._core.leave(is_interrupted=isinstance(fatal, KeyboardInterrupt))


def by_parent() -> bool:
    """True in a child of fork() whose parent had joined a world."""
    return _inherited is not None


def _end() -> None:
    with contextlib.ExitStack() as ends:  # all of them, whatever some raise
        ends.callback(_leave_all)
        for end in _before:
            ends.callback(end)


def _leave_all() -> None:
    fatal = fatal_error()
    with contextlib.ExitStack() as leaves:
        for world in list(_open):
            leaves.callback(leave, world, fatal)
    # Finalising MPI waits for every rank. After an error one may never come: without it the
    # launcher sees this process fail, and ends the others.
    if not _spoiled and _inherited is None and fatal is None:
        mpi.finalize()


def _forget() -> None:
    """In a child of fork(): the worlds, and the ranks in them, are its parent's."""
    global _inherited, _open
    if _open:
        _inherited = (_inherited, list(_open))
    _open = weakref.WeakSet()


os.register_at_fork(after_in_child=_forget)
