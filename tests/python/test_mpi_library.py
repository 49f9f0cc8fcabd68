"""The launcher of an MPI is known by its name: its library lies beside it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAY = "from paceline import mpi; print(mpi._launcher())"
SHELL = os.path.realpath(shutil.which("sh"))


@pytest.mark.parametrize("name, counts", [
    ("mpiexec.hydra", True), ("hydra_pmi_proxy", True), ("prted", True), ("orterun", True),
    ("sh", False), ("slurmstepd", False),
])
@pytest.mark.parametrize("script", ["{say}; true", "sh -c {quoted}; true"])
def test_the_program_that_starts_ranks_for_an_mpi(tmp_path, name, counts, script):
    """Directly, or by a script; a shell is none, though an MPI may lie beside it."""
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    shutil.copy(SHELL, program)
    say = f"{sys.executable} -c '{SAY}'"
    words = script.format(say=say, quoted=f'"{say}; true"')
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2] / "python")}
    done = subprocess.run([program, "-c", words], capture_output=True, text=True, check=True,
                          timeout=60, env=env)
    assert done.stdout.strip() == (str(program) if counts else "")
