"""Profiles from files that a test writes: what is brought together and shown, and what of files
that are damaged or missing. Programs: test_profile_programs.py."""

import json
import re
import os
import struct
import sys

import numpy as np
import pytest
from launched import flat

from paceline.errors import UsageError
from paceline.profiling import calls, files, pictures, perfetto, terminal
from paceline.profiling.summary import class_of, summarise

pytestmark = pytest.mark.ranks

MS = 1_000_000


# --- files that a test writes ---------------------------------------------------------------------


def written(folder, rank, ranks, records, **more):
    """A rank's file with these records: (enter, leave, bytes, number) in ns, and more of them."""
    lines = [{"communicator": 0, "instance": 0, "ranks": list(range(ranks))},
             {"collective": 0, "name": "allreduce"}, {"collective": 1, "name": "bcast"},
             {"site": 0, "name": "train.py:7"}, *more.get("lines", ())]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    begin = more.get("begin", 1000 * MS)
    rows = np.zeros(len(records), files.RECORD)
    for row, (enter, leave, nbytes, number) in zip(rows, records):
        row["enter"], row["leave"], row["bytes"], row["number"] = enter, leave, nbytes, number
        row["stage"] = files.RETURNED if leave else files.ENTERED
        row["collective"] = more.get("collective", 0)
    if "collectives" in more:
        rows["collective"] = more["collectives"]
    for row, (wait, done) in zip(rows, more.get("waits", ())):   # of non-blocking calls
        row["wait"], row["done"], row["nonblocking"], row["stage"] = wait, done, 1, files.COMPLETE
    for row, number in zip(rows, more.get("operations", ())):   # the one it is a start of
        row["communicator"] = number
    head = files.HEADER.pack(
        files.MAGIC, 4096, files.RECORD.itemsize, 1 << 16, len(rows), len(text),
        more.get("calls", len(rows)), 0, rank, ranks, 1, begin, more.get("end", begin + 10**9),
        more.get("unix", begin), more.get("clock", 7), b"mpi", b"host",
        more.get("node", "host").encode())
    path = folder / f"mpi-{rank}.profile"
    path.write_bytes(head.ljust(4096, b"\0") + text.ljust(1 << 16, b"\0") + rows.tobytes())
    return path


def one_late(folder, ranks=3, late=2, number=10):
    """Calls of 8 bytes to which one rank comes 5 ms after the others, and all leave together."""
    for rank in range(ranks):
        rows = []
        for call in range(number):
            start = 1000 * MS + 20 * MS * call
            enter = start + (5 * MS if rank == late else 0) + rank * 1000
            rows.append((enter, start + 6 * MS, 8, call))
        written(folder, rank, ranks, rows)


def test_a_late_rank_is_named_and_waiting_is_apart_from_transfer(tmp_path):
    one_late(tmp_path)
    found = summarise(calls.read(tmp_path))
    assert found.late[0].rank == 2 and found.late[0].last == 10 and found.late[0].share == 1
    assert found.late[0].alone_s == pytest.approx(10 * (5e-3 + 1e-6))
    [row] = [row for row in found.rows if row.sizes == "all"]
    assert row.worst_s == pytest.approx(5e-3 + 2e-6)
    # By hand: 0, 1, 5002 us have the mean 1667.67 us.
    assert row.average_s == pytest.approx((1667.667 + 1666.667 + 3334.333) * 1e-6 / 3, rel=1e-4)
    assert row.message_s == pytest.approx(6e-3 - 5e-3 - 2e-6)
    assert row.worst == pytest.approx(row.worst_s / row.message_s)
    assert row.waiting_s == pytest.approx(10 * ((5002e-6) + (5001e-6)) / 3)
    assert row.waiting_s + row.transfer_s == pytest.approx(row.time_s)
    assert row.share_of_calls == 1 and row.share_of_run == pytest.approx(row.time_s / found.run_s)
    assert {late.rank: round(late.waits_s, 6) for late in found.late}[2] == 0


