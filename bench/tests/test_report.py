"""`paceline report`: pages and tables from small files, and what their lines say of themselves."""

import csv
import json
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from length import in_long
from matplotlib.figure import Figure
from paceline import cli
from paceline.errors import UsageError
from paceline.profiling.page import check_extra
from paceline_bench.cli import report as commands
from paceline_bench.report import figures, lines, measured, page, pipelining, ring

MEASURED_S = 0.123456  # of no simulated line
BOUND_S = 0.1


def record(variant, nbytes=1 << 20, **more):
    """As `paceline bench` writes it."""
    return {
        "collective": "allreduce", "bytes": nbytes, "ranks": 8, "variant": variant,
        "library": "mpi" if variant.startswith("mpi") else "paceline", "segments": 1,
        "segment_bytes": None, "combines": True, "time_us_median": MEASURED_S * 1e6,
        "bound_us": BOUND_S * 1e6,
        "interval": {"of": "launches", "low_us": 1.2e5, "high_us": 1.3e5, "confidence": 0.95},
        **more}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Records of a lab, the smallest that all figures of allreduce have something of."""
    rows = [record("ring x 1"), record("ring x 4", segments=4), record("mpi", segments=None),
            record("ring x 1, no reduce", combines=False), record("mpi x 4", segments=4),
            record("mpi by 1 MiB", segment_bytes=1 << 20)]
    about = {"processor": "a processor", "cores_allowed": 2, "cores": 2, "system": "a system"}
    made = {"machine": about, "date": "2026-11-22T05:00:00", "command": "./dev lab bench allreduce",
            "mpi": {"version": "MPICH Version: 5", "kind": "MPICH", "cluster":
                    {"nodes": 8, "ranks_per_node": 1, "rate": "200mbit"}}, "records": rows}
    path = tmp_path_factory.mktemp("records") / "records.json"
    path.write_text(json.dumps(made))
    return path


def run(*words):
    """The command line: its page and its table."""
    assert cli.main(["report", *map(str, words)]) == 0
    html = words[words.index("--html") + 1]
    with html.with_suffix(".csv").open(newline="") as rows:
        return html.read_text(), list(csv.DictReader(rows))


def mislabelled(rows):
    """Rows whose kind is not that of where their time comes from."""
    return [row for row in rows
            if (row["kind"] == "measured") != (float(row["seconds"]) == MEASURED_S)]


def small(tmp_path, *more):
    return run("pipelining", "--largest", "2MiB", "--most-ranks", "8",
               "--html", tmp_path / "page.html", *more)


@pytest.fixture(scope="module")
def with_file(tmp_path_factory, file):
    """A page, and a table, of simulated and of measured lines."""
    return small(tmp_path_factory.mktemp("report"), "--measured", file)


@in_long
def test_pipelining(with_file):
    html, rows = with_file
    assert mislabelled(rows) == []
    assert {row["kind"] for row in rows} == {"measured", "simulated"}
    names = [f"figure {n}" for n in (1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14)] + ["growth"]
    assert all(f"<h2>{name.capitalize()}" in html for name in names)
    assert {row["figure"] for row in rows} == set(names) - {"figure 12"}  # no file of Open MPI
    assert all(0 < float(row["bound_s"]) <= float(row["seconds"]) * 1.000001 for row in rows)
    ours = next(row for row in rows if row["kind"] == "measured" and row["line"] == "ring")
    assert float(ours["mb_per_s"]) == pytest.approx((1 << 20) / MEASURED_S / 1e6, rel=1e-5)
    assert float(ours["fraction_of_bound"]) == pytest.approx(BOUND_S / MEASURED_S, rel=1e-5)
    assert ours["origin"] == "records.json, 2026-11-22" and "200mbit" in ours["panel"]
    for words in ("ring x 4 (measured)", "ring x 4 (simulated)", "./dev lab bench allreduce",
                  "a processor", "MPICH Version: 5", "matplotlib "):
        assert words in html, words


@in_long
def test_a_measured_line_labelled_simulated_is_found(tmp_path, file, monkeypatch):
    monkeypatch.setattr(lines.Line, "kind", property(lambda line: "simulated"))
    assert mislabelled(run("ring", "--measured", file, "--html", tmp_path / "ring.html")[1])


@in_long
def test_a_negative_result_stays(with_file):
    """A linear allgather gains nothing from segments, and a chain of broadcast does."""
    _, rows = with_file
    best = {(row["figure"], row["line"]): float(row["mb_per_s"]) for row in rows if
            (row["kind"], row["ranks"], row["bytes"]) == ("simulated", "8", str(2 << 20))}
    assert best["figure 5", "linear x 8"] <= best["figure 5", "linear"]
    assert best["figure 6", "chain x 8"] > 2 * best["figure 6", "chain"]


@in_long
def test_without_files_nothing_is_invented(tmp_path, monkeypatch):
    monkeypatch.setattr(measured, "RESULTS", tmp_path / "none")
    html, rows = small(tmp_path)
    assert {row["kind"] for row in rows} == {"simulated"} and mislabelled(rows) == []
    assert "(measured)" not in html and html.count("No file has measurements of this figure") == 9


def test_the_repositorys_results_are_shown_where_none_are_given(tmp_path):
    html, rows = run("ring", "--html", tmp_path / "ring.html")
    assert "No file has" not in html
    assert any(row["origin"].startswith("ring.csv, ") for row in rows)
    for name, files in commands.DEFAULTS.items():
        assert [path.name for path in commands.kept(name)] == list(files)


def test_a_page_has_its_sources_on_top_then_a_picture_then_the_verdicts(tmp_path, file):
    html, _ = run("ring", "--measured", file, "--html", tmp_path / "ring.html")
    places = [html.index(words) for words in (
        "<h1>", "Y. Ueno: Technologies behind distributed deep learning", "2018.", "<svg",
        "Claims and verdicts", 'class="not-measured"', "Ueno 2018, figure 6", "<h2>Measured")]
    assert places[:5] == sorted(places[:5]) and places[4] < min(places[5:]), places
    assert "`" not in html.partition("<h2>Where the numbers come from")[0]


def test_backticks_become_code_and_nothing_else_becomes_html():
    assert page.code("`a --b` & <c>") == "<code>a --b</code> &amp; &lt;c&gt;"


def test_bars_and_their_labels_have_the_unit_of_the_axis():
    line = lines.Line("a ring", lines.Model("a model", ""), (lines.Point(8, 1, 2e-3, 1e-3, 4e-3),))
    panel = lines.Panel(40 * "words ", "allreduce", (line,), {1: 1e-3})
    picture = Figure()
    figures.draw(panel, "bars", picture)
    (axes,) = picture.axes
    assert axes.get_xlabel() == "time (ms)" and axes.patches[0].get_width() == pytest.approx(2)
    assert axes.get_yticklabels()[0].get_text() == "a ring\n2 ms, simulated"
    assert max(map(len, axes.get_title(loc="left").splitlines())) <= figures.TITLE_COLUMNS


@pytest.mark.parametrize(("seconds", "unit"), [(1e-3, "MB/s"), (1e-6, "GB/s")])
def test_high_rates_have_another_unit(seconds, unit):
    line = lines.Line("a ring", lines.Model("a model", "shm"),
                      tuple(lines.Point(8, size, seconds) for size in (500_000, 1_000_000)))
    picture = Figure()
    figures.draw(lines.Panel("", "allreduce", (line,), {}), "lines", picture)
    (axes,) = picture.axes
    picture.canvas.draw()
    assert axes.get_ylabel() == f"message / time ({unit})"
    assert "1000" in [label.get_text() for label in axes.get_yticklabels()]


def test_each_panel_is_a_picture_of_its_own():
    line = lines.Line("a ring", lines.Model("a model", "shm"), (lines.Point(8, 1, 2e-3),))
    panels = [lines.Panel(title, "allreduce", (line,), {}) for title in ("one", "two", "three")]
    html = page.render("", (), (lines.Figure("figure", "", "", panels, drawn="bars"),), "a.csv")
    pictures = html.split("</svg>")[:-1]
    titles = [re.findall(">(one|two|three)<", picture) for picture in pictures]
    assert titles == [["one"], ["two"], ["three"]]


def test_long_steps_are_announced_on_stderr(monkeypatch, capsys):
    with commands.progress("short"):
        pass
    monkeypatch.setattr(commands, "SILENT_S", 0)
    with commands.progress("long"):
        for _ in range(1000):
            time.sleep(0.01)
            if (said := capsys.readouterr().err):
                break
    assert said == "report: long ...\n"


def test_ring(tmp_path, file):
    html, rows = run("ring", "--measured", file, "--html", tmp_path / "ring.html")
    assert mislabelled(rows) == []
    plain = next(row for row in rows if row["line"] == "plain ring over Sendrecv")
    chosen = next(row for row in rows if row["line"].startswith("paceline, chosen"))
    assert float(plain["bound_s"]) <= float(chosen["seconds"]) < float(plain["seconds"])
    assert (plain["bytes"], plain["ranks"], plain["kind"]) == ("256000000", "8", "simulated")
    own = next(row for row in rows if row["line"] == "the MPI, blocking")
    assert (own["low_s"], own["high_s"], own["kind"]) == ("0.12", "0.13", "measured")
    assert not any("no reduce" in row["line"] for row in rows)
    assert html.count("No file has") == 1  # of what was not warmed up


def test_ring_without_warm_up(tmp_path, file):
    """Its slowest call stands in the table, and what was not warmed up in no other figure."""
    found = json.loads(file.read_text())
    found["records"] = [
        record("mpi ring of Sendrecv", cold=True, time_us_median=1e5,
               interval={"low_us": 0.9e5, "high_us": 7.5e5}),
        record("paceline", cold=True, time_us_median=1e5,
               interval={"low_us": 1e5, "high_us": 1e5})]
    path = tmp_path / "cold.json"
    path.write_text(json.dumps(found))
    html, rows = run("ring", "--measured", path, "--html", tmp_path / "ring.html")
    assert ">lab of 8 nodes, 200mbit each way, MPICH Version: 5: 7.5<" in html
    assert {row["figure"] for row in rows if row["kind"] == "measured"} == {"not warmed up"}
    assert html.count("No file has") == 1


def test_a_folder_stands_for_the_files_in_it(tmp_path, file, capsys):
    page = tmp_path / "ring.html"
    of_folder, of_file = (run("ring", "--measured", path, "--html", page)[1]
                          for path in (file.parent, file))
    assert of_folder == of_file and any(row["kind"] == "measured" for row in of_folder)
    (tmp_path / "empty").mkdir()
    assert cli.main(["report", "ring", "--measured", str(tmp_path / "empty")]) == 2
    assert "There is no *.json and no *.csv in" in capsys.readouterr().err


@pytest.mark.parametrize("report", [pipelining, ring])
def test_the_lab_is_told_what_it_understands(report, capsys):
    """Every command is one of ./dev lab, with options that the benchmark has."""
    assert cli.main(["report", report.__name__.rsplit(".", 1)[1], "--lab"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said == list(report.commands())
    assert said[0].startswith("mkdir") and said[1].startswith("./dev lab up")
    assert said[-2] == "./dev lab down" and "bench/collect.py bench/results/" in said[-1]
    from paceline_bench.cli.bench import command

    known = {name for option in command.params for name in option.opts} | {"--mpi", "--json"}
    for line in said[2:-2]:
        assert line.startswith("./dev lab bench ")
        words = {word for word in line.split() if word.startswith("--")}
        assert words <= known, line
        if " allreduce " in line and "--peer-segments" in words:   # in place it is a binomial tree
            assert "--separate" in words, line


def test_files_of_several_settings_are_read(file, tmp_path):
    """As bench/lab/run.py writes them."""
    one = json.loads(Path(file).read_text())
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"settings": {"default": one, "best": one}}))
    assert [part.records for part in measured.read(path)] == 2 * [tuple(one["records"])]


def test_what_is_chosen_is_drawn_beside_what_is_not_cut():
    rows = {name: record(name, **more) for name, more in {
        "ring x 1": {}, "ring x 4": {"segments": 4}, "paceline": {"segments": 4, "chosen": True},
        "ring by 1 MiB": {"segment_bytes": 1 << 20}, "mpi": {"segments": None},
        "ring x 1, no reduce": {"combines": False}}.items()}
    drawn = [name for name, row in rows.items() if measured.whole(None, row)]
    assert drawn == ["ring x 1", "paceline", "mpi"]


def test_files_of_one_mpi_share_a_panel(file, tmp_path):
    one = json.loads(Path(file).read_text())
    one["records"] = [record("ring x 2", segments=2), record("mpi", segments=None, ranks=9)]
    other = json.loads(json.dumps(one))
    other["mpi"]["setting"] = "best"
    other["records"] = [record("ring x 2", nbytes=4 << 20, segments=2)]
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"settings": {"default": one, "best": other}}))
    both = [part for name in (file, path) for part in measured.read(name)]
    *eight, nine = measured.panels(both, "allreduce", lambda file, row: True)
    assert "9 ranks" in nine.title and all("8 ranks" in panel.title for panel in eight)
    labels = [line.label for panel in eight for line in panel.lines]
    assert len(set(labels)) == len(labels) and "ring" in labels
    assert {"ring x 2", "ring x 2, best"} <= set(labels)
    assert [line.label for line in nine.lines] == ["the MPI, blocking"]
    assert set(eight[0].bounds) == {1 << 20, 4 << 20}


def test_legends_are_words_and_panels_have_few_lines(file):
    """A series that was measured twice is numbered; a panel of too many lines becomes two."""
    (one,) = measured.read(file)
    twice = measured.panels([one, replace(one, records=one.records[:1])], "allreduce",
                            lambda file, row: True)
    labels = [line.label for panel in twice for line in panel.lines]
    assert labels == ["ring", "ring x 4", "ring, no reduce", "ring, series 2", "the MPI, blocking",
                      "the MPI, non-blocking x 4", "the MPI, non-blocking by 1 MiB"]
    assert [panel.title.rpartition(", ")[2] for panel in twice] == ["part 1 of 2", "part 2 of 2"]
    assert measured.in_words("ring x 16") == "ring x 16"
    assert measured.in_words("mpi ring of Sendrecv") == "plain ring over Sendrecv"


@in_long
def test_every_figure_has_a_claim_with_a_verdict(with_file):
    html, rows = with_file
    for name in (1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 14):
        assert f">Castelló 2021, figure {name}\n" in html
    assert html.count("not measured (fitted: ") == 4  # figures 2, 3, 4 and 13


def test_files_of_others_are_refused(tmp_path):
    for text, why in (("[]", "has no machine"), ("{", "is no file of measurements"),
                      ('{"settings": {"x": 1}}', "has no machine")):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(UsageError, match=why):
            measured.read(tmp_path / "x.json")


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"matplotlib is not installed.*paceline\[profile\]"):
        check_extra()


@pytest.mark.parametrize("kind", ["pipe", "long", "deep", "folder"])
def test_measured_file_that_is_none(kind, tmp_path):
    """Through the bounded reader: nobody waits for a pipe, or reads without end."""
    path = tmp_path / "found.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "long":
        with open(path, "wb") as out:
            out.truncate((64 << 20) + 1)
    elif kind == "deep":
        path.write_text("[" * 100000)
    else:
        path.mkdir()
    with pytest.raises(UsageError, match="found.json"):
        measured.read(path)
