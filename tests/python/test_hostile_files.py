"""Files that somebody has damaged, or made to do harm: an error that names the file, and at once.

Each reader gets every mutation of a good file: cut anywhere, one value replaced by each of what a
value may not be, bytes turned, and things that are no file.
"""

import copy
import json
import os
import random
import time

import launched  # noqa: F401 (the folder of the ranks' scripts)
import pytest

from paceline import UsageError, record, trace
from paceline_bench.measure import links

pytestmark = pytest.mark.ranks

LIMIT_S = 20.0  # on a busy machine; what has no end, or reads each digit anew, takes longer
HUGE = "9" * 4000  # of digits: more than a double holds, fewer than Python refuses to read
TOO_HUGE = "9" * 10_000

RECORD = {
    "rank": 1, "ranks": 3, "host": "a", "process": 7, "written": "2026", "reason": "why",
    "communicators": [{
        "context": "1", "ranks": [0, 1, 2], "rank": 1, "broken": "", "called_at": "a.py:1 in f",
        "calls": [
            {"number": 1, "call": "barrier", "fingerprint": "a"},
            {"number": 2, "call": "barrier", "fingerprint": "a", "under_way": True,
             "waited_s": 1.5, "waits_for": [0, 2]},
        ],
    }],
}  # fmt: skip
TRACE = {
    "title": "t", "provenance": "p", "ranks": 2, "arrival_s": [0.0, 0.1], "exit_s": [1.0, 1.1],
    "events": [
        {"rank": 0, "activity": "send", "peer": 1, "step": 0, "steps": 1, "segment": 0,
         "begin_s": 0.0, "end_s": 0.5, "bytes": 8},
        {"rank": 1, "activity": "recv", "peer": 0, "step": 0, "steps": 1, "segment": 0,
         "begin_s": 0.1, "end_s": 0.6, "bytes": 8},
    ],
}  # fmt: skip
CLUSTER = {"nodes": 2, "ppn": 1, "rate": 1e9, "interface": "eth0", "folder": "/x", "about": {}}


def read_record(path):
    """All that `doctor --record` does with a folder."""
    found = record.read(path.parent)
    return record.findings(found), record.reasons(found)


def read_trace(path):
    found = trace.read(path)
    return trace.messages(found), trace.rows(found), found.span_s


READERS = {
    "record": ("rank-1.json", RECORD, read_record),
    "trace": ("trace.json", TRACE, read_trace),
    "cluster": ("cluster.json", CLUSTER, links.cluster_from),
}
WORSE = [None, True, -1, 0, 1 << 70, 1e308, float("nan"), float("inf"), "", "x\x00y", [], {}, [[]],
         [None], {"a": 1}, "\x1b[2J", [1 << 40] * 3]  # fmt: skip


def expect(path, read, may_pass=True):
    """Reads; a UsageError that names the file, or (where that may be) a result. In either case
    soon."""
    begin = time.monotonic()
    try:
        found = read(path)
    except UsageError as error:
        assert str(path) in str(error) or str(path.parent) in str(error), error
        assert len(str(error)) < 1000
        found = None
    else:
        assert may_pass, found
        assert "\x1b" not in str(found)
    assert time.monotonic() - begin < LIMIT_S
    return found


def places(value, way=()):
    """The way to each value within a value."""
    yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, list) else ()  # fmt: skip
    for key, one in inside:
        yield from places(one, (*way, key))


def replaced(value, way, new):
    """A copy with another value at the end of the way; `...`: with nothing there."""
    if not way:
        return None if new is ... else new
    value = copy.deepcopy(value)
    inside = value
    for key in way[:-1]:
        inside = inside[key]
    if new is ...:
        del inside[way[-1]]
    else:
        inside[way[-1]] = new
    return value


@pytest.fixture(params=READERS)
def reader(request, tmp_path):
    name, good, read = READERS[request.param]
    path = tmp_path / name
    path.write_text(json.dumps(good))
    assert expect(path, read) is not None  # the file that all others are made of
    return path, good, read


