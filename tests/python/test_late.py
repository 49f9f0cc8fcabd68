"""Ranks that are predicted to enter last, on the command line; and the page about arrivals."""

import csv

import pytest
from length import in_long

from paceline import _core, cli
from paceline.errors import UsageError
from paceline_bench.report import (
    arrival, arrival_across, arrival_inside, arrival_training, claims, verdicts,
)

FOUR_OF_TWO = [0, 0, 1, 1, 2, 2, 3, 3]
MACHINE = "lab-200mbit,ranks_per_node=2"


def test_verify_takes_late_ranks(paceline):
    world = ("verify", "allreduce", "--algorithm", "tail_direct", "--ranks", "6")
    status, out, _ = paceline(*world, "--late", "2,5", "--print", "0")
    assert status == 0 and "late: 2 5" in out and "--late 2,5" in out, out
    status, out, _ = paceline(*world)
    assert status == 0 and "late" not in out


@pytest.mark.parametrize("late, words", [
    ("6", "rank 6 is named late among 6 ranks"), ("2,2", "named late twice"),
    ("two", "is no list of ranks"), ("-1", "is no list of ranks")])
def test_what_is_no_list_of_ranks_is_refused(paceline, late, words):
    status, out, err = paceline("verify", "allreduce", "--algorithm", "tail_direct", "--ranks", "6",
                                f"--late={late}")
    assert status == 2 and words in " ".join((out + err).split()), out + err


def test_late_belongs_to_one_world(paceline):
    status, out, err = paceline("verify", "allreduce", "--late", "1")
    assert status == 2 and "--late describes one world" in out + err


def test_draw_shows_who_is_late_and_what_that_gains(paceline, tmp_path):
    def drawn(*more):
        status, out, err = paceline("draw", "allreduce", "--ranks", "8", "--size", "16MiB",
                                    "--arrivals", "7=5ms", *more)
        assert status == 0, out + err
        return out

    assert "late: 7" in drawn("--algorithm", "sorted_chain", "--late", "7")
    assert "late: 7" not in drawn("--algorithm", "ring", "--late", "7")


def test_the_choice_goes_over_where_bits_may_follow(monkeypatch):
    def chosen(late):
        return _core.choose("allreduce", 8, 16 << 20, machine="ethernet-10g", late=late)

    usual = chosen([])["algorithm"]
    assert usual == "ring" and chosen([7])["algorithm"] == "tail_as_ring"
    assert chosen([7])["segments"] == chosen([])["segments"]   # each of them is a ring
    monkeypatch.setenv("PACELINE_NUMBERS", "fast")
    assert chosen([])["algorithm"] == usual
    assert chosen([7])["algorithm"] == "sorted_chain"


def chosen_on(nodes, late=(), numbers="fast"):
    """Of 4 MiB."""
    return _core.choose("allreduce", len(nodes), 4 << 20, machine=MACHINE, nodes=nodes,
                        late=list(late), numbers=numbers)["algorithm"]


def test_the_choice_takes_nodes_of_any_sizes_and_numbers():
    assert chosen_on(FOUR_OF_TWO, [3]) == "multilane_tail_direct"
    assert chosen_on(FOUR_OF_TWO, [3], "stable") == "multilane_tail_as_ring"
    assert chosen_on(FOUR_OF_TWO, [], "stable") == "multilane"
    uneven = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert chosen_on(uneven, [3], "stable") == "multilane_tail_as_ring"
    assert chosen_on(uneven, [3]).startswith("multilane_tail_")   # both leave nearly as much
    assert chosen_on([0, 0, 0, 1, 1, 2, 2, 2], [3]) == "multilane"   # of three nodes none is late
    assert chosen_on(list(range(8)), [3]) == "sorted_chain"
    group = _core.choose("allreduce", 8, 4 << 20, machine=MACHINE)["group"]
    assert group == 2


def test_the_choice_refuses_nodes_and_numbers_that_are_none():
    with pytest.raises(UsageError, match="choose: there must be a node for each of 8 ranks"):
        chosen_on(FOUR_OF_TWO[1:] + [5])
    with pytest.raises(UsageError, match="choose: numbers"):
        chosen_on(FOUR_OF_TWO, numbers="fats")


def test_explain_says_fast(paceline, monkeypatch):
    far = ("--machine", "edr-100g", "--ranks", "16", "--size", "64KiB")
    monkeypatch.setenv("PACELINE_NUMBERS", "fast")
    assert "numbers=fast" in paceline("explain", "allreduce", *far)[1]
    assert "numbers=fast" not in paceline("explain", "broadcast", *far)[1]


def test_page_about_arrivals(monkeypatch, tmp_path):
    monkeypatch.setattr(arrival, "PARTS", (arrival_across,))  # the other: test_node_arrival.py
    monkeypatch.setattr(arrival_across, "RANKS", (8, 16))
    monkeypatch.setattr(arrival_across, "NODE_COUNTS", (2, 4))
    monkeypatch.setattr(arrival_across, "SIZES", (1 << 16, 1 << 20))
    page = tmp_path / "arrival.html"
    assert cli.main(["report", "arrival", "--html", str(page)]) == 0
    with page.with_suffix(".csv").open(newline="") as table:
        rows = list(csv.DictReader(table))
    assert {row["kind"] for row in rows} == {"simulated"}
    assert "Left after the last entry" in page.read_text()


@in_long
@pytest.mark.limit_s(180)   # 16 s alone, and all of it computing
def test_every_claim_of_the_page_has_cells(monkeypatch):
    monkeypatch.setattr(arrival_inside, "sweep", lambda cases, ranks, sizes, machine, trials: [
        arrival_inside.compare(cases, 4, sizes[:2], factor, machine, 1)
        for factor in arrival_inside.FACTORS])
    monkeypatch.setattr(arrival_across, "RANKS", (8,))
    monkeypatch.setattr(arrival_across, "NODE_COUNTS", (2,))
    monkeypatch.setattr(arrival_across, "SIZES", (1 << 20,))
    monkeypatch.setattr(arrival_training, "NODE_COUNTS", (2,))
    monkeypatch.setattr(arrival_training, "NODES_10", 2)
    figures = arrival.make([])
    rows = verdicts.rows(claims.ARRIVAL, arrival.cells(figures))
    assert [row.name for row in rows if not row.outcomes[0].kind] == [
        "Alizadeh 2022, figures 2-4, tables 1-2"], "the profile of another program"
    left = next(figure for figure in figures if figure.name == "left after the last entry")
    most = {label: max(point.seconds for panel in left.panels for line in panel.lines
                       if line.label == label for point in line.points)
            for label in ("tail_direct", arrival_across.STATIC)}
    assert most["tail_direct"] < 1.5 < most[arrival_across.STATIC]