@pytest.mark.parametrize("wait, stands", [(0, (99, 11)), (90, (11, 11)), (110, (1, 11))])
def test_a_program_stands_in_one_call_at_a_time(tmp_path, wait, stands):
    """Two non-blocking calls that are started at once; 0: it never waits for the first one."""
    begin = 1000 * MS
    for rank in range(2):
        written(tmp_path, rank, 2, [(begin, begin + MS, 8, 0), (begin + MS, begin + 2 * MS, 8, 1)],
                waits=[(wait and begin + wait * MS, begin + 100 * MS),
                       (begin + 110 * MS, begin + 120 * MS)])
    [group] = calls.read(tmp_path).groups
    assert group.spent.T.tolist() == [pytest.approx([one * 1e-3 for one in stands])] * 2


def test_the_screen_says_when_a_rank_counts_as_late(paceline, tmp_path):
    one_late(tmp_path)
    assert "Last in: by at least a tenth of" in flat(paceline("profile", "--read", tmp_path)[1])


def test_what_recording_costs_is_said(tmp_path):
    one_late(tmp_path)
    found = summarise(calls.read(tmp_path))
    assert found.recording == pytest.approx(10 * 150e-9 / 1.0)   # of a second
    assert found.plain()["recording"] == found.recording
    assert "recording them less than 0.01 %." in terminal.heading(found).plain
    found.calls = 10 ** 5
    assert "recording them at most 1.50 %." in terminal.heading(found).plain


def test_imbalance_of_nodes_is_apart_from_that_of_all_ranks(tmp_path):
    # Ranks 0 and 1, on one node, come 1 ms apart, 2 and 3 3 ms apart, 10 ms later.
    for rank, after in enumerate((0, 1, 10, 13)):
        written(tmp_path, rank, 4, [(1000 * MS + after * MS, 1020 * MS, 2048, 0)],
                node=f"node{rank // 2}")
    found = summarise(calls.read(tmp_path))
    [one] = found.invocations
    assert one.worst_s == pytest.approx(13e-3)
    assert one.node_worst_s == pytest.approx(2e-3) and one.node_average_s == pytest.approx(1e-3)
    assert found.nodes == 2 and class_of(one.bytes) == "medium"


def test_the_classes_are_the_documents():
    assert [class_of(n) for n in (0, 1024, 1025, 65536, 65537)] == [
        "small", "small", "medium", "medium", "large"]


def test_clocks_that_differ_are_brought_together(tmp_path):
    """Rank 1's clock is 3 s ahead at the start and 3.001 s at the end, rank 2 reads the same."""
    readings = [{"clock": "start", "at_ns": 4000 * MS, "offset_ns": 3000 * MS, "error_ns": 900},
                {"clock": "end", "at_ns": 5001 * MS, "offset_ns": 3001 * MS, "error_ns": 700}]
    written(tmp_path, 0, 3, [(1000 * MS, 1010 * MS, 8, 0), (1900 * MS, 1990 * MS, 8, 1)])
    for rank in (1, 2):
        drift = 3000 * MS
        written(tmp_path, rank, 3,
                [(1002 * MS + drift, 1010 * MS + drift, 8, 0),
                 (1900 * MS + drift + 900 * 1000, 1990 * MS + drift + 990 * 1000, 8, 1)],
                begin=4000 * MS, clock=8, lines=readings if rank == 1 else ())
    found = calls.read(tmp_path)
    [group] = found.groups
    assert group.enter[0] == pytest.approx([0, 2e-3, 2e-3], abs=2e-5)
    assert group.enter[1] == pytest.approx([0.9] * 3, abs=2e-5)
    assert found.clock_error_s == pytest.approx(900e-9) and not found.notes


def test_a_clock_that_nobody_compared_is_said(tmp_path):
    written(tmp_path, 0, 2, [(1000 * MS, 1010 * MS, 8, 0)])
    written(tmp_path, 1, 2, [(9000 * MS, 9010 * MS, 8, 0)], begin=9000 * MS, clock=8,
            unix=1000 * MS)
    found = calls.read(tmp_path)
    assert "never compared" in found.notes[0]
    assert found.groups[0].enter[0] == pytest.approx([0, 0])


OPERATIONS = [{"operation": which, "communicator": 0, "number": 1 + which} for which in (0, 1)]


