"""torch's own suite for process groups (it comes inside the wheel), run over Paceline.

Not collected by itself: test_conformance.py runs it with pytest in a process of its own, with the
environment that the suite wants. Ranks are forked: with torch's own spawning each of the 285 tests
would import torch anew, once per rank.
"""

import os
from multiprocessing import get_context

import torch

import paceline.torch  # noqa: F401


class Name(str):
    """The name of our backend, which torch's tests take for that of MPI: only for `mpi` do they
    run all_to_all on the CPU, and worlds smaller than 8."""

    def __eq__(self, other):
        return other in ("mpi", "paceline")

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


os.environ["BACKEND"] = "mpi"
torch.set_num_threads(1)

from torch.testing._internal.common_distributed import DistTestCases  # noqa: E402

for feature in ("ddp", "subgroup"):
    DistTestCases.backend_feature[feature].add("paceline")

from torch.testing._internal.distributed import distributed_test  # noqa: E402

distributed_test.BACKEND = Name("paceline")


class TestOverPaceline(
    distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase
):
    def setUp(self):
        super().setUp()
        self._start_processes(get_context("fork").Process)

    test_barrier_timeout_global = None  # waits for half a minute, and only for gloo


del DistTestCases