def test_values_of_the_wrong_kind(reader):
    expect_wrong_kinds_refused(*reader)


def expect_wrong_kinds_refused(path, good, read):
    refused = 0
    for way in places(good):
        for new in (*WORSE, ...):
            path.write_text(json.dumps(replaced(good, way, new)))
            refused += expect(path, read) is None
    assert refused > 5 * len(list(places(good)))  # and not: everything passes


def test_numbers_without_end(reader):
    path, good, read = reader
    for way in places(good):
        for digits in (HUGE, TOO_HUGE, f"-{HUGE}", "1e999"):
            text = json.dumps(replaced(good, way, "DIGITS")).replace('"DIGITS"', digits)
            path.write_text(text)
            expect(path, read)


def test_cut_anywhere_and_turned(reader):
    path, good, read = reader
    text = json.dumps(good).encode()
    for end in range(len(text)):
        path.write_bytes(text[:end])
        expect(path, read, may_pass=False)
    dice = random.Random(3)
    for _ in range(500):
        turned = bytearray(text)
        for _ in range(dice.randrange(1, 4)):
            turned[dice.randrange(len(turned))] = dice.randrange(256)
        path.write_bytes(turned)
        expect(path, read)


@pytest.mark.parametrize("text", [
    b"", b"\x00" * 1000, b"\xff\xfe", b"[" * 200_000, b'{"a":' * 200_000, b"null", b"3", b'"x"',
    b'{"ranks": 1, "ranks": 2}', "{\ud800}".encode("utf-8", "surrogatepass"),
])  # fmt: skip
def test_what_is_no_such_file(reader, text):
    path, _, read = reader
    path.write_bytes(text)
    expect(path, read, may_pass=False)


def test_a_file_that_is_too_long(reader):
    path, _, read = reader
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # takes no room
    expect(path, read, may_pass=False)


@pytest.mark.parametrize("kind", ["pipe", "folder", "endless", "nothing"])
def test_what_is_no_file(reader, kind):
    path, _, read = reader
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to(path)
    expect(path, read, may_pass=False)


def test_two_files_of_one_rank(tmp_path):
    for name in ("rank-1.json", "rank-2.json"):
        (tmp_path / name).write_text(json.dumps(RECORD))
    with pytest.raises(UsageError, match="rank-2.json is of rank 1"):
        record.read(tmp_path)


# Readers that each lack one thing which a good one has; the checks above must notice.


def trusts(path):
    return json.loads(path.read_text())["ranks"]


def forgets_its_file(path):
    try:
        return trusts(path)
    except (ValueError, TypeError, LookupError):
        raise UsageError("this file is no record") from None


def swallows(path):
    try:
        return trusts(path)
    except Exception:
        return 0


def repeats(path):
    return path.read_text()


def tells_all(path):
    raise UsageError(f"{path} is no record: {path.read_text() * 100}")


def dawdles(path):
    time.sleep(LIMIT_S)
    return record.read(path.parent)


@pytest.mark.parametrize("text, mutant, trouble", [
    ("{", trusts, json.JSONDecodeError), ("{}", trusts, KeyError),
    ("{", forgets_its_file, AssertionError), ("{", swallows, AssertionError),
    ("\x1b[2J", repeats, AssertionError), ("{" * 100, tells_all, AssertionError),
    (json.dumps(RECORD), dawdles, AssertionError),
])  # fmt: skip
def test_careless_readers_are_noticed(tmp_path, monkeypatch, text, mutant, trouble):
    if mutant is dawdles:
        monkeypatch.setitem(globals(), "LIMIT_S", 0.1)
    path = tmp_path / "rank-1.json"
    path.write_text(text)
    with pytest.raises(trouble):
        expect(path, mutant, may_pass=mutant in (repeats, dawdles))


def test_a_reader_that_lets_everything_pass_is_noticed(tmp_path):
    with pytest.raises(AssertionError):
        expect_wrong_kinds_refused(tmp_path / "rank-1.json", RECORD, lambda path: 0)
