"""Finds the MPI launcher that started this process, if any, by its environment variables."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

OPENMPI, MPICH, STANDARD = "openmpi", "mpich", "standard"

# Set by launchers that started the process more closely: an MPI launcher does not count then.
_CLOSER = ("TORCHELASTIC_RUN_ID", "PACELINE_STORE")

# Ranks find each other by these without any launcher: scripts for srun often set them themselves.
TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class Launcher:
    """An MPI launcher, and what it says about this process."""

    name: str
    families: tuple[str, ...]  # of MPIs that can join its ranks, the likeliest first; empty: none
    rank: int
    ranks: int
    local_rank: int | None = None  # on its node
    local_ranks: int | None = None
    is_srun: bool = False
    has_pmix: bool = False

    @property
    def is_one_node(self) -> bool:
        """True if all ranks are known to be on one node."""
        return self.local_ranks == self.ranks


def mpi_launcher(env: Mapping[str, str] = os.environ) -> Launcher | None:
    """The launcher of more than one rank, or None."""
    if any(env.get(name) for name in _CLOSER):
        return None

    def number(*names: str) -> int | None:
        for name in names:
            if env.get(name, "").isdigit():
                return int(env[name])
        return None

    # srun counts in every case; a batch script's own process has SLURM_NTASKS, too, and is alone.
    task, tasks = number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS")
    # Each family's own variables, then srun's, which may stand beside them.
    rank, ranks = number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE")
    name, families = "mpiexec of Open MPI", (OPENMPI, STANDARD)
    if rank is None:
        rank, ranks = number("PMIX_RANK"), tasks or number("SLURM_NTASKS")
        name, families = "a launcher with PMIx", (OPENMPI, MPICH, STANDARD)
    if rank is None:
        rank, ranks = number("PMI_RANK"), number("PMI_SIZE")
        name, families = "mpiexec of MPICH's family", (MPICH, STANDARD)
    if rank is None:
        rank, ranks = task, tasks
        name, families = "srun without MPI", ()
    if rank is None or ranks is None or ranks < 2:
        return None
    if not families and all(env.get(name) for name in TORCHRUN):
        return None
    local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
    local_ranks = number("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
    # An mpiexec inside of srun numbers its ranks itself, also on their nodes.
    is_srun = (local_rank, task, tasks) == (None, rank, ranks)
    has_pmix = families[:2] == (OPENMPI, MPICH)
    if is_srun:
        name = f"srun with {'PMIx' if has_pmix else 'PMI'}" if families else name
        local_rank, local_ranks = number("SLURM_LOCALID"), _tasks_of_node(env)
    return Launcher(name, families, rank, ranks, local_rank, local_ranks, is_srun, has_pmix)


def _tasks_of_node(env: Mapping[str, str]) -> int | None:
    """Number of tasks that srun has started on this node: "2(x3),1" means 2, 2, 2 and 1."""
    counts: list[int] = []
    for part in env.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        found = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        counts += [int(found[1])] * int(found[2] or 1) if found else []
    node = env.get("SLURM_NODEID", "")
    return counts[int(node)] if node.isdigit() and int(node) < len(counts) else None
