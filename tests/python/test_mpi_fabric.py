"""Intel MPI sends through the libfabric that came with it, whoever else's the system has."""

import ctypes.util

import launched
import mpis
import pytest

FOLDER = mpis.ROOT / "build/mpi/impi/lib"
LIBRARY = FOLDER / "libmpi.so.12"
SETTINGS = {"PACELINE_MPI": str(LIBRARY), "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo",
            "I_MPI_FABRICS": "ofi"}  # fmt: skip
LIMIT_S = 60

pytestmark = [pytest.mark.ranks,
              pytest.mark.skipif(not LIBRARY.exists(), reason="Intel MPI is not installed")]


def lines(**env):
    """What two ranks that count as two nodes say: the libfabric, and the folder of providers."""
    run = launched.start("on_nodes.py", 2, "0,1", launched.RANKS / "mpi_fabric.py",
                         env=SETTINGS | env, timeout_s=LIMIT_S)  # fmt: skip
    assert run.status == 0, run.text()
    return [run.text(rank, "stdout") for rank in range(2)]


@pytest.mark.parametrize("named", [{}, {"FI_PROVIDER_PATH": str(FOLDER) + "/"}])
def test_its_own_and_its_providers_unless_they_are_named(named):
    providers = named.get("FI_PROVIDER_PATH", str(FOLDER))
    assert lines(**named) == [
        f"rank {rank}: {FOLDER}/libfabric.so.1 {providers}" for rank in range(2)
    ]


def test_also_where_only_shared_memory_was_asked_for():
    """Between nodes Intel MPI takes libfabric all the same, and says so on rank 0."""
    for rank, text in enumerate(lines(I_MPI_FABRICS="shm")):
        assert text.endswith(f"rank {rank}: {FOLDER}/libfabric.so.1 {FOLDER}"), text


@pytest.mark.skipif(not ctypes.util.find_library("fabric"), reason="this system has no libfabric")
@pytest.mark.parametrize("off", ["0", "Disable"])
def test_the_systems_where_the_environment_asks_for_it(off):
    for line in lines(I_MPI_OFI_LIBRARY_INTERNAL=off):
        assert "libfabric.so" in line and str(FOLDER) not in line, line
