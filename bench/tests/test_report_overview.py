"""`paceline report` without a name: every figure and table of the publications has one row."""

from collections import Counter

from paceline import cli
from paceline_bench.cli import report as commands
from paceline_bench.report import overview

# How many figures and tables each publication counts.
COUNTED = {"pipelining": (14, 2), "arrival": (10, 3), "linear": (5, 2), "graph": (16, 0),
           "ring": (6, 0)}
THEOREMS = {("linear", "theorem 3.1")}


def test_every_figure_and_table_has_one_row():
    expected = {(document, f"{word} {number}") for document, counts in COUNTED.items()
                for word, count in zip(("figure", "table"), counts, strict=True)
                for number in range(1, count + 1)}
    found = Counter((row.document, row.name) for row in overview.ROWS)
    assert set(found) == expected | THEOREMS and set(found.values()) == {1}
    assert list(overview.DOCUMENTS) == list(COUNTED)


def test_rows_name_reports_that_there_are_or_say_why_not():
    assert set(overview.REPORTS) == set(commands.command.commands)
    for row in overview.ROWS:
        assert bool(row.reports) != bool(row.why), row
        assert set(row.reports) <= set(commands.command.commands), row


def test_the_command_prints_all_rows_in_a_narrow_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["report"]) == 0
    said = capsys.readouterr().out
    assert all(f"paceline report {name} " in said for name in overview.REPORTS)
    assert max(map(len, said.splitlines())) <= 80
    rows = [line for line in said.splitlines() if line.split(" ")[0] in ("figure", "table",
                                                                         "theorem")]
    assert len(rows) == len(overview.ROWS), "no row is broken"
    uncovered = [line for line in rows if "not covered: " in line]
    assert len(uncovered) == sum(not row.reports for row in overview.ROWS)
