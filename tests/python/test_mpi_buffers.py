"""Intel MPI's buffers: as long as a message of 16 KiB with our header, and equal on all ranks."""

import launched
import mpis
import pytest

FOLDER = mpis.ROOT / "build/mpi/impi"
LIBRARY = FOLDER / "lib/libmpi.so.12"
SCRIPT = launched.RANKS / "mpi_buffers.py"
NAME = "FI_OFI_RXM_BUFFER_SIZE"
SETTINGS = {
    "PACELINE_MPI": str(LIBRARY), "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo",
    "FI_PROVIDER_PATH": str(FOLDER / "lib"), "I_MPI_FABRICS": "ofi",
}  # fmt: skip
LIMIT_S = 60

pytestmark = [pytest.mark.ranks,
              pytest.mark.skipif(not LIBRARY.exists(), reason="Intel MPI is not installed")]


def start(*words, **env):
    """Two ranks that count as two nodes, without a launcher of MPI."""
    return launched.start("on_nodes.py", 2, "0,1", *words, env=SETTINGS | env, timeout_s=LIMIT_S)


@pytest.mark.parametrize("env, expected", [({}, "17408"), ({NAME: "32768"}, "32768")])
def test_room_for_the_header_unless_it_is_set(env, expected):
    run = start(SCRIPT, **env)
    assert run.status == 0, run.text()
    lines = [run.text(rank, "stdout") for rank in range(2)]
    assert lines == [f"rank {rank}: {expected}" for rank in range(2)]


def test_buffers_that_differ_are_an_error_at_once():
    run = start(launched.RANKS / "with_values.py", NAME, "16384,17408", SCRIPT)
    assert run.status not in (0, 124), run.text()
    for rank in range(2):
        text = run.text(rank)
        assert f"{NAME} differs between ranks (rank 0: 16384, rank 1: 17408)" in text, text


@pytest.mark.parametrize("env, advised", [({}, True), ({NAME: "17408"}, False)])
def test_doctor_says_what_only_a_launcher_can_do(env, advised):
    run = launched.start("one.py", 1, "from paceline.cli.doctor import mpi; print(mpi(2).advice)",
                         env=SETTINGS | env)  # fmt: skip
    assert run.status == 0 and (f"-genv {NAME} 17408" in run.text()) == advised, run.text()
