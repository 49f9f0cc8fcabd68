"""`paceline report dag`: figures of training, simulated and from files, and their verdicts."""

import csv
import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
from length import in_long
from paceline import cli
from paceline.errors import UsageError
from paceline_bench.cli import report as commands
from paceline_bench.report import (
    claims,
    dag,
    dag_cells,
    dag_linear,
    dag_replays,
    measured,
    training,
    verdicts,
)
from paceline_bench.train import replay, run_campaign

HEAD = {"machine": {"processor": "a processor", "cores_allowed": 2, "system": "a system"},
        "date": "2026-11-24T15:00:00", "command": "paceline train"}


def trained(way, ranks, seconds, collectives=None, last_loss=0.5):
    """As `paceline train --json` writes it."""
    rank = {"data": "real data: digits", "epochs": [
        {"seconds": seconds, "time_s": (n + 1) * seconds, "accuracy": 0.4 + n / 10}
        for n in range(3)],
        "losses": [[n / 100 + 0.01, 2.0 - n * (2.0 - last_loss) / 499] for n in range(500)],
        "profile": {"computing_s": 0.02, "exchange_s": 0.005}}
    return {**HEAD, "ranks": [rank] * ranks, "plan": {
        "model": "resnet50", "way": way, "over": "paceline", "collectives": collectives}}


def replayed(launches=1, **step_s):
    """As `paceline train replay --json` writes it; launches differ by a hundredth."""
    times = {"funnel:numbered": 1.8, "depcha:numbered": 1.5, "auto:numbered": 1.2,
             **{way.replace("_", ":"): took for way, took in step_s.items()}}
    return {**HEAD, "plan": {"ranks": 4, "ratio": 1.0},
            "launches": [{"times": {"resnet50": {
                way: took + 0.01 * n for way, took in times.items()}}} for n in range(launches)],
            "bounds": {"resnet50": {**{way: 0.9 * took for way, took in times.items()},
                                    "ddp:gloo": 1.4}},
            "summary": {"resnet50": {**{way: {"step_s": took} for way, took in times.items()},
                                     "ddp:gloo": {}}}}


@pytest.fixture
def folder(tmp_path):
    contents = [replayed(), *(trained(way, ranks, seconds / ranks)
                              for ranks in (1, 2)
                              for way, seconds in (("funnel", 3.0), ("concom", 2.5),
                                                   ("depcha", 1.5), ("auto", 1.4))),
                trained("bsp1", 4, 2.0, "be"), trained("bsp3", 4, 1.0, "lp")]
    made = tmp_path / "files"
    made.mkdir()
    for number, content in enumerate(contents):
        (made / f"{number:02}.json").write_text(json.dumps(content))
    return made


def run(tmp_path, *words):
    """Page and rows."""
    html = tmp_path / "dag.html"
    assert cli.main(["report", "dag", "--html", str(html), *map(str, words)]) == 0
    with html.with_suffix(".csv").open(newline="") as rows:
        return html.read_text(), list(csv.DictReader(rows))


def test_a_page_of_simulated_and_measured_lines(folder, tmp_path, capsys):
    page, rows = run(tmp_path, "--measured", folder)
    kinds = {(row["figure"], row["kind"]) for row in rows}
    assert {("epoch time", "simulated"), ("epoch time", "measured"), ("accuracy", "measured"),
            ("loss", "measured"), ("table 2", "simulated"), ("table 2", "measured"),
            ("replay", "measured"), ("table 1", "simulated"),
            ("theorem 3.1", "simulated")} == kinds
    assert "<td>log p (alpha + n beta)" in page and "<td>52.7 %" in page
    assert "BE Algorithm 1" in page and "No file has" not in page
    accuracies = [float(row["value"]) for row in rows if row["figure"] == "accuracy"]
    assert max(accuracies) == pytest.approx(0.6)
    assert sum(row["figure"] == "loss" for row in rows) <= 2 * run_campaign.MOST_POINTS
    assert ": 1.25<" in page and "no verdict" in page
    assert "Mamidala 2018" in capsys.readouterr().out


@in_long
def test_without_files_it_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "RESULTS", tmp_path / "none")
    page, rows = run(tmp_path)
    assert {row["kind"] for row in rows} == {"simulated"}
    assert page.count("No file has measurements of this figure") == 4


def figures_of(folder):
    files = [part for file in sorted(folder.glob("*.json")) for part in training.read(file)]
    return dag.make(files)


def words(figures, name):
    """{kind or group: verdict} of a claim."""
    cells = dag_cells.cells(figures)[name]
    return {(one.kind, one.group): verdicts.verdict(claims.DAG[name], [
        cell for cell in cells if (cell.kind, cell.group) == (one.kind, one.group)])[0]
        for one in cells}


def test_verdicts_follow_the_figures(folder):
    here = ("measured", "")
    assert words(figures_of(folder), "figures 13, 15") == {
        ("simulated", ""): "not measured", here: "reproduced",
        ("measured", "one machine"): "reproduced",
        ("measured", "2 ranks of one node"): "not reproduced"}
    cells = dag_cells.cells(figures_of(folder))
    node = [round(cell.value, 2) for cell in cells["figures 13, 15"] if "node" in cell.group]
    assert node == [0.95, 1.04] and round(cells["cost per key"][0].value, 2) == 2.09
    slower = trained("depcha", 2, 9.0)
    for file in folder.glob("*.json"):
        content = json.loads(file.read_text())
        if content["plan"].get("way") == "depcha":
            file.write_text(json.dumps(slower if len(content["ranks"]) == 2 else content))
    assert words(figures_of(folder), "figures 13, 15")[here] == "not reproduced"


