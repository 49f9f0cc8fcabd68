"""launched.left() sees what stays in shared memory, though files there have no names;
launched.outlived() sees processes."""

import mmap
import os
import signal
import subprocess
import sys
import tempfile

import launched
import pytest

pytestmark = pytest.mark.ranks


@pytest.fixture
def keeper():
    """A process that runs this program and then waits; it has ended when the test has."""
    running = []

    def start(program):
        running.append(subprocess.Popen(
            [sys.executable, "-c", f"{program}\nprint(flush=True); input()",
             launched.shared_folder()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **launched.limits()},
        ))  # fmt: skip
        assert running[-1].stdout.readline() == "\n"
        return running[-1].pid

    yield start
    for process in running:
        process.kill()
        process.communicate()
    assert launched.left() == []


UNNAMED = """
import mmap, os, sys
file = os.open(sys.argv[1], os.O_TMPFILE | os.O_RDWR, 0o600)
os.posix_fallocate(file, 0, 8192)
"""
MEMFD = """
import os
file = os.memfd_create("paceline")
os.ftruncate(file, 8192)
"""
MAPPED = "import mmap\nmemory = mmap.mmap(file, 8192)\nos.close(file)"


@pytest.mark.parametrize("how", ["", MAPPED])
def test_a_file_without_a_name(keeper, how):
    pid = keeper(UNNAMED + how)
    found = launched.left(wait_s=0)
    assert any(one.startswith(f"{pid} (") and one.endswith("(deleted)") for one in found), found
    if os.geteuid() == 0:
        pages = -(-8192 // mmap.PAGESIZE)
        assert f"{pages} pages of {launched.shared_folder()}" in found


@pytest.mark.parametrize("how", ["", MAPPED])
def test_memory_in_no_folder(keeper, how):
    pid = keeper(MEMFD + how)
    (found,) = launched.left(wait_s=0)
    assert found.startswith(f"{pid} (") and "/memfd:paceline (deleted)" in found


def test_a_name():
    with tempfile.NamedTemporaryFile(dir=launched.shared_folder()) as file:
        assert file.name in launched.left(wait_s=0)


def test_a_process_that_outlives_its_test():
    """In a session of its own, as ranks are; one whose parent has ended."""
    away = subprocess.run(["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"],
                          capture_output=True, text=True, check=True).stdout.strip()
    found = [line.partition(" ") for line in launched.outlived(wait_s=0)]
    os.kill(int(away), signal.SIGKILL)
    assert [line.split()[-2:] for number, _, line in found if number == away] == [["sleep", "60"]]
