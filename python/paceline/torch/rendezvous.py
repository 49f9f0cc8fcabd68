"""`env://` under mpiexec and srun, which do not set the variables that torch reads.

RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE come from the launcher's own variables; the
address of rank 0's store is agreed on over MPI. Only for init_process_group(), whatever the
backend, and only if RANK is not set: `import torch` does not touch MPI.
"""

import importlib
import os
import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from paceline import launchers
from paceline.launchers import Launcher

DEFAULT = dist.constants.default_pg_timeout
# Addresses that are reserved for documentation.
_NOBODYS = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_ours = False  # RANK and its companions were set here


def install() -> None:
    """Installs env:// for processes that an MPI launcher started."""
    if launchers.mpi_launcher() is None:
        return
    # Imported by name: the package has a function of the same name as the module.
    handlers = importlib.import_module("torch.distributed.rendezvous")._rendezvous_handlers
    usual = handlers["env"]

    def handler(url: str, timeout: timedelta = DEFAULT, **keywords: Any) -> Any:
        launcher = launchers.mpi_launcher()
        # A query holds what init_process_group() was told: rank=, world_size=.
        if launcher is None or "?" in url or ("RANK" in os.environ and not _ours):
            return usual(url, timeout=timeout, **keywords)
        return meet(launcher, timeout)

    handlers["env"] = handler


def meet(launcher: Launcher, timeout: timedelta) -> Iterator[tuple[dist.Store, int, int]]:
    """Store, rank and number of ranks, for torch. The store is rank 0's."""
    global _ours
    from paceline import mpi

    library = mpi.ready(launcher, int(timeout.total_seconds() * 1000))
    world = library.world()
    mpi.check_size(launcher, world.size)
    store, said = None, ""
    if world.rank == 0:
        host = own_host(launcher)
        store = dist.TCPStore(
            host, int(os.environ.get("MASTER_PORT", "0")), world.size, is_master=True,
            timeout=timeout, wait_for_workers=False,
        )  # fmt: skip
        said = f"{host} {store.port}"
    host, port = world.allgather(said)[0].split()
    if store is None:
        store = dist.TCPStore(host, int(port), world.size, is_master=False, timeout=timeout)
    meet_in_store(world, store, timeout)
    _ours = True
    names = {
        "RANK": world.rank, "WORLD_SIZE": world.size, "LOCAL_RANK": launcher.local_rank,
        "LOCAL_WORLD_SIZE": launcher.local_ranks, "MASTER_ADDR": host, "MASTER_PORT": port,
    }  # fmt: skip
    os.environ.update({name: str(value) for name, value in names.items() if value is not None})
    yield store, world.rank, world.size


def meet_in_store(world: Any, store: dist.Store, timeout: timedelta) -> None:
    """Calls MPI until every rank has the address.

    Some MPIs send only during calls, and the code after this may not call MPI.
    """
    deadline = time.monotonic() + timeout.total_seconds()
    store.add("paceline/met", 1)
    while store.add("paceline/met", 0) < world.size and time.monotonic() < deadline:
        world.wake_peers()
        time.sleep(0.001)


def own_host(launcher: Launcher) -> str:
    """The address by which the other ranks reach this one; MASTER_ADDR if it is set."""
    if os.environ.get("MASTER_ADDR") and not _ours:
        return os.environ["MASTER_ADDR"]
    if launcher.is_one_node:
        return "127.0.0.1"
    # The address of the way out; connecting a datagram socket sends nothing. A machine's name may
    # mean its loopback, or nothing, so it is the last resort.
    for family, nobodys in _NOBODYS:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((nobodys, 9))
                return probe.getsockname()[0]
        except OSError:
            continue
    return socket.gethostname()
