"""What has changed since the base (tools/dev/base.py)."""

import subprocess

import pytest
from dev import base
from dev.process import Failed


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
