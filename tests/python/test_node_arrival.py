"""Ranks of a node that come at different times: counted, drawn, simulated by order of arrival."""

import pytest

from paceline import UsageError, _core, trace
from paceline_bench.report import arrival_inside


def left(name, ranks, late):
    """Bytes per byte of the message that are moved once the late rank has come."""
    world = _core.World("allreduce", name, ranks)
    return sum(t.total.total - t.total.again for t in world.traffic_after(late, 1024, 4)) / 4096


def test_what_is_left_does_not_depend_on_who_is_late():
    for ranks in (2, 5, 16):
        for late in (0, ranks // 2, ranks - 1):
            assert left("arrival_chain", ranks, late) == 2 * ranks + 2
    assert left("one_shot", 8, 0) > left("arrival_leader", 8, 0)
    with pytest.raises(UsageError, match="rank 3 among 3"):
        _core.World("allreduce", "ring", 3).traffic_after(3, 10, 4)


@pytest.fixture
def drawn(paceline, tmp_path):
    """The trace that `paceline draw` writes for these arguments."""
    def draw(*arguments):
        events = tmp_path / "events.json"
        status, _, error = paceline("draw", *arguments, "--machine", "shm", "--json", events)
        assert status == 0, error
        return trace.from_json(events.read_text(encoding="utf-8"))
    return draw


def test_figure_5_whoever_comes_first_leads(drawn):
    found = drawn("allreduce", "--algorithm", "dynamic_leader", "--ranks", 4,
                  "--size", "4KiB", "--arrivals", "9us,3us,0,6us")
    adds = {event.rank for event in found.events if event.activity == "reduce" and event.bytes}
    assert adds == {2}
    told = [event.peer for event in found.events if event.rank == 2 and event.activity == "wait"]
    assert told == [1, 3, 0]


def test_figure_6_each_adds_to_what_the_one_before_has(drawn):
    found = drawn("reduce", "--algorithm", "arrival_chain", "--ranks", 4,
                  "--size", "1MiB", "--root", 0, "--arrivals", "0,3ms,1ms,2ms")
    waits = {(event.rank, event.peer) for event in found.events if event.activity == "wait"}
    assert waits == {(2, 0), (3, 2), (1, 3), (0, 1)}
    assert max(found.exit_s[2], found.exit_s[3]) < found.arrival_s[1]   # they left early


def test_simulated_figures():
    cases = (arrival_inside.SMALL[0], arrival_inside.SMALL[3])
    [panel] = [arrival_inside.compare(cases, 8, [1024, 65536], 20, trials=2)]
    static, dynamic = (panel.after_s[case.label] for case in cases)
    assert all(b < a for a, b in zip(static, dynamic))
    assert all(0 < inside for inside in panel.inside_s[cases[0].label])


def test_the_figures_of_the_report(monkeypatch):
    monkeypatch.setattr(arrival_inside, "sweep", lambda cases, ranks, sizes, machine, trials: [
        arrival_inside.compare(cases, 4, sizes[:2], factor, machine, 1) for factor in (10, 50)])
    found = {figure.name: figure for figure in arrival_inside.figures([])}
    assert [len(figure.panels) for figure in found.values()] == [2, 2, 2, 2]
    assert [*arrival_inside.cells(found)] == [
        f"figure {number}: {factor}" for number in (7, 8) for factor in (10, 50)]


def test_orders_that_are_none():
    with pytest.raises(UsageError, match="2 arrival times for 3 ranks"):
        _core.World("allreduce", "arrival_chain", 3).simulate(10, 4, "shm", [0, 1])
