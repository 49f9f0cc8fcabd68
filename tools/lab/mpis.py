"""Starts ranks of the MPIs on the nodes: by environment alone, so that any mpiexec works."""

import os
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from lab import idle
from lab.network import INTERFACE
from lab.plan import ROOT, LabError, hosts_file

AGENT = ROOT / "tools/lab/agent"
FOLDER = "PACELINE_LAB_FOLDER"  # where the agent finds the nodes' sockets
INSTALLED = ROOT / "build/mpi"
# Variables by which a launcher tells its own processes things; another node's must not see them.
OF_LAUNCHERS = ("PMIX_", "PRTE_", "PMI_", "HYDRA_", "HYDI_", "OMPI_COMM_WORLD", "MPIEXEC_")


@dataclass(frozen=True)
class Mpi:
    """An MPI that the lab can start."""

    name: str
    family: str
    library: str
    launcher: str = "bin/mpiexec"
    of_system: bool = False
    installed_as: str = ""  # another name, where this is that one by other settings

    @property
    def folder(self):
        """The folder of ./dev mpi, or of the system's packages."""
        return Path("/usr") if self.of_system else INSTALLED / (self.installed_as or self.name)

    @property
    def mpiexec(self):
        """Its launcher."""
        return self.folder / self.launcher


MPIS = {mpi.name: mpi for mpi in (
    Mpi("openmpi4", "openmpi", f"lib/{sysconfig.get_config_var('MULTIARCH')}/libmpi.so.40",
        "bin/mpiexec.openmpi", of_system=True),
    Mpi("openmpi5", "openmpi", "lib/libmpi.so.40"),
    Mpi("mpich5", "mpich", "lib/libmpi.so.12"),
    Mpi("mpich5-ucx", "mpich", "lib/libmpi.so.12", installed_as="mpich5"),
    Mpi("impi", "mpich", "lib/libmpi.so.12"),
)}


def installed(name):
    """The MPI, which must be installed. Raises LabError."""
    if not MPIS[name].mpiexec.exists():
        by = "root, with apt-get" if MPIS[name].of_system else "anybody"
        raise LabError(f"{name} is not installed ({MPIS[name].mpiexec} is not there); ./dev mpi, "
                       f"run by {by}, installs it")
    return MPIS[name]


def of_the_user(environment):
    """The part of it for another node: all but what one launcher's processes tell each other."""
    return {name: value for name, value in environment.items()
            if not name.startswith(OF_LAUNCHERS)}


# Settings of both Open MPIs: messages go by TCP between nodes.
OPENMPI = {"OMPI_MCA_btl_tcp_if_include": INTERFACE, "OMPI_MCA_pml": "ob1",
           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def openmpi4(folder, ppn):
    """ORTE starts its daemons by the agent."""
    return {
        **OPENMPI, "OMPI_MCA_btl": "self,vader,tcp",
        "OMPI_MCA_plm_rsh_agent": str(AGENT), "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
        "OMPI_MCA_orte_default_hostfile": str(folder / hosts_file("openmpi", ppn)),
        "OMPI_MCA_oob_tcp_if_include": INTERFACE,
    }


def openmpi5(folder, ppn):
    """PRRTE starts its daemons by the agent."""
    return {
        **OPENMPI, "OMPI_MCA_btl": "self,sm,tcp",
        "PRTE_MCA_plm_ssh_agent": str(AGENT), "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_MCA_prte_default_hostfile": str(folder / hosts_file("openmpi", ppn)),
        "PRTE_MCA_prte_if_include": INTERFACE,
        "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def mpich5(folder, ppn):
    """Hydra; libfabric, with the settings with which Paceline starts MPI."""
    return {**hydra(folder, ppn), "MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp",
            "FI_TCP_IFACE": INTERFACE}


def mpich5_ucx(folder, ppn):
    """The wheel's default, which loses receives from any source between nodes."""
    return {**hydra(folder, ppn), "MPIR_CVAR_CH4_NETMOD": "ucx", "UCX_TLS": "tcp,self",
            "UCX_NET_DEVICES": INTERFACE}


def hydra(folder, ppn):
    """Settings of MPICH's launcher."""
    return {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": str(AGENT),
            "HYDRA_HOST_FILE": str(folder / hosts_file("mpich", ppn))}


def impi(folder, ppn):
    """Hydra as well, under names of its own. RxM's buffers hold 16 KiB and our header."""
    return {
        "I_MPI_HYDRA_BOOTSTRAP": "ssh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": str(AGENT),
        "I_MPI_HYDRA_HOST_FILE": str(folder / hosts_file("mpich", ppn)),
        "I_MPI_PERHOST": str(ppn), "I_MPI_FABRICS": "shm:ofi",
        "FI_PROVIDER": "tcp", "FI_TCP_IFACE": INTERFACE,
        "FI_PROVIDER_PATH": str(MPIS["impi"].folder / "lib"), "FI_OFI_RXM_BUFFER_SIZE": "17408",
    }


# Ranks in turn on all nodes: of hosts with one place each Hydra begins again with the first.
IN_TURN = {"openmpi4": {"OMPI_MCA_rmaps_base_mapping_policy": "node"},
           "openmpi5": {"PRTE_MCA_rmaps_default_mapping_policy": "node"}}


def environment(name, folder, ppn, spin=False, scattered=False):
    """The environment of this MPI's launcher and its ranks on a node.

    spin: they poll as they would with a core for each. scattered: consecutive ranks lie on
    different nodes."""
    root = MPIS[name].folder
    settings = {"openmpi4": openmpi4, "openmpi5": openmpi5, "mpich5": mpich5,
                "mpich5-ucx": mpich5_ucx, "impi": impi}
    path = os.pathsep.join((str(root / "bin"), os.environ.get("PATH", os.defpath)))
    resting = {} if spin else idle.environment(folder, ppn)
    placed = settings[name](Path(folder), ppn)
    if scattered:
        placed = {**(placed if name in IN_TURN else settings[name](Path(folder), 1)),
                  **IN_TURN.get(name, {})}
    return {**placed, **resting, FOLDER: str(folder),
            "VIRTUAL_ENV": str(root), "PATH": path,
            "PACELINE_MPI": str(root / MPIS[name].library)}


def words(name, ranks, command):
    """The command that starts ranks of this MPI, on a node."""
    more = ["--oversubscribe", "--bind-to", "none"] if MPIS[name].family == "openmpi" else []
    return [str(installed(name).mpiexec), *more, "-n", str(ranks), *command]
