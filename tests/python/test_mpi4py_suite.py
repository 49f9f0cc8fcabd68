"""mpi4py's own tests of collectives, communicators and requests, under the drop-in library and
while calls are recorded. They know nothing of this project."""

import os
import re
import subprocess
import sys
from importlib import metadata

import launched
import mpis
import pytest
from length import LONG, in_long
from test_preload import built, mpi_of, mpicc_of

pytestmark = pytest.mark.ranks
pytest.importorskip("mpi4py")

MODULES = (
    "cco_buf", "cco_buf_inter", "cco_nb_buf", "cco_nb_vec", "cco_ngh_buf", "cco_ngh_obj", "cco_obj",
    "cco_obj_inter", "cco_pr_buf", "cco_pr_ngh_buf", "cco_pr_vec", "cco_vec", "cco_vec_inter",
    "comm", "comm_inter", "comm_topo", "p2p_buf", "p2p_obj", "request",
)  # fmt: skip
HOSTS = ("openmpi4", "openmpi5", "mpich5")  # mpi4py's wheel does not know Debian's MPICH
SHORT = {("openmpi4", "cco_obj", "served"), ("openmpi4", "cco_vec", "served"),
         ("mpich5", "cco_nb_buf", "served"), ("openmpi4", "cco_ngh_obj", "recorded")}  # fmt: skip
RANKS, LIMIT_S = 3 if LONG else 2, 170
# The tests are in mpi4py's source, not in its wheel: ./dev mpi puts them there.
SUITE = mpis.ROOT / f"build/mpi/mpi4py-{metadata.version('mpi4py')}/test"


@pytest.mark.parametrize("name, module, how", [
    pytest.param(*row, marks=[in_long] * (row not in SHORT))
    for row in ((name, module, how) for name in HOSTS for module in MODULES
                for how in ("served", "recorded"))
])  # fmt: skip
def test_module(tmp_path, name, module, how):
    mpi = mpi_of(name)
    if not SUITE.exists():
        pytest.skip("mpi4py-tests is not installed (./dev mpi)")
    env = {**os.environ, **launched.limits(), "LD_PRELOAD": str(built(mpicc_of(mpi))),
           "MPI4PY_LIBMPI": str(mpi.library)}  # fmt: skip
    if how == "recorded":
        env |= {"PACELINE_PRELOAD": "none", "PACELINE_PROFILE": str(tmp_path)}
    done = subprocess.run(
        mpi.command(RANKS, sys.executable, "-m", "unittest", "-q", f"test_{module}"), env=env,
        cwd=SUITE, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"Ran [1-9]\d* test", done.stdout), done.stdout
    assert "pass through to the host MPI" not in done.stdout, done.stdout
    files = len(list(tmp_path.glob("*.profile")))  # made at the first collective
    # Open MPI 4.1 has no persistent collectives, and mpi4py leaves their tests out.
    has_some = module.startswith("cco_") and not (name == "openmpi4" and "_pr_" in module)
    expected = {RANKS} if has_some else {0, RANKS}
    assert files in (expected if how == "recorded" else {0}), done.stdout