def test_starts_of_persistent_operations_are_matched_by_which_was_made(tmp_path):
    """Two of them, which rank 1 starts the other way round, and a call that is none."""
    for rank, order in enumerate(((1, 2, 1, 0), (2, 1, 1, 0))):
        count, rows = {}, []
        for call, number in enumerate(order):
            at = 1000 * MS + 10 * MS * call + rank * MS
            rows.append((at, at + 5 * MS, 100 * number + 8, count.get(number, 0)))
            count[number] = count.get(number, 0) + 1
        written(tmp_path, rank, 2, rows, lines=OPERATIONS, operations=order)
    found = calls.read(tmp_path)
    [group] = found.groups
    assert group.bytes.tolist() == [108, 208, 108, 8] and group.complete.all()
    apart = (group.enter[:, 1] - group.enter[:, 0]) * 1e3
    assert apart.tolist() == pytest.approx([11, -9, 1, 1]) and not found.notes


def test_ranks_that_differ_in_a_persistent_operation_are_told(tmp_path):
    for rank in (0, 1):
        written(tmp_path, rank, 2, [(1000 * MS, 1010 * MS, 8, 0)], lines=OPERATIONS,
                operations=(2,), collective=rank)
    [note] = calls.read(tmp_path).notes
    assert "differ in call 0 of persistent operation 1 of a communicator" in note


def test_a_damaged_line_about_a_persistent_operation_is_refused(tmp_path):
    written(tmp_path, 0, 1, [(1000 * MS, 1010 * MS, 8, 0)],
            lines=[{"operation": 0, "communicator": 0}])
    with pytest.raises(UsageError, match="number"):
        calls.read(tmp_path)


# --- files that somebody has damaged --------------------------------------------------------------


def damaged(path, place, data):
    whole = bytearray(path.read_bytes())
    whole[place : place + len(data)] = data
    path.write_bytes(whole)


@pytest.mark.parametrize("damage, words", [
    (lambda path: path.write_bytes(b""), "no profile of this version"),
    (lambda path: damaged(path, 0, b"x"), "no profile of this version"),
    (lambda path: os.truncate(path, 5000), "cut off"),
    (lambda path: damaged(path, 12, struct.pack("<I", 8)), "header is damaged"),
    (lambda path: damaged(path, 24, struct.pack("<Q", 1 << 60)), "cut off"),
    (lambda path: damaged(path, 32, struct.pack("<Q", 1 << 60)), "more text than"),
    (lambda path: damaged(path, 56, struct.pack("<i", 9)), "rank 9 of 2"),
    (lambda path: damaged(path, 4096, b"{nonsense"), "text is damaged"),
    (lambda path: damaged(path, 4096 + (1 << 16) + 52 - 12, struct.pack("<I", 9)),
     "communicator 9 is not explained"),
    (lambda path: damaged(path, 4096 + (1 << 16), struct.pack("<q", 5)), "before the profile"),
    (lambda path: (path.unlink(), os.mkfifo(path)), "no plain file"),
])  # fmt: skip
def test_damaged_files_are_named_with_what_is_wrong(paceline, tmp_path, damage, words):
    for rank in (0, 1):
        path = written(tmp_path, rank, 2, [(1000 * MS, 1010 * MS, 8, 0)])
    damage(path)
    status, _, err = paceline("profile", "--read", tmp_path)
    assert status == 2, err
    assert words in flat(err) and str(path.name) in flat(err) and "Traceback" not in err


def test_missing_files_and_calls_are_said(paceline, tmp_path):
    status, _, err = paceline("profile", "--read", tmp_path)
    assert status == 2 and "no rank has left a profile" in flat(err)
    written(tmp_path, 0, 3, [(1000 * MS, 1010 * MS, 8, 0), (1020 * MS, 0, 8, 1)], end=0)
    written(tmp_path, 2, 3, [(1000 * MS, 1010 * MS, 8, 0)], calls=50)
    status, out, _ = paceline("profile", "--read", tmp_path)
    said = flat(out)
    assert status == 0
    assert "rank 1 left no file" in said and "rank 0 did not end normally" in said
    assert "rank 2: 49 calls did not fit" in said
    assert "rank 0 was still in allreduce, call 1" in said


