"""How programs end, whatever they have under way: what was pushed is computed, or whoever waits for
it hears why it is not; nobody hangs."""

import launched
import pytest
from length import each

from paceline import RankLost

WHAT = ["tasks", "idle", "call", "auto", "depcha", "concom", "funnel"]
each_of_four, each_of_one = each("what", WHAT[:4], WHAT[4:]), each("what", WHAT[:1], WHAT[1:])
BREAKS = [("exception", "ValueError: out of data"), ("ctrl_c", "KeyboardInterrupt"),
          ("sigterm", ""), ("sighup", ""), ("os_exit", "")]
SUM = "result [3.0, 3.0, 3.0, 3.0]"
NOTHING = "result [0.0, 0.0, 0.0, 0.0]"


def ended(how, what, who="one"):
    """The run of two ranks; each has ended by itself."""
    run = launched.start("ends.py", 2, how, what, who, timeout_s=60, grace_s=30,
                         env={"PACELINE_TIMEOUT_MS": "40000"})
    assert run.status not in (124, 137), run.text()
    assert "Fatal Python error" not in run.text(), run.text()
    assert launched.left() == []
    return run


@each_of_four
@pytest.mark.parametrize("how", ["return", "exit", "finalize", "dropped"])
def test_what_was_pushed_is_computed(how, what):
    run = ended(how, what)
    wanted = NOTHING if what == "idle" else SUM
    assert run.status == 0 and run.text(stream="stderr") == "", run.text()
    for rank in range(2):
        assert run.text(rank, "stdout") == wanted, run.text()


@each_of_four
@pytest.mark.parametrize("how, words", BREAKS)
def test_others_hear_why_a_rank_breaks_off(how, words, what):
    run = ended(how, what)
    assert run.status != 0 and words in run.text(0, "stderr"), run.text()
    said = run.text(1, "stderr")
    if what == "idle":
        assert "Traceback" not in said and run.text(1, "stdout") == NOTHING, run.text()
        return
    assert "RankLost" in said and "rank 0" in said, run.text()
    assert RankLost(said).is_interrupt == (how == "ctrl_c"), said
    if what == "tasks" and words and how != "ctrl_c":
        assert f"ends because of {words}" in said, said
    assert run.text(1, "stdout") == NOTHING


@each_of_four
@pytest.mark.parametrize("how, status", [
    ("child", 0), ("child_exit", 3), ("child_exception", 1),
])  # fmt: skip
def test_children_end_and_their_parents_compute(how, status, what):
    run = ended(how, what)
    assert run.status == 0 and run.text(stream="stderr") == "", run.text()
    wanted = NOTHING if what == "idle" else SUM
    for rank in range(2):
        lines = run.text(rank, "stdout").splitlines()
        assert f"child {status}" in lines and lines[-1] == wanted, run.text()


@each_of_one
@pytest.mark.parametrize("how, words", BREAKS)
def test_all_ranks_break_off(how, words, what):
    run = ended(how, what, "all")
    assert run.status != 0
    for rank in range(2):
        assert words in run.text(rank, "stderr"), run.text()
        assert SUM not in run.text(rank, "stdout"), run.text()