@pytest.mark.parametrize("launches, depcha_s, gain, words", [
    (10, 1.5, "1.194", "faster"), (10, 1.9, "0.949", "slower"), (10, 1.8, "1.000", "undecided"),
    (9, 1.5, "1.195", "no verdict")])
def test_verdicts_of_replays_rest_on_ten_launches(tmp_path, launches, depcha_s, gain, words):
    """The ratio is the median of the launches' ratios, faster above 1, its interval beside it."""
    file = tmp_path / "replay.json"
    file.write_text(json.dumps(replayed(launches, depcha_numbered=depcha_s)))
    figure = dag_replays.figure(training.read(file), [], "")
    [row] = [row for row in figure.table if row[3:5] == ("depcha:numbered", "funnel:numbered")]
    assert row[5] == gain and row[8:] == (str(launches), words)
    assert bool(row[6]) == (launches == 10) and row[7] == f"{1.8 / depcha_s:.3f}"
    cells = dag_cells.replayed(figure.compared, dag_replays.CHAINED, dag_cells.OTHERS)
    assert verdicts.verdict(claims.DAG["figures 13, 15"], cells)[0] == (
        "reproduced" if depcha_s < 1.8 else "not reproduced")


@pytest.mark.parametrize("launches, auto_s, word", [
    (10, 1.0, "beyond"), (10, 9.0, "not reproduced"), (9, 1.0, "not measured")])
def test_auto_is_beyond_in_ten_launches_alone(tmp_path, launches, auto_s, word):
    file = tmp_path / "replay.json"
    file.write_text(json.dumps(replayed(launches, auto_numbered=auto_s)))
    figure = dag_replays.figure(training.read(file), [], "")
    cells = dag_cells.replayed(figure.compared, dag_replays.NUMBERED, (dag_replays.CHAINED,))
    assert verdicts.verdict(claims.DAG["figures 13-15: auto"], cells)[0] == word


def test_the_commands_of_replays_name_ways_that_there_are():
    lines = list(dag.replay_commands())
    assert lines[0].startswith("./dev lab up") and lines[-1] == "./dev lab down"
    for line in lines[1:-1]:
        ways = line.split("--ways ")[1].split()[0].split(",")
        assert not set(ways) - set(replay.WAYS), line


def test_linear_pipelines_are_half_of_spanning_trees_with_four_gpus():
    known = {}
    lp, mst = (dag.communicating_s("googlenet", method, 1, known) for method in ("LP", "MST"))
    assert 0.45 < lp / mst < 0.65
    assert dag.communicating_s("googlenet", "BE", 3, known) < lp


def test_formulas_of_table_1_are_what_schedules_take():
    for method in dag_linear.METHODS:
        for collective in dag_linear.COLLECTIVES:
            found = dag_linear.simulated_s(method, collective, 16)
            assert found == pytest.approx(dag_linear.formula_s(method, collective, 16), rel=0.02)
    assert 3.7 < dag_linear.ratio("MST", "broadcast", 16) <= 4.0, "log2 16"
    assert 1.7 < dag_linear.ratio("BE", "broadcast", 16) <= 2.0


@in_long
def test_table_2_has_a_row_for_each_way(folder):
    (table,) = (figure for figure in figures_of(folder) if figure.name == "table 2")
    heads, *rows = table.table
    assert all(len(row) == len(heads) for row in rows)
    simulated = [row for row in rows if row[-1] == "simulated"]
    assert len(simulated) == len(dag.TABLE_2) == 2 * len(dag.WAYS)
    measured = [row for row in rows if row[-1] == "measured"]
    assert [row[1] for row in measured] == ["BE Algorithm 1", "LP Algorithm 3"]
    assert measured[0][4:7] == ("0.0050 s", "0.0200 s", "20.0 %")


def test_training_that_was_cut_short_is_drawn_as_far_as_it_came(folder):
    content = trained("bsp3-overlap", 4, 1.0, "lp")
    del content["ranks"][0]["profile"]
    (folder / "cut.json").write_text(json.dumps(content))
    content["ranks"][0]["epochs"] = []
    (folder / "empty.json").write_text(json.dumps(content))
    figures = {figure.name: figure for figure in figures_of(folder)}
    labels = {name: [line.label for panel in figures[name].panels for line in panel.lines]
              for name in ("loss", "table 2")}
    assert labels["loss"].count("LP overlapped Algorithm 3") == 1
    assert "LP overlapped Algorithm 3" not in labels["table 2"]


def test_more_workers_take_less_time_and_never_less_than_computing():
    panel = dag.epochs("resnet50", range(1, 5))
    for line in panel.lines:
        took = [point.seconds for point in line.points]
        assert took == sorted(took, reverse=True)
        assert all(point.seconds >= panel.bounds[point.ranks] * 0.999 for point in line.points)


@pytest.mark.parametrize("content", [{}, [], {**HEAD, "plan": {}}])
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match="is not a file of `paceline train --json`"):
        training.read(tmp_path / "a.json")


def test_the_results_of_this_tree_have_training_and_replays():
    lines = training.Lines([part for file in commands.kept("dag") for part in training.read(file)])
    assert lines.epochs() and lines.accuracies() and lines.replays()


def test_the_commands_for_measurements_are_printed(capsys):
    """The command that makes the CSV takes all files of training, and none of replays."""
    assert cli.main(["report", "dag", "--lab"]) == 0
    said = capsys.readouterr().out
    assert "--way bsp3-overlap --collectives lp" in said
    [(campaign, chosen)] = re.findall(r"bench/collect.py (\S+) (\S+)", said)
    assert Path(campaign).name in commands.DEFAULTS["dag"]
    lines = [line for line in said.splitlines() if " --json " in line]
    taken = [fnmatch(line.split(" --json ")[1], chosen) for line in lines]
    assert taken == [line.startswith("paceline train -n") for line in lines]
    assert any(taken) and not all(taken)
