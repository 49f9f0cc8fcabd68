"""Bytes and time of a call: the page holds what schedules say, shares sum to the rank's time."""

import dataclasses
import random
import re
from pathlib import Path

import pytest
from launched import flat

from paceline import _core, draw, traffic
from paceline.schedules import SENDS
from paceline.time_breakdown import REST, spent, table
from paceline.trace import Event, Trace, from_json, kind

pytestmark = pytest.mark.ranks

PAGE = Path(__file__).parents[2] / "docs/design/0020-traffic.md"
UNIT = 840 * 8 * 64   # elements: every cut of 1 to 8 ranks and a few blocks is even, in lines


def tables(page):
    """The rows of each table of the page, each a dict by its heading."""
    found, rows = [], []
    for line in [*page.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            found.append([dict(zip(rows[0], row)) for row in rows[2:]])
            rows = []
    return found


def value(formula, ranks, blocks=0):
    """2r(r+1) of so many ranks and blocks; lg(r): how often they can be halved."""
    spelled = re.sub(r"(?<=[\dr)B])(?=[rB(])", "*", formula)
    assert re.fullmatch(r"(?:[\drB+*/()-]|lg)+", spelled), formula
    names = {"r": ranks, "B": blocks, "lg": lambda n: (n - 1).bit_length()}
    return eval(spelled, {"__builtins__": {}}, names)


def faults(page):
    """What the page says otherwise than the schedules do."""
    found = []
    literature, ours = tables(page)[:2]
    rows = {row["algorithm"]: row for row in ours}
    due = {f"{row['collective']}/{row['name']}": row["knobs"] for row in _core.algorithms()
           if row["access"] not in SENDS}
    found += [f"{name}: a row too many or too few" for name in set(due) ^ set(rows)]
    for name in set(due) & set(rows):
        for ranks in range(2, 9):
            for blocks in (1, 4) if "blocks" in due[name] else (0,):
                found += row_faults(rows[name], ranks, blocks)
    for row in literature:
        for ranks in range(2, 9):
            parts = sum(value(row[part], ranks) for part in ("copy in", "reduce", "copy out"))
            more = parts
            if row["ours"]:
                more += value(row["more than theirs"], ranks)
                more -= value(rows[row["ours"]]["all"], ranks)
            if parts != value(row["all"], ranks) or more not in (0, parts):
                found.append(row["scheme"])
    return sorted(set(found))


def row_faults(row, ranks, blocks):
    """The headings of a row of ours that are not so."""
    collective, name = row["algorithm"].split("/")
    world = _core.World(collective, name, ranks, blocks=blocks)
    whole = collective in ("allreduce", "reduce", "broadcast", "barrier")
    got = world.traffic(UNIT, 4)
    n = 4 * UNIT * (1 if whole else ranks)
    passes = {heading: got.passes[heading].total / n if heading in got.passes else 0
              for heading in ("copy in", "reduce", "copy out", "copy")}
    peers = sum(moved.total for home, moved in got.homes.items() if home.startswith("peers"))
    counted = {**passes, "all": got.total.total / n, "just made": got.total.again / n,
               "peers'": peers / n, "waits": got.syncs}
    return [f"{row['algorithm']}: {heading}" for heading, number in counted.items()
            if number != pytest.approx(value(row[heading], ranks, blocks))]


def test_the_page_says_what_the_schedules_do():
    assert faults(PAGE.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("true, wrong, fault", [
    ("| allreduce/two_shot | 2r |", "| allreduce/two_shot | 2(r-1) |",
     "allreduce/two_shot: copy in"),
    ("| 0 | r-1 | B |\n| broadcast/symmetric", "| 0 | r-1 | 1 |\n| broadcast/symmetric",
     "broadcast/staged: waits"),
    ("| 5r+1 | allreduce/two_shot | -2 |", "| 5r+1 | allreduce/two_shot | 0 |", "slices"),
    ("| 3r-1 | 2r | 5r-1 |", "| 3r-1 | 2r | 5r |", "moved least"),
    ("| alltoall/symmetric |", "| alltoall/direct |", "too many or too few"),
])
def test_a_wrong_page_is_noticed(true, wrong, fault):
    page = PAGE.read_text(encoding="utf-8")
    assert page.count(true) == 1
    assert any(fault in found for found in faults(page.replace(true, wrong)))


def busy_trace(seed, ranks=3, events=40):
    """Events that overlap, touch and leave gaps, some before the arrival or after the exit."""
    draws = random.Random(seed)
    made = []
    for rank in range(ranks):
        for step in range(events):
            begin = draws.uniform(-1, 11)
            activity = draws.choice(("send", "recv", "reduce", "copy", "signal", "wait"))
            made.append(Event(rank, activity, step=step, begin_s=begin,
                              end_s=begin + draws.choice((0, 0.1, 1)), moved=step))
    return Trace(ranks=ranks, arrival_s=[0.0, 1.0, 2.0], exit_s=[10.0, 9.0, 11.0], events=made)


@pytest.mark.parametrize("seed", range(5))
def test_shares_sum_to_the_time_of_the_rank(seed):
    trace = busy_trace(seed)
    for rank in range(trace.ranks):
        shares = spent(trace, rank)
        total = sum(share.seconds for share in shares.values())
        assert total == pytest.approx(trace.exit_s[rank] - trace.arrival_s[rank])
        assert all(share.seconds >= 0 for share in shares.values())
        assert sum(share.moved for share in shares.values()) == sum(range(40))


def test_work_comes_before_waiting_and_gaps_are_the_rest():
    made = [Event(0, "recv", begin_s=1, end_s=6), Event(0, "reduce", begin_s=2, end_s=4, moved=8)]
    shares = spent(Trace(ranks=1, arrival_s=[0.0], exit_s=[7.0], events=made), 0)
    assert {name: share.seconds for name, share in shares.items()} == {
        "recv": 3, "reduce": 2, REST: 2}
    assert shares["reduce"].rate == 4


def straight(ranks=2, count=4096, **more):
    """A simulated load/store call, its world and elements."""
    world = _core.World("allreduce", "two_shot", ranks, blocks=2, **more)
    trace = draw.from_core(world.simulate(count, 4, "shm"))
    return traffic.labelled(trace, world, count), world


def test_events_of_a_straight_call_say_what_they_are_for():
    trace, world = straight()
    assert {kind(event) for event in trace.events} == {
        "copy in", "reduce", "copy out", "signal", "wait"}
    assert sum(event.moved for event in trace.events) == world.traffic(4096, 4).total.total
    assert trace.counted.startswith("all ranks read and write 144 KiB: copy in 64 KiB, reduce")
    assert from_json(draw.to_json(trace)) == trace
    ring = _core.World("allreduce", "ring", 2)
    sent = draw.from_core(ring.simulate(4096, 4, "shm"))
    assert traffic.labelled(sent, ring, 4096) == sent


def test_the_table_fits_and_shows_every_rank_while_it_can():
    for ranks, cells in ((2, 8), (4, 8), (5, 4), (40, 4)):
        trace, _ = straight(ranks)
        lines = table(trace, 75)
        assert {len(line) for _, line in lines[1:]} == {cells}
        assert {sum(width for _, width in line) for _, line in lines} <= {37, 73, 74}
        assert [name for name, _ in lines] == [
            "", "copy in", "reduce", "copy out", "signal", "wait for signal", REST]


def test_pictures_have_the_table_when_asked():
    trace, _ = straight()
    for picture in (draw.to_svg(trace, 1000, True), draw.to_terminal(trace, 100, True).plain):
        for text in ("copy out", REST, "rank 1", *trace.counted.splitlines()):
            assert text in picture
    assert f">{REST}<" not in draw.to_svg(trace)
    wrong = dataclasses.replace(trace.events[0], what="guessed")
    with pytest.raises(ValueError, match="guessed"):
        draw.to_svg(dataclasses.replace(trace, events=[wrong]))


def steps_missed(trace, world, count):
    """Steps of a rank's schedule that its events do not stand for exactly once, in their order."""
    missed = []
    for rank, steps in enumerate(world.traffic_by_step(count, 4)):
        told = [step for event in trace.events if event.rank == rank
                for step in range(event.step, event.step + event.steps)]
        missed += [(rank, step) for step in set(told) ^ set(range(len(steps)))]
        missed += [(rank, step) for step in told if told.count(step) > 1]
    return missed


def test_a_measured_straight_call_is_told_whole(paceline, tmp_path):
    events, picture = tmp_path / "events.json", tmp_path / "picture.svg"
    status, out, err = paceline(
        "draw", "allreduce", "-n", 3, "--size", "96KiB", "--algorithm", "two_shot", "--blocks", 2,
        "--measured", "--json", events, "--svg", picture)
    assert status == 0, err
    assert "reduce + copy in" in out and "all ranks read and write" in out
    assert "reduce + copy in" in picture.read_text(encoding="utf-8")
    found = from_json(events.read_text(encoding="utf-8"))
    world = _core.World("allreduce", "two_shot", 3, blocks=2, in_place=True)
    count = 96 * 256
    assert steps_missed(found, world, count) == []
    less = [event for event in found.events if event.activity != "signal"]
    single = [dataclasses.replace(event, steps=1) for event in found.events]
    for mutant in (less, single, [*found.events, found.events[0]]):
        assert steps_missed(dataclasses.replace(found, events=mutant), world, count)
    for rank, whole in enumerate(world.traffic_by_rank(count, 4)):
        shares = spent(found, rank)
        assert sum(share.moved for share in shares.values()) == whole.total.total
        total = sum(share.seconds for share in shares.values())
        assert total == pytest.approx(found.exit_s[rank] - found.arrival_s[rank])


def test_a_measured_call_on_shared_arrays(paceline):
    status, out, err = paceline("draw", "allreduce", "-n", 2, "--size", "64KiB", "--algorithm",
                                "symmetric", "--measured")
    assert status == 0, err
    assert "reduce + copy" in out


def test_explain_counts_for_the_chosen_algorithm(paceline):
    _, out, _ = paceline("explain", "allreduce", "--size", "64MiB", "-n", 2)
    for line in ("copy in 128 MiB, 2 n 256 MiB, 4 n", "together 288 MiB, 4.5 n 576 MiB, 9 n",
                 "as soon as made 32 MiB, 0.5 n 64 MiB, 1 n", "waits of a rank 129 at most 129"):
        assert line in flat(out)
    _, out, _ = paceline("explain", "allreduce", "--machine", "edr-100g", "-n", 4)
    assert "read and written" not in out
