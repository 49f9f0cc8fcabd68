"""`paceline report arrival`: what comes of a profile, runs step by step, training, and losses."""

import pytest
from length import in_long
from paceline import cli
from paceline_bench.report import (
    arrival,
    arrival_across,
    arrival_inside,
    arrival_losses,
    arrival_profile,
    arrival_random,
    arrival_runs,
    arrival_training,
    claims,
    gpu,
    verdicts,
)
from paceline_bench.report.lines import Figure, Panel, Point
from test_profile import MS, written


def two_nodes(folder):
    """Ranks of a node come 1 ms apart at most, the nodes 10 ms; short messages and long ones."""
    for rank, after in enumerate((0, 1, 10, 11)):
        rows = [(1000 * MS + 100 * MS * call + after * MS, 1000 * MS + 100 * MS * call + over * MS,
                 nbytes, call) for call, (nbytes, over) in enumerate(((8, 12), (1 << 20, 30)))]
        written(folder, rank, 4, rows, node=f"node{rank // 2}")


def test_a_profile_brings_figures_2_to_4_and_tables_1_and_2(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="could not import 'matplotlib': report")
    folder, page = tmp_path / "profile", tmp_path / "arrival.html"
    folder.mkdir()
    two_nodes(folder)
    monkeypatch.setattr(arrival, "PARTS", (arrival_runs,))
    assert cli.main(["report", "arrival", "--profile", str(folder), "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    for name in ("Figure 2", "Figure 3", "Figure 4", "Table 1", "Table 2", "Figure 5", "Figure 6"):
        assert f"<h2>{name}: " in text, name
    assert "measured, 4 ranks on 2 nodes" in text and "records your own" not in text
    found = {figure.name: figure for figure in arrival_profile.figures(folder)}
    # 11 ms apart, 1 ms and 19 ms from the last entry to the last exit; in the nodes 1 ms.
    assert found["table 1"].table[2:] == (
        ("Small messages", "11", "5"), ("Large messages", "0.579", "0.263"))
    heading, row = found["replay"].table
    assert heading == arrival_random.HEADINGS and row[:2] == ("recorded", "2")
    row = text[text.index("Alizadeh 2022, figures 2-4, tables 1-2"):].partition("</tr>")[0]
    assert ">not measured (these are facts about Horovod" in row, "another program proves nothing"


def test_without_a_profile_the_page_shows_the_kept_one_and_how_it_was_made():
    found = {figure.name: figure for figure in arrival_profile.figures(None)}
    assert {"figure 2", "figure 3", "figure 4", "table 1", "table 2", "replay"} <= set(found)
    assert "8 ranks on 4 nodes" in found["figure 2"].title
    for words in ("paceline train", "--way ddp", "records your own"):
        assert words in found["figure 2"].about, words
    worst, average = found["table 1"].table[-1][1:]
    assert float(worst) > float(average) > 0


@pytest.mark.parametrize("cases, ranks", [(arrival_inside.SMALL, 32), (arrival_inside.LARGE, 4)])
def test_figures_inside_a_node_have_all_cases_at_the_published_ranks(cases, ranks):
    found = arrival_inside.compare(cases, ranks, [64 << 10], 10, trials=1)
    assert set(found.after_s) == {case.label for case in cases}
    assert all(seconds > 0 for line in found.after_s.values() for seconds in line)
    for static, dynamic in ((case.label, cases[2].label) for case in cases if case.meets):
        assert found.after_s[static] >= found.after_s[dynamic]  # it begins later


def test_it_is_said_where_algorithms_by_arrival_lose():
    cases = arrival_inside.LARGE
    lines = []
    for case in cases:
        times = {"arrival_chain": (1.0, 4.0), "rabenseifner": (2.0, 3.0)}.get(
            case.parts[0][1], (5.0, 5.0))
        lines.append(arrival_inside.Line(case.label, arrival_inside.NODE, tuple(
            Point(4, nbytes, took) for nbytes, took in zip((1 << 16, 1 << 20), times))))
    figure = Figure("figure 8", "", "", (Panel("4 ranks, MIF 10", "allreduce", tuple(lines), {}),))
    rows = arrival_losses.figure([figure], {"figure 8": cases}).table[1:]
    chain = "Large-PAP-aware: arrival chain"
    assert rows == (
        ("figure 8", "4 ranks, MIF 10", chain, "1 of 2 sizes, 1 MiB to 1 MiB", "0.75", "1.38"),)


def test_training_with_nodes_of_different_speed(monkeypatch):
    monkeypatch.setattr(arrival_training, "NODE_COUNTS", (2,))
    monkeypatch.setattr(arrival_training, "NODES_10", 2)
    named = {figure.name: figure for figure in arrival_training.figures([])}
    most = {model: arrival_training.IMAGES / gpu.compute_s(model, arrival_training.IMAGES)
            for model in arrival_training.NETWORKS}
    for panel in named["figure 9"].panels:
        assert all(0 < point.seconds < most[panel.title]
                   for line in panel.lines for point in line.points)
    assert named["figure 10"].table[0] == (
        "", "Def-MVAPICH: flat RSA", "Hierarchical-RSA", "+Small-PAP-aware", "+Large-PAP-aware")
    assert set(arrival_training.cells(named)) == {
        "figure 9: resnet50", "figure 9: densenet201", "figure 9: vgg16", "figure 10: small",
        "figure 10: large"}


def test_table_3_has_the_forms_by_arrival_which_gain_where_a_rank_of_a_node_is_late(monkeypatch):
    monkeypatch.setattr(arrival_across, "NODE_COUNTS", (2,))
    monkeypatch.setattr(arrival_across, "SIZES", (1 << 20,))
    arrivals = [0, 0, 1e-3] + [0] * 5
    monkeypatch.setattr(arrival_across, "by_node", lambda ranks, nbytes, seed: arrivals)
    ratios = {line.label: line.points[0].seconds
              for line in arrival_across.hierarchical().lines}
    assert tuple(ratios) == arrival_across.BY_NODES
    for name in (arrival_across.SMALL_PAP, arrival_across.LARGE_PAP):
        assert ratios[name] > 1.2 * ratios["hierarchical_rsa"]


@in_long
def test_random_arrivals_lose_nothing_and_a_predictor_that_guesses_would_be_seen(monkeypatch):
    monkeypatch.setattr(arrival_random, "CALLS", 100)
    monkeypatch.setattr(arrival_random, "FACTORS", (2,))
    monkeypatch.setattr(arrival_random, "RUNS", (1, 20))
    found = {figure.name: figure for figure in arrival_random.figures([])}
    took = {row[0]: (int(row[2] or 0), float(row[3])) for row in
            found["random arrivals"].table[1:]}
    named, share = took["one late by 2, another every 20 calls"]
    assert took["uniform:2"][1] <= 1.005 and named > 20 and share < 0.95
    goal = claims.ARRIVAL["goal: random"]
    assert verdicts.verdict(goal, arrival_random.cells(found)["goal: random"])[0] == "reproduced"

    class Guesses:
        def __init__(self, ranks, nbytes, machine):
            self.calls = 0

        def next(self):
            self.calls += 1
            return [self.calls % arrival_random.RANKS]

        def learn(self, waits, taken):
            assert len(waits) == arrival_random.RANKS and len(taken) == 1

    monkeypatch.setattr(arrival_random._core, "Predictor", Guesses)
    found = {one.name: one for one in arrival_random.figures([])}
    assert verdicts.verdict(goal, arrival_random.cells(found)["goal: random"])[0] == (
        "not reproduced")


def test_a_profile_of_too_few_ranks_is_not_replayed():
    assert arrival_random.replayed([[0.0, 1.0]], "") == arrival_random.replayed([], "") == []
