"""The machine file between real processes: who sets nothing measures once, and says so once."""

import re

import launched
import machine_files
import mpis
import pytest

pytestmark = pytest.mark.ranks

STARTS = [m for m in mpis.found() if m.family == "mpich"]
MEASURED = "paceline: start-up: measured the links between 2 nodes in "


def start(folder, nodes="0,1", **more):
    """(what all ranks say, the lines of the start on stderr)."""
    env = STARTS[-1].environment() | {"PACELINE_MACHINE": "", "XDG_CACHE_HOME": str(folder), **more}
    run = launched.start("on_nodes.py", nodes.count(",") + 1, nodes,
                         launched.RANKS / "machine_said.py", env=env)
    assert run.status == 0, run.text()
    said = set(re.findall(r"^said: (.*)$", run.text(), re.MULTILINE))
    assert len(said) == 1, said
    return said.pop(), [line for line in run.text().splitlines() if "start-up:" in line]


def test_a_second_start_chooses_as_the_first_and_measures_nothing(tmp_path):
    path = tmp_path / "paceline/machine"
    first, lines = start(tmp_path)
    assert len(lines) == 1 and lines[0].startswith(MEASURED), lines
    assert lines[0].endswith(f"kept for later starts in {path}."), lines
    assert f"between 2 nodes, kept in {path})" in first and "probed: alpha" in first, first
    machine_files.set_samples(path, "0")
    kept = path.read_text()
    for _ in range(2):
        assert start(tmp_path) == (first, [])
    assert path.read_text() == kept
    assert [file.name for file in path.parent.iterdir()] == ["machine"]


def test_what_does_not_fit_is_measured_again(tmp_path):
    path = tmp_path / "paceline/machine"
    start(tmp_path)
    _, lines = start(tmp_path, nodes="0,1,1")
    assert len(lines) == 1 and f"since {path} has no figures for these" in lines[0], lines
    _, lines = start(tmp_path, FI_PROVIDER="tcp;ofi_rxm")
    assert len(lines) == 1 and f"since {path} has no figures for these" in lines[0], lines
    machine_files.set_samples(path, "0.5")
    _, lines = start(tmp_path)
    assert len(lines) == 1 and "since a sample disagrees with the figures of 20" in lines[0], lines
    path.write_text(path.read_text()[:-9])
    _, lines = start(tmp_path)
    assert len(lines) == 1 and f"since {path} is damaged" in lines[0], lines
    assert lines[0].endswith(f"kept for later starts in {path}."), lines


@pytest.mark.parametrize("trouble", ["newer", "link", "folder"])
def test_where_nothing_can_be_kept_the_job_runs_and_says_so(tmp_path, trouble):
    path = tmp_path / "paceline/machine"
    if trouble == "folder":
        path.parent.write_text("")
    else:
        path.parent.mkdir()
    if trouble == "newer":
        path.write_text("paceline-machine 2\n")
    if trouble == "link":
        path.symlink_to("/etc/passwd")
    said, lines = start(tmp_path)
    why = {"newer": f"{path} is of version 2", "link": f"{path} is a symbolic link",
           "folder": f"{path.parent} cannot be opened: Not a directory"}[trouble]
    assert len(lines) == 1 and f"not kept: {why}" in lines[0], lines
    assert "PACELINE_MACHINE_DIR" in lines[0] and "probed: alpha" in said


def test_who_asks_for_usual_neither_measures_nor_writes(tmp_path):
    said, lines = start(tmp_path, PACELINE_MACHINE="usual")
    assert "(usual)" in said and lines == [] and list(tmp_path.iterdir()) == []
