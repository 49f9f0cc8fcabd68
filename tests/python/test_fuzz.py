"""Random programs of collectives over every MPI at hand, and under the drop-in library."""

import re

import fuzzing
import pytest
import test_preload
from fuzzing import Case
from length import LONG, each

PROGRAMS = 300 if LONG else 15
SHORT = {"openmpi4": 3, "mpich5": 2}  # ranks


each_mpi = each("name", SHORT, [name for name in test_preload.NAMES if name not in SHORT])


def ranks_of(name):
    test_preload.mpi_of(name)
    return SHORT.get(name, 3)


def expect_right(case):
    status, said = fuzzing.play(case)
    assert status == 0, fuzzing.explain(case, said)
    return said


@pytest.mark.parametrize("only_mpi", [False, True])
@each_mpi
def test_over_mpi(name, only_mpi):
    said = expect_right(Case("mpi", 1, PROGRAMS, ranks_of(name), name, only_mpi=only_mpi))
    assert f"{PROGRAMS} programs from seed 1 on end rightly" in said


@each_mpi
def test_under_the_drop_in_library(name):
    said = expect_right(Case("preload", 1, PROGRAMS, ranks_of(name), name))
    assert f"{PROGRAMS} programs from seed 1 on end rightly" in said
    served = test_preload.served(said)
    ours = [call for call, (count, _) in served.items() if count]
    assert len(set(ours) & set(test_preload.CALLS)) > 10, said
    assert sum(call.startswith("I") for call in ours) > 5, said


@pytest.mark.parametrize("name", ["openmpi4"])
def test_a_library_that_serves_nothing_is_noticed(name):
    """Right results prove nothing where the host alone has made them."""
    other = test_preload.built(test_preload.mpicc_of(test_preload.mpi_of("mpich5")))
    test_preload.mpi_of(name)
    status, said = fuzzing.play(Case("preload", 1, 2, 2, name), other)
    assert status == 1 and "the drop-in library has served nothing" in said, said


@pytest.mark.parametrize("name", ["openmpi4"])
def test_a_wrong_bit_is_noticed_and_made_small(name):
    mpi = test_preload.mpi_of(name)
    mutant = test_preload.compiled(str(fuzzing.mpicc_of(mpi)), "mutant", "-shared", "-fPIC")
    case = Case("preload", 1, 5, 2, name)
    status, said = fuzzing.play(case, mutant)
    assert status == 1 and re.match(r"seed \d+: rank [01]", said), said


def test_a_failure_ends_with_the_command_that_repeats_it(capsys):
    wrong = ("--wrong-message", "3")
    assert fuzzing.main(["--on", "loop", "--seed", "1", "--programs", "40"], wrong) == 1
    said = capsys.readouterr().out
    again = re.search(r"Again: \./dev fuzz (--on loop --seed \d+ .*)", said)
    assert again, said
    assert len(re.findall(r"^call ", said, re.MULTILINE)) < 4, said
    assert fuzzing.main(again[1].split(), wrong) == 1
    assert fuzzing.main(again[1].split()) == 0  # without the wrong bit
