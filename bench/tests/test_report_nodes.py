"""`paceline report arrival`: late ranks that share nodes, by what calls choose."""

import csv
from dataclasses import replace

import pytest
from length import in_long
from paceline import cli
from paceline_bench.report import arrival, arrival_measured, arrival_nodes, claims, verdicts
from paceline_bench.report.lines import Records
from paceline_bench.report.measured import Measured


@pytest.fixture(scope="module")
def figure():
    """Of one length of messages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrival_nodes, "SIZES", (4 << 20,))
        return arrival_nodes.figures([])[0]


def words(figure, monkeypatch):
    """The verdicts, goal by goal."""
    monkeypatch.setattr(arrival_nodes, "SIZES", (4 << 20,))
    return {key: verdicts.verdict(claims.ARRIVAL[key], cells)[0]
            for key, cells in arrival_nodes.cells({arrival_nodes.NAME: figure}).items()}


def test_a_late_rank_of_a_node_leaves_little_and_its_node_no_more(figure, monkeypatch):
    heading, *rows = figure.table
    assert heading == arrival_nodes.HEADINGS and len(rows) == 9
    for name, way, nobody, in_time, half, one, two, node in rows:
        if way == arrival_nodes.STATIC:
            assert nobody == in_time and float(one) > 1.5
        else:
            assert 1 <= float(one) <= (1.30 if way == "fast" else 1.40), name
            assert float(one) < float(half) < float(in_time)
            assert float(node) == pytest.approx(float(two), abs=0.03)
    assert set(words(figure, monkeypatch).values()) == {"reproduced"}
    late = arrival_nodes.cells({arrival_nodes.NAME: figure})["goal: late, fast"]
    assert [cell.where for cell in late] == [f"4 MiB, rank 3 late by {at} n/rate" for at in (1, 2)]


def test_forms_that_leave_too_much_or_cost_too_much_are_not_reproduced(figure, monkeypatch):
    def slower(panel):
        return replace(panel, lines=tuple(
            line if line.label == arrival_nodes.STATIC else replace(line, points=tuple(
                replace(point, seconds=1.6 * point.seconds) for point in line.points))
            for line in panel.lines))

    monkeypatch.setattr(arrival_nodes, "given_up",
                        lambda way: [verdicts.Cell("simulated", "", 1.04)])
    found = words(replace(figure, panels=tuple(map(slower, figure.panels))), monkeypatch)
    assert len(found) == 4 and set(found.values()) == {"not reproduced"}


def measured_of(command, *rows):
    """A file of four nodes with two ranks each; rows: (label, arrival, seconds over n/rate)."""
    origin = Records("x", "lab of 4 nodes, 2 ranks each, 200mbit each way", "MPICH 5", "", "",
                     command)
    return Measured(origin, "default", "MPICH", tuple(
        {"bytes": 4 << 20, "variant": label, "chosen": True, "arrival": arrival,
         "time_us_median": 1e5 * took, "in_call_us_mean": 2e5 * took, "message_us": 1e5,
         "late_from_call": 3} for label, arrival, took in rows))


def measured_words(*files):
    """{goal: words of its verdicts}, of what files have measured."""
    [figure] = arrival_measured.figures(files)
    return {key: [row.word for row in verdicts.rows({"": claims.ARRIVAL[key]}, {"": found})[0]
                  .outcomes] for key, found in
            arrival_measured.cells({arrival_measured.NAME: figure}).items()}


@pytest.mark.parametrize("late, in_time, none, word", [
    (1.45, 1.25, 1.03, "reproduced"), (1.46, 1.26, 1.04, "not reproduced")])
def test_measured_late_ranks_are_judged(late, in_time, none, word):
    off = "paceline, predict off"
    files = (
        measured_of("bench --arrival late:3:1", ("paceline", "late:3:1", late),
                    (off, "late:3:1", 1.9)),
        measured_of("bench --predict static:3", ("paceline", "together", in_time),
                    (off, "together", 1.0)),
        measured_of("bench", ("paceline", "together", none), (off, "together", 1.0)))
    assert measured_words(*files) == {
        "goal: late, fast": ["not measured"], "goal: late, stable": [word],
        "goal: named, in time": [word], "goal: none late": [word]}
    heading, first, _ = arrival_measured.figures(files)[0].table
    assert heading == arrival_measured.HEADINGS
    assert first[1:] == ("stable", "late:3:1", "4 MiB", "paceline", f"{late:.2f}",
                         f"{2 * late:.2f}", "3")
    assert arrival_measured.figures(files[1:]) == []


@in_long
def test_the_page_has_goals_and_the_table_every_point(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="could not import 'matplotlib': report")
    monkeypatch.setattr(arrival, "PARTS", (arrival_nodes,))
    monkeypatch.setattr(arrival_nodes, "SIZES", (1 << 20, 4 << 20))
    page = tmp_path / "arrival.html"
    assert cli.main(["report", "arrival", "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "<h2>Ranks that share nodes: " in text
    assert text.count("goal, fast: 1.35") == 2 and text.count("4 MiB<") >= 8
    with page.with_suffix(".csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert len(rows) == 8 * 3 * 2 and {row["kind"] for row in rows} == {"simulated"}
    assert not any(row["seconds"] for row in rows) and all(row["value"] for row in rows)
