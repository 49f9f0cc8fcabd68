"""Torch's tensors, and DDP's buckets, in memory that all ranks of a node reach."""

import launched
import mpis
import pytest
from length import each, in_long

from paceline.launch import launch

pytestmark = pytest.mark.ranks

pytest.importorskip("torch")

EXAMPLE = launched.RANKS.parents[2] / "examples/shared_buckets.py"
EVERY = [*launched.names("bucket_checks"), "end"]


@pytest.mark.parametrize("name", EVERY)
@each("ranks", [2], [3])
def test_buckets(name, ranks):
    launched.expect("bucket_checks", name, ranks)


@in_long
def test_on_several_nodes():
    """There it is memory like any other, and everything works."""
    host = next(mpi for mpi in mpis.found() if mpi.family == "mpich")
    assert launched.failures("bucket_checks", 2, mpi=host, nodes="0,1") == {}


@in_long
def test_the_example():
    run = launched.Run()
    words = ["--width", "64", "--layers", "2", "--repeats", "3", "--mib", "1"]
    status = launch(
        [str(EXAMPLE), *words], 2, env=launched.limits(), timeout_s=60, on_line=run.add
    )
    assert status == 0, run.text()
    lines = run.text(0, "stdout").splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "2 ranks, float32", "a training step", "samples per second",
        "bytes of buckets in shared memory", "all_reduce of 1 MiB",
    ], run.text()  # fmt: skip
    # Two layers of 64 x 65 and one of 10 x 65 elements.
    assert lines[3].split()[-2:] == ["0", str(4 * (2 * 64 * 65 + 10 * 65))], lines[3]
