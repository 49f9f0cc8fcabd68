"""Ranks that are forked are what started ones would be (forkserver.py)."""

import contextlib
import json
import os
import signal
import sys
import textwrap

import launched
import pytest

from paceline.launch import launch

pytestmark = pytest.mark.ranks

TELLS = """
import atexit, json, os, sys
atexit.register(print, "at exit")
print(json.dumps([sys.argv, __name__, sys.path[0], os.getcwd(), dict(os.environ)]))
print("an error", file=sys.stderr)
os.write(1, b"unbuffered\\n")
"""


@pytest.fixture
def run(tmp_path):
    """(status, lines) of one rank that runs this source, started as users do or forked."""

    def run(source, forked, *words):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(source))
        env = {} if forked else {"PYTHONHASHSEED": "1"}  # is read at import
        found = launched.start(script, 1, *words, env=env)
        return found.status, found.lines

    return run


def test_a_script_finds_the_same(run):
    """But for what is new for each launch."""
    found = []
    for forked in (False, True):
        status, lines = run(TELLS, forked, "a", "b c")
        told, *more = lines.pop((0, "stdout"))
        *facts, environment = json.loads(told)
        for name in ("PACELINE_STORE", "PACELINE_SECRET", "MASTER_PORT", "PYTHONHASHSEED"):
            environment.pop(name, None)
        found.append((status, more, lines, facts, environment))
    assert found[0] == found[1] and found[0][1] == ["unbuffered", "at exit"]


def test_a_module_finds_the_same(tmp_path, monkeypatch):
    (tmp_path / "told.py").write_text(
        "import os, sys; print(sys.argv, __name__, sys.path[:2], os.getcwd())")
    launched.server(False)  # has another environment
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "further"))
    said = []
    for how in (contextlib.nullcontext(), launched.forking()):
        run = launched.Run()
        with how:
            assert launch([sys.executable, "-m", "told", "a"], 1, on_line=run.add) == 0, run.text()
        said.append(run.text())
    assert said[0] == said[1] and "further" in said[0]


@pytest.mark.parametrize("source, status", [
    ("raise SystemExit(3)", 3), ("import os; os._exit(4)", 4), ("1 / 0", 1),
    ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL), ("pass", 0),
    ("import signal; signal.raise_signal(signal.SIGTERM)", 128 + signal.SIGTERM),
])  # fmt: skip
def test_a_script_ends_with_the_same_status(run, source, status):
    for forked in (False, True):
        assert run(source, forked)[0] == status


def test_one_is_forked_and_the_other_is_not(run):
    parents = [run("import os; print(os.getppid())", forked)[1][0, "stdout"]
               for forked in (False, True)]  # fmt: skip
    assert parents[0] == [str(os.getpid())] != parents[1]


def test_torch_is_there_for_scripts_that_import_it(run):
    pytest.importorskip("torch")
    asks = "import sys; print('torch' in sys.modules)"
    assert run(asks, True)[1][0, "stdout"] == ["False"]
    assert run(f"{asks}\nimport torch", True)[1][0, "stdout"] == ["True"]


def test_words_are_not_taken_for_modules():
    assert launched.imports_torch(launched.RANKS / "torch_checks.py")
    assert not launched.imports_torch(launched.RANKS / "collective_checks.py")
