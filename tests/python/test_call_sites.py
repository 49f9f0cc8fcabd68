"""Errors say where in its program each rank was."""

import functools
import re
import tempfile
import threading

import launched
import pytest
from length import in_long

from paceline import call_site

pytestmark = pytest.mark.ranks

GRACE_S = 10  # a busy machine is slow; who waits for ever, or for another limit, waits longer
SCRIPT = launched.RANKS / "sites.py"
LINES = {
    match[1]: number
    for number, line in enumerate(SCRIPT.read_text().splitlines(), 1)
    if (match := re.search(r"# line: (\w+)", line))
}


def told(what, ranks=2, **env):
    """By rank: class, seconds and message of the errors, a line each."""
    with tempfile.TemporaryDirectory() as notes:
        run = launched.start("sites.py", ranks, what, env=env | {"NOTES": notes})
    assert "Traceback" not in run.text(), run.text()
    return [[tuple(line.split(" ", 2)) for line in run.text(rank, "stdout").splitlines()]
            for rank in range(ranks)]


def places(message):
    """Where the ranks were, as a message says it: rank -> (file, line, function)."""
    (said,) = re.findall(r" Where they were: (.*)\.$", message)
    found = {}
    for one in said.split("; "):
        ranks, file, line, function = re.fullmatch(r"ranks? ([\d, ]+) at (.*):(\d+) in (.*)",
                                                   one.removesuffix(" (came later)")).groups()
        found |= {int(rank): (file.rpartition("/")[2], int(line), function)
                  for rank in ranks.split(", ")}
    return found


@pytest.mark.parametrize("progress", ["thread", "caller"])
@pytest.mark.parametrize("algorithm", ["", "allreduce=ring,broadcast=chain"])
def test_both_sides_of_a_mismatch(progress, algorithm):
    expect_both_sides(told("differ", 3, PACELINE_PROGRESS=progress, PACELINE_ALGORITHM=algorithm))


@pytest.mark.parametrize("mutant", ["nowhere", "outermost", "inside", "neighbour"])
def test_wrong_lines_are_noticed(mutant):
    said = told("differ", 3, MUTANT=mutant)
    with pytest.raises((AssertionError, ValueError)):
        expect_both_sides(said)


def expect_both_sides(said):
    for (kind, _, message), again in said:
        assert kind == "MismatchError", said
        found = places(message)
        assert found[0] == ("sites.py", LINES["first"], "step"), message
        # The root of a broadcast needs nobody, and may be one call further.
        assert found[1][1] in (LINES["second"], LINES["after"]) and set(found) == {0, 1, 2}
        assert places(" ".join(again)) == found


def test_a_request_is_where_it_is_waited_for():
    said = told("counts")
    for ((_, _, message),) in said:
        assert places(message) == dict.fromkeys((0, 1), ("sites.py", LINES["wait"], "step"))


def test_who_waits_for_a_late_rank():
    said = told("late", 3)
    for rank in (0, 2):
        kind, seconds, message = said[rank][0]
        assert kind == "TimeoutError" and 0.4 < float(seconds) < 0.5 + GRACE_S
        waits = ("sites.py", LINES["waits"], "<lambda>")
        assert places(message) == {0: waits, 2: waits}, message
    assert places(said[1][0][2])[0] == waits  # the late one learns it, too
    assert re.search(r"; rank 1 at .* in told \(came later\)\.$", said[1][0][2]), said


@in_long
def test_lines_of_torch_programs():
    pytest.importorskip("torch")
    for ((_, _, message),) in told("of_torch"):
        assert places(message) == dict.fromkeys((0, 1), ("sites.py", LINES["torch"], "step"))


def test_lines_of_a_thread():
    """The program's own have one; those that run nothing but our code have none."""
    found = []
    ours = compile("found.append(call_site.here())", call_site.__file__, "exec")
    for target in (lambda: found.append(call_site.here()), functools.partial(exec, ours)):
        arguments = () if not found else ({"found": found, "call_site": call_site},)
        thread = threading.Thread(target=target, args=arguments)
        thread.start()
        thread.join()
    assert found[0].startswith("tests/python/test_call_sites.py:") or "/test_call_" in found[0]
    assert found[0].endswith(" in <lambda>") and found[1:] == [""], found


def test_a_killed_rank_is_not_waited_for():
    run = launched.start("failing.py", 3, "killed", grace_s=10)
    kind, seconds, message = run.text(0, "stdout").splitlines()[0].split(" ", 2)
    assert kind == "RankLost" and set(places(message)) == {0, 1}, message
    assert float(seconds) < GRACE_S