def test_kept_files_give_back_the_room_that_was_not_needed(paceline, tmp_path):
    made, kept = tmp_path / "made", tmp_path / "kept"
    made.mkdir()
    row, room = (1000 * MS, 1010 * MS, 8, 0), bytes(99 * files.RECORD.itemsize)
    for rank, end in (0, 2000 * MS), (1, 0):   # 0: it may still write
        path = written(made, rank, 2, [row], end=end)
        path.write_bytes(path.read_bytes() + room)
        damaged(path, 24, struct.pack("<Q", 100))
    whole = path.stat().st_size
    _, first, _ = paceline("profile", "--out", kept, "--", "cp", *sorted(made.iterdir()), kept)
    text_bytes = files.HEADER.unpack_from(path.read_bytes())[5]
    short = 4096 + text_bytes + files.RECORD.itemsize
    assert [path.stat().st_size for path in sorted(kept.iterdir())] == [short, whole]
    assert "allreduce" in first and paceline("profile", "--read", kept)[1] == first


@pytest.mark.parametrize("status, expected", [(0, 2), (3, 3)])
def test_the_programs_failure_goes_before_ours(paceline, status, expected):
    program = (sys.executable, "-c", f"raise SystemExit({status})")
    found, _, err = paceline("profile", "--", *program)
    assert found == expected and "no rank has left a profile" in flat(err)


def test_programs_that_cannot_be_started_and_folders_in_use_are_told(paceline, tmp_path):
    status, _, err = paceline("profile", "--", tmp_path / "nothing")
    assert status == 2 and "cannot be started" in flat(err)
    (tmp_path / "file").touch()
    status, _, err = paceline("profile", "--out", tmp_path, "--", "true")
    assert status == 2 and "is not empty" in flat(err)


def test_a_call_that_differs_between_ranks_is_said(tmp_path):
    written(tmp_path, 0, 2, [(1000 * MS, 1010 * MS, 8, 0)])
    written(tmp_path, 1, 2, [(1000 * MS, 1010 * MS, 8, 0)], collective=1)
    found = calls.read(tmp_path)
    assert "differ in call 0" in found.notes[0]
    assert not summarise(found).invocations


def test_communicators_that_ranks_first_use_in_other_orders(tmp_path):
    """Three of the same ranks: two of allreduces, which nothing tells apart, and a third."""
    lines = [{"communicator": number, "instance": number, "ranks": [0, 1]} for number in (1, 2)]
    orders = ((0, 1, 2), (2, 0, 1))   # rank 1 begins with the last
    for rank, order in enumerate(orders):
        rows = [(1000 * MS + 10 * MS * place, 1010 * MS + 10 * MS * place, 8 << which, 0)
                for place, which in enumerate(order)]
        written(tmp_path, rank, 2, rows, lines=lines, operations=(0, 1, 2),
                collectives=[which == 2 for which in order])
    found = calls.read(tmp_path)
    assert not found.notes and len(found.groups) == 3
    assert sorted((str(group.collective[0]), int(group.bytes[0])) for group in found.groups) == [
        ("allreduce", 8), ("allreduce", 16), ("broadcast", 32)]
    assert all(group.complete.all() for group in found.groups)


def test_files_of_two_programs_in_one_folder_are_refused(tmp_path):
    written(tmp_path, 0, 2, [(1000 * MS, 1010 * MS, 8, 0)])
    written(tmp_path, 1, 3, [(1000 * MS, 1010 * MS, 8, 0)])
    with pytest.raises(UsageError, match="2 and 3 ranks"):
        calls.read(tmp_path)


# --- what is shown --------------------------------------------------------------------------------


