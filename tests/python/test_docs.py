"""The pages: what `./dev docs` writes, where links lead, what the site shows, which rooms there
are; and `paceline draw` draws every algorithm."""

import importlib.util
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from paceline import _core
from paceline.cli import main

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).parents[2]
TEXTS = {path: path.read_text(encoding="utf-8")   # the pages that git tracks
         for pattern in ("*.md", "docs/*.md", "docs/guide/*.md", "docs/design/*.md", "bench/*.md",
                         "tests/*.md")
         for path in ROOT.glob(pattern)}


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docs, conf = loaded(ROOT / "tools/dev/docs.py"), loaded(ROOT / "docs/conf.py")

EVERY = [(row["collective"], row["name"]) for row in _core.algorithms()]
STAGED = [(row["collective"], row["name"]) for row in _core.algorithms()
          if row["access"] == "staging"]


@pytest.fixture(scope="module")
def pages():
    return docs.pages()


def test_every_decision_is_listed(tmp_path):
    listed = (docs.DESIGN / "README.md").read_text(encoding="utf-8")
    assert listed == docs.design_list(docs.DESIGN), "out of date; run: ./dev docs"
    assert "| [0001](0001-schedules-over-blocks.md) | Schedules over blocks |" in listed
    (tmp_path / "0002-new.md").write_text("# 0002 A title: two parts\n\ntext\n")
    assert docs.design_list(tmp_path).endswith("| [0002](0002-new.md) | A title: two parts |\n")


def test_links_lead_somewhere(pages):
    """Those of all pages to files of ours; to elsewhere they only have the right form."""
    assert len(TEXTS) > 60
    assert [(path.name, link) for path, text in TEXTS.items() for link in lost(path, text)] == []
    made = {docs.TARGET / name: text for name, text in pages.items()}
    assert [(path.name, link) for path, text in made.items() if path.suffix == ".md"
            for link in lost(path, text, made)] == []


def lost(path, text, made=None):
    """The links of a page that lead nowhere: into folders, too, and into docs/algorithms, which
    git does not track, from all pages but those in `made`."""
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            if link[-1] in ".,;:":
                yield link
            continue
        name, _, anchor = link.partition("#")
        target = Path(os.path.normpath(path.parent / name)) if name else path
        if docs.TARGET in target.parents:
            found = (made or {}).get(target)
        else:
            found = target.read_text(encoding="utf-8") if target.is_file() else None
        if found is None or anchor and anchor not in anchors(found):
            yield link


def anchors(text):
    """Those that a code-hosting page and the site make of the headings."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", prose, re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_lost_links_are_seen():
    page, made = ROOT / "README.md", docs.TARGET / "README.md"
    links = ["README.md", "gone.md#x", "README.md#works-with", "HACKING.md#gone", "docs/design/",
             "docs/algorithms/README.md", "https://doi.org/10.1/2:", "https://doi.org/10.1/2"]
    text = " ".join(f"[a]({link})" for link in links)
    assert list(lost(page, text)) == [links[number] for number in (1, 3, 4, 5, 6)]
    assert list(lost(page, text, {made: ""})) == [links[number] for number in (1, 3, 4, 6)]


def test_the_site_has_all_pages():
    """But those that the navigation finds by a pattern, in docs/design and docs/algorithms."""
    listed = sum(conf.NAVIGATION.values(), ["README", "docs/guide/start"])
    named = {str(path.relative_to(ROOT).with_suffix("")) for path in TEXTS}
    numbered = {name for name in named if re.match(r"docs/design/\d", name)}
    assert set(listed) - named == {"docs/algorithms/README"}
    assert named - set(listed) == numbered and len(numbered) > 30


def test_docstrings_become_text():
    def made(*lines):
        found = list(lines)
        conf.as_text(None, "", "", None, None, found)
        return [line for line in found if line]

    assert made("Takes *x* by `name_`, a_:", "  one  1") == [
        "Takes \\*x\\* by `name_`, a\\_:", "::", "    one  1"]
    assert made("one   1", "      2") == ["::", "  one   1", "        2"]
    assert made("Some:", "- a", "  b") == ["Some:", "- a", "  b"]


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


def test_the_architecture_names_rooms_and_files_that_there_are():
    page = TEXTS[ROOT / "docs/ARCHITECTURE.md"]
    house = page[page.index("| layer |"):page.index("## Layer by layer")]
    rooms = {room.name for room in (ROOT / "src").iterdir()} - {"transport"}
    assert [room for room in sorted(rooms) if f"`{room}`" not in house] == []
    files = re.findall(r"`((?:src|python|bench|tests|tools)/[\w./]*)`", page)
    assert len(files) > 30 and [file for file in files if not (ROOT / file).exists()] == []
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("src/**/*.hpp"))
    names = set(re.findall(r"`((?:[A-Z][a-z]+){2,})(?:::\w+)?`", page))
    assert len(names) > 12 and [name for name in sorted(names) if name not in code] == []
