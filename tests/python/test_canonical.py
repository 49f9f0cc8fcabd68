"""numbers=canonical: one result, bit for bit, wherever the ranks are and whatever carries it."""

import re
import sys

import launched
import mpis
import pytest
import test_preload
from length import each, in_long

pytestmark = pytest.mark.ranks

CANONICAL = {"PACELINE_NUMBERS": "canonical"}
FAR = ("bruck", "direct", "gather")
NEWEST = [mpi for mpi in mpis.found() if mpi.name in ("openmpi5", "mpich5")]


def said(run, ranks):
    """Each rank's digest, sorted; fails where the run did."""
    assert run.status == 0, run.text()
    digests = re.findall(r"digest (\w{64})", run.text())
    assert len(digests) == ranks, run.text()
    return sorted(digests)


def near(ranks, way="paceline", **env):
    return launched.start("canonical.py", ranks, way, env={**CANONICAL, **env})


def far(mpi, nodes, way="paceline", **env):
    ranks = nodes.count(",") + 1
    return launched.start(
        "on_nodes.py", ranks, nodes, launched.RANKS / "canonical.py", way, mpi=mpi,
        env={**CANONICAL, **env},
    )


@pytest.mark.parametrize("ranks", [1, 4])
def test_ranks_of_a_node(ranks):
    digests = said(near(ranks), ranks)
    assert said(near(ranks, PACELINE_PROGRESS="caller"), ranks) == digests


@pytest.mark.parametrize("name", FAR)
def test_messages_in_segments(name):
    asked = ",".join(f"{c}={name}" for c in ("allreduce", "reduce"))
    said(near(3, PACELINE_ALGORITHM=asked, PACELINE_SEGMENTS="3"), 3)


@each("mpi", NEWEST[:1], NEWEST[1:])
def test_ranks_of_several_nodes(mpi):
    digests = said(far(mpi, "0,1,1"), 3)
    cut = {"PACELINE_ALGORITHM": "allreduce=direct,reduce=bruck", "PACELINE_SEGMENTS": "5"}
    assert digests == said(far(mpi, "0,1,2", **cut), 3) == said(near(3), 3)


@in_long
def test_torch():
    pytest.importorskip("torch")
    assert said(near(2, "torch"), 2) == said(near(2), 2)


def test_the_drop_in_library():
    pytest.importorskip("mpi4py")
    mpi = test_preload.mpi_of("openmpi4")
    script = launched.RANKS / "canonical.py"
    library = test_preload.built(test_preload.mpicc_of(mpi))
    status, text = test_preload.run(
        mpi, 3, library, sys.executable, script, "mpi4py", MPI4PY_LIBMPI=str(mpi.library),
        **CANONICAL,
    )
    assert status == 0, text
    assert text.count("digest ") == 3 and test_preload.served(text)["Allreduce"][0] > 0, text


@pytest.mark.parametrize("name", ["ring", "recursive_doubling"])
def test_other_algorithms_are_refused_and_would_have_other_bits(name):
    refused = near(3, PACELINE_ALGORITHM=f"allreduce={name}")
    assert refused.status != 0
    for words in ("RefusalError", f"allreduce/{name}", "numbers is canonical", "algorithm=direct"):
        assert words in refused.text(), refused.text()
    stable = {"PACELINE_NUMBERS": "stable", "PACELINE_ALGORITHM": f"allreduce={name}"}
    wrong = near(3, **stable)
    assert wrong.status != 0 and "not as in rank order" in wrong.text(), wrong.text()


@pytest.mark.parametrize("other", ["canonical", "fast"])
def test_all_ranks_must_say_so(other):
    run = launched.start(
        "with_values.py", 2, "PACELINE_NUMBERS", f"stable,{other}",
        launched.RANKS / "canonical.py", "paceline",
    )
    assert run.status != 0
    assert f"option numbers differs between ranks (rank 0: stable, rank 1: {other})" in run.text()


def test_explain_says_what_is_left(paceline, monkeypatch):
    def explained(*words):
        status, out, _ = paceline("explain", *words)
        assert status == 0, out
        return launched.flat(out)

    far = ("--machine", "edr-100g", "--ranks", "16", "--size", "64KiB")
    assert "numbers=canonical" not in explained("allreduce", *far)
    monkeypatch.setenv("PACELINE_NUMBERS", "canonical")
    text = explained("allreduce", *far)
    assert "numbers=canonical" in text and "rabenseifner" not in text and "bruck" in text
    assert "numbers=canonical" not in explained("broadcast", *far)
    assert "numbers=canonical" in explained("--machine", "edr-100g")
