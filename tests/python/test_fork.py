"""Processes that fork while they are ranks: children live and end, parents notice nothing."""

import launched
import pytest
from length import in_long

pytestmark = pytest.mark.ranks


def lines_of(what, ranks=2, **env):
    run = launched.start("forking.py", ranks, what, env=env, timeout_s=60)
    assert "Traceback" not in run.text() and "child:" not in run.text(), run.text()
    assert launched.left() == []
    return run, [run.text(rank, "stdout") for rank in range(ranks)]


@pytest.mark.parametrize("progress", ["thread", "caller"])
def test_children_end_and_parents_go_on(progress):
    _, said = lines_of("children", 3, PACELINE_PROGRESS=progress)
    assert said == ["children [0, 0, 0, 0, 0, 0] True True"] * 3


def test_forks_while_threads_are_in_calls():
    _, said = lines_of("threads")
    assert said == ["threads 0 True"] * 2


def test_workers_of_multiprocessing():
    _, said = lines_of("pool")
    assert said == ["pool True True"] * 2


@in_long
def test_data_loader_of_a_training():
    pytest.importorskip("torch")
    _, said = lines_of("loader")
    assert said == ["loader True"] * 2


def test_child_with_a_world_of_its_own():
    _, said = lines_of("another_world")
    assert said == ["world 0 True"] * 2


def test_child_with_a_world_of_its_own_and_records_by_signal(tmp_path):
    _, said = lines_of("another_world_with_records", PACELINE_RECORD_SIGNAL="12",
                       PACELINE_RECORD_DIR=str(tmp_path))
    assert said == ["records 0 True True"] * 2


def test_killed_rank_whose_child_lives():
    run, said = lines_of("killed_parent")
    assert run.status == 128 + 9 and said[1] == "lost True", run.text()
