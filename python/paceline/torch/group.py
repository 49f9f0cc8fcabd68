"""The process group: a world, or a part of one, behind the interface of torch.distributed."""

import hashlib
import os
import secrets
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from paceline import _core, calls, launchers, open_worlds, world
from paceline.communicator import Communicator
from paceline.errors import TimeoutError, UsageError
from paceline.torch import minors, replace
from paceline.torch.collectives import Collectives
from paceline.torch.gloo import GlooOnly
from paceline.torch.p2p import PointToPoint
from paceline.torchrun import TorchStore, attempt

_started = 0  # default groups: keys of an earlier one stay in a store that torchrun keeps
_made: dict[str, int] = {}  # other groups, by what tells their ranks from others
_drawn: dict[str, int] = {}  # the tag of such a group, by its place


class PacelineGroup(Collectives, GlooOnly, PointToPoint, minors.Base):
    """Ranks as torch.distributed sees them: the backend of a group, or the group itself if torch
    supports no backends in Python. Made by create()."""

    def __init__(
        self, store: Any, comm: Communicator, timeout: timedelta, owns_world: bool,
        taken_for: str = "",
    ):  # fmt: skip
        self._backend_name = taken_for or "paceline"
        self._attach(store, comm, timeout)
        self._comm = comm
        self._owns_world = owns_world
        self._coalesced = None
        self._is_gloo = taken_for == "gloo"
        self._begin_p2p()
        self.set_timeout(timeout)

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the time-out of this group's later calls. If it is torch's default,
        PACELINE_TIMEOUT_MS counts instead."""
        limit_ms = _chosen_ms(timeout)
        if limit_ms is None and os.environ.get("PACELINE_TIMEOUT_MS"):
            limit_ms = _core.option("timeout_ms")
        self._knobs = calls.knobs(timeout_ms=limit_ms or _ms(timeout))

    _set_default_timeout = set_timeout

    def shutdown(self) -> None:
        """Part of destroy_process_group(): leaves the world with the group that made it.

        Drops the communicator, since torch's C++ may keep the group until the process ends.
        """
        self._end_p2p()
        if self._owns_world:
            if world.torch_world is self._comm:
                world.torch_world = None
            open_worlds.leave(self._comm)
        self._comm = Destroyed(self._comm.rank, self._comm.size)

    abort = shutdown


class Destroyed:
    """Takes the place of the communicator of a group that has been destroyed."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size = rank, size

    def __getattr__(self, name: str) -> Any:
        raise UsageError(
            "this process group has been destroyed and makes no more calls; make a new one.")


def create(options: Any, backend_options: Any) -> PacelineGroup:
    """Makes the group that torch asks for.

    The first group, of all ranks, joins a world through torch's store. Later groups are parts of
    that world, and agree on a tag through the store. Without a world they join one of their own.
    """
    global _started
    taken_for = replace.taken_for(options.group_rank)
    if backend_options is not None and not taken_for:  # gloo's are ignored by torch itself
        raise UsageError("init_process_group: the backend 'paceline' takes no pg_options.")
    ranks = list(options.global_ranks_in_group)
    if not ranks and options.group_rank == 0:
        minors.warn_if_newer()
    prefix = f"paceline{_started + (not ranks)}/{attempt()}"
    if ranks:
        return _create_part(prefix, ranks, options, taken_for)
    comm = _join_default(prefix, options, taken_for)
    _started += 1
    world.torch_world = comm
    return PacelineGroup(options.store, comm, options.timeout, True, taken_for)


def _create_part(prefix: str, ranks: list[int], options: Any, taken_for: str) -> PacelineGroup:
    """Makes the group of these ranks. A failed try may be repeated. Torch's names count tries,
    which may differ between ranks, so the place is named after the ranks."""
    digest = hashlib.blake2b(repr(ranks).encode(), digest_size=8).hexdigest()
    alike = f"{prefix}/{digest}"
    place = f"{alike}/{_made.get(alike, 0)}"
    store = dist.PrefixStore(place, _without_names(options.store))
    owns_world = world.torch_world is None
    if owns_world:
        comm = _join(TorchStore(store, ""), place, options, taken_for)
    else:
        comm = world.torch_world.subgroup(ranks, _agree(store, place, options))
    _made[alike] = _made.get(alike, 0) + 1
    return PacelineGroup(store, comm, options.timeout, owns_world, taken_for)


def _join_default(prefix: str, options: Any, taken_for: str) -> Communicator:
    """A world of all ranks: over the MPI that started them, else through the store."""
    launcher = launchers.mpi_launcher()
    if launcher is None or not launcher.families or launcher.ranks != options.group_size:
        # A try is repeated in the same place, while torch's names count on.
        store = TorchStore(_without_names(options.store), prefix)
        return _join(store, prefix, options, taken_for)
    # The order of ranks is torch's, which a caller may have chosen.
    joined = world.join_launched(launcher, start_timeout_ms=_chosen_ms(options.timeout))
    return open_worlds.keep(joined.split(0, options.group_rank))


def _join(store: TorchStore, place: str, options: Any, taken_for: str) -> Communicator:
    try:
        return world.join(store, options.group_rank, options.group_size, "torch",
                          start_timeout_ms=_chosen_ms(options.timeout), place=place)
    except TimeoutError as error:
        if taken_for:  # a rank without it is in that backend, unseen by the others
            error.args = (f"{error} Is PACELINE_REPLACE={taken_for} set on every rank? All must "
                          "have it, or none.",)  # fmt: skip
        raise


def _without_names(store: Any) -> Any:
    """The store that the caller passed: torch adds prefixes with the names of group and device."""
    for _ in range(2):
        if isinstance(store, dist.PrefixStore):
            store = store.underlying_store
    return store


def _chosen_ms(timeout: timedelta) -> int | None:
    """Milliseconds of a time-out; None for torch's default, so that Paceline's options count."""
    return None if timeout == dist.constants.default_pg_timeout else _ms(timeout)


def _ms(timeout: timedelta) -> int:
    return max(1, round(timeout.total_seconds() * 1e3))


def _agree(store: Any, place: str, options: Any) -> int:
    """A tag of this group alone, which its first rank draws once."""
    shared = TorchStore(store, "")
    if options.group_rank == 0:
        if place not in _drawn:
            _drawn[place] = secrets.randbits(63)
            shared.set("tag", str(_drawn[place]).encode())
        return _drawn[place]
    return int(shared.get("tag", options.timeout))
