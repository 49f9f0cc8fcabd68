"""The world: all ranks of a run. init() joins it, and finalize() leaves it."""

import os
import sys
import time
from datetime import timedelta
from typing import Any

from paceline import _core, cause, launchers, mpi, open_worlds
from paceline.communicator import Communicator
from paceline.errors import ResourceError, TimeoutError, UsageError

_world: Communicator | None = None
_joined = 0  # worlds that init() has joined: later ones must not meet the keys of earlier ones

# The world of torch.distributed, once there is one: init() then needs no second one.
torch_world: Communicator | None = None

cause.install()


def init(
    rank: int | None = None,
    ranks: int | None = None,
    store: Any = None,
    *,
    timeout_ms: int | None = None,
    start_timeout_ms: int | None = None,
) -> Communicator:
    """Joins the world and returns the communicator of all its ranks. All ranks must call it.

    Without arguments the world has the ranks that `paceline run`, torchrun, mpiexec or srun
    started. After torch.distributed.init_process_group("paceline") it has the ranks of that group.
    Otherwise it has one rank. A second call returns the same communicator.

    rank, ranks, store: this rank's number, the number of ranks, and their meeting place. `store` is
    a folder, new for each run, that all ranks can write to; or an object with set(key, bytes) and
    get(key, timedelta) -> bytes. get() is called repeatedly, each time with at most half a second,
    and raises any exception if the key is still missing then.
    timeout_ms, start_timeout_ms: time-outs of a call and of joining, in milliseconds; None:
    PACELINE_TIMEOUT_MS and PACELINE_START_TIMEOUT_MS.

    All ranks may repeat a start that failed. They meet in the first try that all of them join in
    time.

    Raises UsageError for wrong arguments, TimeoutError if a rank does not join in time,
    ResourceError if shared memory runs out or an MPI is missing, and RefusalError if the MPI does
    not belong to the launcher.
    """
    global _world, _joined
    for name, value in {"timeout_ms": timeout_ms, "start_timeout_ms": start_timeout_ms}.items():
        if value is not None:
            _core.checked_option(name, str(value), f"init: {name}")
    if _world is not None and not _world.broken:
        if rank not in (None, _world.rank) or ranks not in (None, _world.size):
            raise UsageError(
                f"init: this process is rank {_world.rank} of {_world.size} already; call "
                "paceline.finalize() before it joins another world."
            )
        return _world
    if (rank is None) != (ranks is None):
        raise UsageError("init: rank and ranks belong together; pass both or neither.")
    if rank is None and torch_world is not None and not torch_world.broken:
        _joined += 1
        _world = torch_world.subgroup(range(torch_world.size), 0x70616365 << 32 | _joined)
        return _world
    launcher = launchers.mpi_launcher()
    if rank is None and launcher is not None:
        _refuse_child()
        _world = join_launched(launcher, timeout_ms, start_timeout_ms)
        return _world
    if rank is None or ranks is None:
        _refuse_child()
        rank, ranks, store = _launched()
    if store is None and ranks != 1:
        raise UsageError(f"init: {ranks} ranks need a store to find each other; pass store=.")
    _world = join(store, rank, ranks, f"init{_joined + 1}", timeout_ms, start_timeout_ms)
    _joined += 1
    return _world


def empty(shape: Any, dtype: Any = "float32") -> Any:
    """Communicator.empty() of the world: an array in memory that all ranks of a node reach.

    Returns a tensor for a torch dtype. Collectives of a torch.distributed group with the backend
    "paceline" also work on it directly; paceline.torch.empty() makes tensors for one such group.
    """
    return init().empty(shape, dtype)


def is_initialized() -> bool:
    """True after init(), until finalize()."""
    return _world is not None


def finalize() -> None:
    """Leaves the world. Its communicators cannot be used any more. Happens at exit, too.

    Completes the calls under way first, and those that engines and KVStores still hold.
    """
    global _world
    if _world is not None:
        open_worlds.settle()
        world, _world = _world, None
        open_worlds.leave(world, fatal=sys.exc_info()[1])


def join(
    store: Any, rank: int, ranks: int, name: str,
    timeout_ms: int | None = None, start_timeout_ms: int | None = None, place: str = "",
) -> Communicator:  # fmt: skip
    """Joins the world `name` through `store`; at exit the process leaves it.

    A try that failed may be repeated under the same name. `place` tells worlds apart that have the
    same name in several stores.
    """
    libraries = mpi.libraries_to_start() if ranks > 1 else []
    place = place or (store if isinstance(store, str) else "")
    if store is not None and not isinstance(store, str):
        store = _Waited(store)
    core = _core.join(store, rank, ranks, name, place, timeout_ms, start_timeout_ms, libraries)
    return open_worlds.keep(Communicator(core))


class _Waited:
    """A store whose get() raises TimeoutError for any error after its time is up."""

    def __init__(self, store: Any):
        self._store = store
        self.set = store.set

    def get(self, key: str, timeout: timedelta) -> bytes:
        begin = time.monotonic()
        try:
            return self._store.get(key, timeout)
        except Exception as error:
            is_early = time.monotonic() - begin < 0.9 * timeout.total_seconds()
            if is_early or isinstance(error, (ResourceError, UsageError)):
                raise
            raise TimeoutError(f"start-up: '{key}' is not set ({error}).") from error


def join_launched(
    launcher: launchers.Launcher, timeout_ms: int | None = None, start_timeout_ms: int | None = None
) -> Communicator:
    """Joins a world of all ranks that an MPI launcher started; at exit the process leaves it."""
    return open_worlds.keep(Communicator(mpi.join_launched(launcher, timeout_ms, start_timeout_ms)))


def _forget() -> None:
    """In a child of fork(): the worlds are its parent's."""
    global _world, torch_world
    _world = torch_world = None


os.register_at_fork(after_in_child=_forget)


def _refuse_child() -> None:
    """Raises UsageError in a fork of a rank: the launcher's variables name its parent."""
    if open_worlds.by_parent():
        raise UsageError(
            "init: this process was forked from a rank that has joined a world; call collectives "
            "in that rank, fork before it joins, or pass rank, ranks and store for another world."
        )


def _launched() -> tuple[int, int, Any]:
    """Rank, ranks and store as the launcher of this process has set them."""
    ranks = _core.option("ranks")
    if ranks > 1 or _core.option("store"):
        return _core.option("rank"), ranks, _core.option("store") or None
    if all(os.environ.get(name) for name in launchers.TORCHRUN):
        from paceline.torchrun import torchrun_store

        return torchrun_store(_core.option("start_timeout_ms"))
    return 0, 1, None
