"""docs/algorithms is what `./dev docs` writes now; `paceline draw` draws every algorithm."""

import importlib.util
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from paceline import _core
from paceline.cli import main

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("docs", ROOT / "tools/dev/docs.py")
docs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(docs)

EVERY = [(row["collective"], row["name"]) for row in _core.algorithms()]
STAGED = [(row["collective"], row["name"]) for row in _core.algorithms()
          if row["access"] == "staging"]


@pytest.fixture(scope="module")
def pages():
    return docs.pages()


def test_the_committed_pages_are_up_to_date(pages):
    assert docs.differences(pages, docs.TARGET) == [], "out of date; run: ./dev docs"


def test_every_decision_is_listed(tmp_path):
    listed = (docs.DESIGN / "README.md").read_text(encoding="utf-8")
    assert listed == docs.design_list(docs.DESIGN), "out of date; run: ./dev docs"
    assert "| [0001](0001-schedules-over-blocks.md) | Schedules over blocks |" in listed
    (tmp_path / "0002-new.md").write_text("# 0002 A title: two parts\n\ntext\n")
    assert docs.design_list(tmp_path).endswith("| [0002](0002-new.md) | A title: two parts |\n")


def test_links_lead_somewhere(pages):
    """Those of all pages to files of ours; to elsewhere they only have the right form."""
    texts = {path: path.read_text(encoding="utf-8")
             for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))}
    texts |= {docs.TARGET / name: text for name, text in pages.items() if name.endswith(".md")}
    assert len(texts) > 40
    assert [(path.name, link) for path, text in texts.items() for link in lost(path, text)] == []


def lost(path, text):
    """The links of a page that lead nowhere."""
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            if link[-1] in ".,;:":
                yield link
        elif not path.parent.joinpath(link.partition("#")[0]).exists():
            yield link


def test_lost_links_are_seen():
    text = "[a](README.md) [b](gone.md#x) [c](https://doi.org/10.1/2:) [d](https://doi.org/10.1/2)"
    assert list(lost(ROOT / "README.md", text)) == ["gone.md#x", "https://doi.org/10.1/2:"]


def test_a_stale_a_missing_and_a_foreign_page_are_found_and_mended(pages, tmp_path):
    docs.write(pages, tmp_path)
    assert docs.differences(pages, tmp_path) == []
    picture = "pictures/allreduce-ring.svg"
    (tmp_path / "allreduce.md").write_text(pages["allreduce.md"].replace("gamma", "delta", 1))
    (tmp_path / picture).unlink()
    (tmp_path / "old.md").touch()
    assert docs.differences(pages, tmp_path) == ["allreduce.md", "old.md", picture]
    assert docs.write(pages, tmp_path) == ["allreduce.md", "old.md", picture]
    assert docs.differences(pages, tmp_path) == []


def test_every_algorithm_has_its_row_its_fields_and_its_picture(pages):
    for collective, name in EVERY:
        assert f"[{name}]({collective}.md#{name})" in pages["README.md"]
        assert f"pictures/{collective}-{name}.svg" in pages
    for algorithms in docs.entries().values():
        for entry in algorithms:
            words = "Source Needs Cost Scratch When Order".split()
            assert list(entry.fields) == words, entry.name
            for cell in (entry.idea, entry.needs, entry.cost, entry.source, entry.steps):
                assert cell and "|" not in cell, (entry.collective, entry.name)


@pytest.mark.parametrize("collective, name", EVERY)
def test_draw_draws_it(collective, name, tmp_path):
    svg, events = tmp_path / "picture.svg", tmp_path / "events.json"
    pieces = [] if (collective, name) in STAGED else ["--segments", "2"]
    assert main(["draw", collective, "--algorithm", name, "--ranks", "5", *pieces,
                 "--svg", str(svg), "--json", str(events)]) == 0  # fmt: skip
    drawn = [e for e in ElementTree.parse(svg).iter() if e.get("class") == "event"]
    told = json.loads(events.read_text())["events"]
    assert len(drawn) == len(told) > 0
    assert f"{collective}/{name}" in svg.read_text()


def test_every_room_has_guards_that_there_are():
    tests = ROOT / "tests"
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", (tests / "README.md").read_text(), re.M))
    assert set(rows) == {room.name for room in (ROOT / "src").iterdir()}
    for room, guards in rows.items():
        files = re.findall(r"`([^`]+)`", guards)
        assert files and [file for file in files if not (tests / file).is_file()] == [], room
