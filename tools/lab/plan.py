"""The plan of a lab: number of nodes, rate of their links, and place of its files."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_NODES, MOST_PPN = 64, 16
# Format of the number of ranks in a list of hosts, by the MPI's family.
HOSTS = {"mpich": ":{}", "openmpi": " slots={}"}


class LabError(Exception):
    """An error of the lab, with the remedy, in a sentence."""


def hosts_file(family, ppn):
    """The name of the list of all nodes, with so many ranks each."""
    return f"{family}-{ppn}.hosts"


@dataclass(frozen=True)
class Plan:
    """Everything that is asked for; the same for all nodes."""

    nodes: int
    ppn: int  # ranks that mpiexec starts on a node before it goes on to the next
    rate: float  # bits per second, each way
    rate_text: str
    folder: str  # in memory, seen by all nodes and not from outside: where their sockets are

    @property
    def keep(self):
        """Paths that nodes see although they lie in a folder that is private to each."""
        return str(ROOT), self.folder

    def name(self, node):
        """The host name of a node."""
        return f"node{node}"

    def socket(self, node):
        """The path of the socket on which a node listens."""
        return Path(self.folder) / f"{self.name(node)}.socket"

    def file(self, name):
        """One of the lab's files, as nodes see it."""
        return Path(self.folder) / name

    def to_json(self):
        """The plan as text for other processes."""
        return json.dumps(asdict(self))


def plan_from(text):
    """The Plan that to_json() wrote."""
    return Plan(**json.loads(text))
