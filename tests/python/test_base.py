"""What has changed since the base (tools/dev/base.py)."""

import re
import subprocess

import pytest
from dev import base
from dev.process import ROOT, Failed


@pytest.fixture
def clone(monkeypatch, tmp_path):
    """A repository of two commits, which base.py looks at; runs git in it."""
    def git(*words):
        who = ("-c", "user.name=x", "-c", "user.email=x@x")
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, text=True,
                              capture_output=True)  # fmt: skip
        return done.stdout.strip()

    monkeypatch.setattr(base, "ROOT", tmp_path)
    monkeypatch.setattr(base, "FILE", tmp_path / "base")
    git("init", "--quiet")
    for number in range(2):
        (tmp_path / "one.cpp").write_text(f"{number}")
        git("add", ".")
        git("commit", "--quiet", "-m", f"{number}")
    return git


def test_what_has_changed_since_the_base(clone, tmp_path):
    assert base.read() == "" and base.changed_since("") is None
    assert base.move("HEAD~1") == base.read() == clone("rev-parse", "HEAD~1")
    clone("add", "base")
    assert base.changed_since(base.read()) == ["base", "one.cpp"]
    base.move("HEAD")
    (tmp_path / "two.cpp").write_text("")  # which git does not know yet
    assert base.changed_since(base.read()) == ["base", "two.cpp"]
    clone("mv", "one.cpp", "three.cpp")
    assert base.changed_since(base.read()) == ["base", "one.cpp", "three.cpp", "two.cpp"]


def test_a_base_that_is_not_in_the_history(clone, monkeypatch, tmp_path):
    clone("checkout", "--quiet", "-b", "other", "HEAD~1")
    for name in ("master", "main", "nonsense"):
        with pytest.raises(Failed, match=f"{name} is no commit of this branch"):
            base.move(name)
    assert base.changed_since("1" * 40) is None
    monkeypatch.setattr(base, "ROOT", tmp_path.parent)  # where there is no git
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent.parent))
    assert base.changed_since("HEAD") is None


def made_of(path, found):
    """The files of ours that a file includes, and the sources that belong to them."""
    if path in found or not path.is_file():
        return
    found.add(path)
    for name in re.findall(r'#include "([^"]+)"', path.read_text(encoding="utf-8")):
        for folder in (ROOT / "src", ROOT / "tests", path.parent):
            made_of(folder / name, found)
            made_of((folder / name).with_suffix(".cpp"), found)


def test_proofs_are_due_where_any_of_their_code_has_changed():
    build = (ROOT / "tests/CMakeLists.txt").read_text(encoding="utf-8")
    [proofs] = re.findall(r"set\(proofs ([\w ]+)\)", build)
    found = set()
    for name in proofs.split():
        made_of(ROOT / f"tests/world/{name}_test.cpp", found)
    assert len(found) > 50
    missed = {str(path.relative_to(ROOT)) for path in found
              if "proofs" not in base.due([str(path.relative_to(ROOT))])}  # fmt: skip
    assert missed == set()