def test_the_screen_fits_and_says_it_all(paceline, tmp_path, monkeypatch):
    one_late(tmp_path)
    for width in (80, 100, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        status, out, _ = paceline("profile", "--read", tmp_path)
        assert status == 0
        assert all(len(line) <= width for line in out.splitlines()), out
        assert len(out.splitlines()) <= 30
        assert "rank 2" in out and "train.py:7" in out and "allreduce" in out
    assert "rank 2" in terminal.text(calls.read(tmp_path))


@pytest.mark.parametrize("width, nodes", [(80, 1), (100, 2)])
def test_no_number_is_cut_where_names_are_long(paceline, tmp_path, monkeypatch, width, nodes):
    place = "solver+0x1189 (solver::detail::Field<double>::exchange_boundaries(int))"
    for rank, after in enumerate((0, 1, 10, 13)):
        rows = [((1000 + 40 * call + after) * MS, (1020 + 40 * call) * MS, size, call)
                for call, size in enumerate((8, 1 << 20, 1 << 25))]
        written(tmp_path, rank, 4, rows, node=f"node{rank // 2 if nodes > 1 else 0}",
                lines=[{"site": 0, "name": place}])
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = paceline("profile", "--read", tmp_path)
    assert all(len(line) <= width for line in out.splitlines()), out
    assert "\u2026" not in out, out
    assert re.search(r"^solver\+0x\.\.\.\w+_boundaries\(int\)\) ", out, re.MULTILINE), out
    assert ("in node:" in out) == (nodes > 1)


def test_json_trace_and_page_hold_the_calls(paceline, tmp_path):
    pytest.importorskip("matplotlib", reason="could not import 'matplotlib': report")
    one_late(tmp_path)
    names = {option: tmp_path / f"out.{option}" for option in ("json", "trace", "html")}
    options = [word for option, name in names.items() for word in (f"--{option}", name)]
    assert paceline("profile", "--read", tmp_path, *options)[0] == 0
    found = json.loads(names["json"].read_text(encoding="utf-8"))
    assert len(found["invocations"]) == 10 and found["late"][0]["rank"] == 2
    assert np.array(found["arrivals_s"]).shape == (10, 3)
    assert found["arrivals_s"][0] == pytest.approx([0, 1e-6, 5.002e-3])
    events = json.loads(names["trace"].read_text(encoding="utf-8"))["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert sum(event["cat"] == "collective" for event in spans) == 30
    waiting = [event for event in spans if event["cat"] == "waiting"]
    assert {event["pid"] for event in waiting} == {0, 1}
    assert waiting[0]["dur"] == pytest.approx(5002, rel=1e-3)
    page = names["html"].read_text(encoding="utf-8")
    assert page.count("<svg") == 5 and "train.py:7" in page and "rank 2" in page


def test_pictures_of_a_profile_with_nothing_in_it(tmp_path):
    pytest.importorskip("matplotlib", reason="could not import 'matplotlib': report")
    written(tmp_path, 0, 1, [(1000 * MS, 1010 * MS, 8, 0)])
    found = calls.read(tmp_path)
    assert len(pictures.all_of(summarise(found), found)) >= 2
    assert perfetto.events(found)


def test_factors_of_a_machines_model(tmp_path):
    one_late(tmp_path)
    found = summarise(calls.read(tmp_path), "ethernet-10g")
    [one] = {invocation.factor_of for invocation in found.invocations}
    assert 1e-6 < one < 1e-3 and "a message of that size" in found.factors


def test_the_documents_figures_and_tables(tmp_path):
    pytest.importorskip("matplotlib", reason="could not import 'matplotlib': report")
    from paceline.profiling import document

    for rank, after in enumerate((0, 1, 10, 13)):
        rows = [(1000 * MS + after * MS, 1020 * MS, 2048, 0),
                (1100 * MS + after * MS, 1120 * MS, 8, 1)]
        written(tmp_path, rank, 4, rows, node=f"node{rank // 2}")
    found = summarise(calls.read(tmp_path))
    assert [name for name, _, svg in document.figures(found)] == ["figure 2", "figure 3",
                                                                  "figure 4"]
    [(_, _, whole), (_, _, inside)] = document.tables(found)
    assert [row[0] for row in whole] == ["All message sizes", "Small messages", "Medium messages"]
    # The last rank comes 13 ms after the first and leaves 7 ms later; in the nodes it is 2 ms.
    assert whole[0][1] == pytest.approx(13 / 7) and inside[0][1] == pytest.approx(2 / 7)
    assert document.tables(found, "barrier") == []
