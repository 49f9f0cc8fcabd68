"""The drop-in library between nodes of the emulated cluster."""

import os
import sys

import pytest
from lab import mpis, state
from length import LONG, in_long
from test_lab import RANKS, needs_lab, printed
from test_preload import built, served

pytestmark = pytest.mark.ranks

NODES, STARTS = 9, 8 if LONG else 1


@needs_lab
@pytest.mark.parametrize("name", ["mpich5-ucx", pytest.param("mpich5", marks=in_long)])
def test_every_start_serves(tmp_path_factory, name):
    """Over both network layers of MPICH. Over UCX a receive from anybody may never end: where some
    are posted, almost no start of so many nodes gets over the look at the links."""
    pytest.importorskip("mpi4py")
    library = built(mpis.MPIS[name].folder / "bin/mpicc")
    words = mpis.words(name, NODES, ["env", f"LD_PRELOAD={library}", sys.executable,
                                    str(RANKS / "dropped_in.py")])  # fmt: skip
    with state.lab(tmp_path_factory.mktemp("lab") / "lab", NODES) as lab:
        mine = mpis.environment(name, lab.plan().folder, 1)
        for start in range(STARTS):
            environment = {**os.environ, **mine, "MPI4PY_LIBMPI": mine["PACELINE_MPI"],
                           "PACELINE_PRELOAD_SUMMARY": "on", "PACELINE_MACHINE": "",
                           "XDG_CACHE_HOME": str(lab.plan().file(f"cache{start}"))}
            text = printed(lab, *words, environment=environment)
            assert text.count(": right, first") == NODES, text
            assert f"measured the links between {NODES} nodes" in text, text
            assert served(text)["Allreduce"][0] == 1, text
