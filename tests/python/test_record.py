"""Flight records: what ranks leave when something goes wrong, and what is read out of them."""

import json
import re
from pathlib import Path

import launched
import pytest

from paceline import record

pytestmark = pytest.mark.ranks


def call(number, what="allreduce of 10 float64, sum", print_="a", **more):
    return {"number": number, "call": what, "fingerprint": print_, **more}


def made(rank, calls, ranks=3, reason="", context="1"):
    one = {"context": context, "ranks": list(range(ranks)), "rank": rank, "broken": "",
           "calls": calls}
    return {"rank": rank, "ranks": ranks, "reason": reason, "communicators": [one]}


def said(*records):
    return record.findings({one["rank"]: one for one in records})


def test_ranks_that_agree():
    same = [call(1), call(2)]
    assert said(*(made(rank, same) for rank in range(3))) == [
        "The ranks agree: the same calls, in the same order, none under way."]


def test_who_diverged_where():
    same, other = [call(1), call(2)], [call(1), call(2, "barrier", "b")]
    (sentence,) = said(made(0, same), made(1, other), made(2, same))
    assert sentence == ("communicator of 3 ranks: call #2 differs: ranks 0 and 2: allreduce of 10 "
                        "float64, sum; rank 1: barrier.")


def test_the_first_difference_counts():
    a, b = [call(1), call(2), call(3)], [call(1), call(2, print_="b"), call(3, "barrier", "c")]
    (sentence,) = said(made(0, a, 2), made(1, b, 2))
    assert "call #2 differs by different algorithms" in sentence


def test_only_what_both_still_know_is_compared():
    assert "agree" in said(made(0, [call(1, print_="z"), call(2)], 2), made(1, [call(2)], 2))[0]


def test_who_is_behind_waited_for_and_missing():
    waits = [call(1), call(2, under_way=True, waited_s=12.34, waits_for=[1, 2])]
    found = said(made(0, waits), made(1, [call(1)]))
    assert found == [
        "communicator of 3 ranks: rank 1 came only to #1, allreduce of 10 float64, sum; others "
        "went on with #2, allreduce of 10 float64, sum.",
        "communicator of 3 ranks: rank 0 waits for ranks 1 and 2 in #2, allreduce of 10 float64, "
        "sum, for 12.3 s.",
        "rank 2 left no record: lost, or in no call when the others wrote theirs."]


def test_the_call_that_a_rank_has_yet_to_make_is_named():
    far = [call(1), call(2, "barrier"), call(3)]
    assert said(made(0, far, 2), made(1, [call(1)], 2))[0] == (
        "communicator of 2 ranks: rank 1 came only to #1, allreduce of 10 float64, sum; others "
        "went on with #2, barrier and came to #3.")
    assert said(made(0, [call(3)], 2), made(1, [call(1)], 2))[-1].endswith("others came to #3.")


def test_where_they_were():
    same = [call(1)]
    records = [made(rank, same) for rank in range(3)]
    for record_, place in zip(records, ("a.py:1 in f", "b.py:2 in g", "a.py:1 in f")):
        record_["communicators"][0]["called_at"] = place
    assert said(*records) == ["communicator of 3 ranks: when it broke, ranks 0 and 2 at a.py:1 in "
                              "f; rank 1 at b.py:2 in g."]


def test_a_rank_that_came_later_is_not_where_the_others_waited():
    waits = call(2, under_way=True, waited_s=2.0, waits_for=[1])
    records = [made(0, [call(1), waits], 2), made(1, [call(1)], 2)]
    for record_ in records:
        record_["communicators"][0] |= {"called_at": "late.py:9 in f", "broken": "a time-out"}
    assert said(*records)[0] == ("communicator of 2 ranks: when it broke, rank 0 at late.py:9 in "
                                 "f; rank 1 was in no call, and came to late.py:9 in f later.")


