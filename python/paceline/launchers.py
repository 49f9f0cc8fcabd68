"""Which MPI launcher started this process, if one has: read from the variables that they set."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

OPENMPI, MPICH, STANDARD = "openmpi", "mpich", "standard"

# Who has started a process most closely: an MPI launcher further out does not count then.
_CLOSER = ("TORCHELASTIC_RUN_ID", "PACELINE_STORE")


@dataclass(frozen=True)
class Launcher:
    """An MPI launcher, and what it says about this process."""

    name: str
    families: tuple[str, ...]  # of MPIs that can join its ranks, the likeliest first; empty: none
    rank: int
    ranks: int
    local_rank: int | None = None  # on its node
    local_ranks: int | None = None

    @property
    def is_one_node(self) -> bool:
        """Whether all ranks are known to be on one node."""
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

    # Each family's own variables, then srun's, which may stand beside them.
    rank, ranks = number("OMPI_COMM_WORLD_RANK"), number("OMPI_COMM_WORLD_SIZE")
    name, families = "mpiexec of Open MPI", (OPENMPI, STANDARD)
    if rank is None:
        rank, ranks = number("PMIX_RANK"), number("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
        name, families = "a launcher with PMIx", (OPENMPI, MPICH, STANDARD)
    if rank is None:
        rank, ranks = number("PMI_RANK"), number("PMI_SIZE")
        name, families = "mpiexec of MPICH's family", (MPICH, STANDARD)
    if rank is None:
        # Not SLURM_NTASKS: a batch script's own process has it, too, and is alone.
        rank, ranks = number("SLURM_PROCID"), number("SLURM_STEP_NUM_TASKS")
        name, families = "srun without MPI", ()
    if rank is None or ranks is None or ranks < 2:
        return None
    return Launcher(
        name, families, rank, ranks,
        number("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"),
        number("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"),
    )  # fmt: skip
