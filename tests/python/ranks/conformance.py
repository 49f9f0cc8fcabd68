"""torch's own suite for process groups (it comes inside the wheel), run over Paceline.

Not collected by itself: test_conformance.py runs it with pytest in a process of its own, with the
environment that the suite wants. SUITE_AS says what the tests take the backend for, since many ask
for its name: "mpi", for which alone they run all_to_all on the CPU and worlds smaller than 8;
"gloo", for which alone they run what is done with objects and between two ranks, and whose place
we take by PACELINE_REPLACE; or "paceline", a name that they do not know. SUITE_OVER is "paceline",
or "gloo" to compare with.
Ranks are forked: with torch's own spawning each of the 285 tests would import torch anew, once per
rank.
"""

import os
from multiprocessing import get_context

AS, OVER = os.environ["SUITE_AS"], os.environ["SUITE_OVER"]
REPLACES = OVER == "paceline" and AS == "gloo"
if REPLACES:
    os.environ["PACELINE_REPLACE"] = "gloo"  # before torch loads its backends

import torch  # noqa: E402

if OVER == "paceline":
    import paceline.torch  # noqa: F401


class Name(str):
    """The name of our backend, which torch's tests take for another."""

    def __eq__(self, other):
        return other in (AS, "paceline")

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


os.environ["BACKEND"] = AS
torch.set_num_threads(1)

if REPLACES:
    from torch.distributed import distributed_c10d

    served = distributed_c10d.BackendConfig("gloo").get_device_backend_map()
    assert served["cpu"] == "paceline"

from torch.testing._internal.common_distributed import DistTestCases  # noqa: E402

for feature in ("ddp", "subgroup"):
    DistTestCases.backend_feature[feature].add("paceline")

from torch.testing._internal.distributed import distributed_test  # noqa: E402

if REPLACES:  # the profiler's events "gloo:all_reduce" are made by gloo's own C++
    for supported in ("PROFILING", "SEND_RECV_PROFILING"):
        getattr(distributed_test, f"{supported}_SUPPORTED_BACKENDS").remove("gloo")
if OVER == "paceline" and not REPLACES:
    distributed_test.BACKEND = Name("paceline")


class TestOverPaceline(
    distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase
):
    def setUp(self):
        super().setUp()
        self._start_processes(get_context("fork").Process)

    test_barrier_timeout_global = None  # waits for half a minute, and only for gloo


del DistTestCases