def test_many_ranks_are_not_all_listed():
    assert record.ranks_of(range(12)) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 others"


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", '{"rank": 0}', "[" * 100_000,
    '{"rank": "0", "ranks": 1, "reason": "", "communicators": []}',
    '{"rank": 0, "ranks": 1, "reason": "", "communicators": [{"rank": 3, "ranks": [0]}]}',
    '{"rank": 0, "ranks": 1, "reason": "", "communicators": [{"rank": 0, "ranks": [0], '
    '"context": "1", "calls": [{"number": "x"}]}]}',
    '{"rank": 0, "ranks": 1, "reason": "", "communicators": [{"rank": 0, "ranks": [0], '
    '"context": "1", "called_at": 5, "calls": []}]}',
])
def test_damaged_records(paceline, tmp_path, text):
    (tmp_path / "rank-0.json").write_text(text)
    status, _, err = paceline("doctor", "--record", tmp_path)
    assert status == 2 and "rank-0.json is no flight record" in err


def test_no_records(paceline, tmp_path):
    status, _, err = paceline("doctor", "--record", tmp_path)
    assert status == 2 and "PACELINE_RECORD_DIR" in err


def left_by(what, ranks, folder, **env):
    run = launched.start("record_checks.py", ranks, what,
                         env={"PACELINE_RECORD_DIR": str(folder), **env})
    assert "Traceback" not in run.text(), run.text()
    return run


def test_a_mismatch_leaves_records_that_name_the_call(paceline, tmp_path):
    run = left_by("differ", 3, tmp_path)
    assert "MismatchError" in run.text(0), run.text()
    status, out, _ = paceline("doctor", "--record", tmp_path)
    assert status == 0
    # One of ranks 0 and 1 may hear of it before it makes the call.
    sides = ": allreduce of 10 float64, sum; rank 2: broadcast of 10 float64, root 0."
    asked = f"call #4 differs: (ranks 0 and 1|rank 0|rank 1){sides}"
    assert re.search(asked, " ".join(out.split())), out
    text = (tmp_path / "rank-2.txt").read_text()
    assert "#4 broadcast of 10 float64, root 0" in text
    lines = (launched.RANKS / "record_checks.py").read_text().splitlines()
    line = 1 + next(i for i, text in enumerate(lines) if "broadcast(numpy.ones(10)" in text)
    assert f"record_checks.py:{line} in differ" in text
    assert f"rank 2 at {launched.RANKS}/record_checks.py:{line}".replace(
        f"{Path.cwd()}/", "") in " ".join(out.split()), out


def test_a_signal_asks_those_who_wait_and_those_who_compute(paceline, tmp_path):
    left_by("hang", 2, tmp_path, PACELINE_RECORD_SIGNAL="12")
    status, out, _ = paceline("doctor", "--record", tmp_path)
    out = " ".join(out.split())
    assert status == 0 and "asked for by signal 12" in out
    assert ("rank 1 came only to #2, allreduce of 10 float64, sum; others went on with #3, "
            "allreduce of 3 float64, sum.") in out, out
    assert "rank 0 waits for rank 1 in #3, allreduce of 3 float64, sum" in out, out


def test_a_program_asks(tmp_path):
    run = left_by("asked", 2, tmp_path)
    assert run.text(0).startswith("['barrier', 'barrier', 'allreduce of 5 float64, sum'] True"), (
        run.text())
    assert run.text(1).startswith("['barrier', 'barrier'] False"), run.text()
    assert "'/proc/nowhere' cannot be written to" in run.text(0)
    found = json.loads((tmp_path / "rank-0.json").read_text())
    assert found["ranks"] == 2 and found["reason"] == "asked for by the program"


def test_a_signal_that_cannot_be_handled(tmp_path):
    run = launched.start("one.py", 1, "paceline.init()", env={"PACELINE_RECORD_DIR": str(tmp_path),
                                           "PACELINE_RECORD_SIGNAL": "9"})
    assert "signal 9 cannot be handled" in run.text(), run.text()
