"""Wrong inputs: each is answered by one sentence with the word that matters, and no traceback."""

import re
import subprocess
import sys

import pytest
from launched import flat

from paceline.launch import launch

pytestmark = pytest.mark.ranks

LINES = {
    "command": ("explian", "Did you mean explain?"),
    "option": ("explain --rnaks 4", "--ranks"),
    "limit of a run": ("run -n 2 --timeout 5 true", "'--timeout-s'"),
    "option for a program": ("run -n 2 -- --timeout 5", "Did you mean --timeout-s?"),
    "no program": ("run -n 2", "PROGRAM"),
    "no script": ("run -n 2 nowhere.py", "no script 'nowhere.py'"),
    "no such program": ("run -n 2 nowhere", "'nowhere'"),
    "no number of ranks": ("run true", "--ranks"),
    "no ranks": ("run -n 0 true", "--ranks"),
    "ranks in words": ("run -n two true", "'two'"),
    "value of an option": ("run -n 1 --timeout-ms soon true", "--timeout-ms is 'soon'"),
    "name of torch": ("explain all_reduce", "Did you mean allreduce?"),
    "name of a tensor call": ("draw reduce_scatter_tensor", "Did you mean reduce_scatter?"),
    "name of MPI": ("verify bcast", "Did you mean broadcast?"),
    "hyphen": ("simulate reduce-scatter", "Did you mean reduce_scatter?"),
    "algorithm": ("explain allreduce --algorithm rign", "Did you mean ring?"),
    "machine": ("explain --machine edr", "Did you mean edr-100g?"),
    "setting of a machine": ("explain --machine alhpa_us=1", "Did you mean alpha_us?"),
    "size": ("draw allreduce --size 1mb", "1MiB or 2GB"),
    "negative size": ("draw allreduce --size -1", "'-1' is no size"),
    "range of sizes": ("simulate allreduce --sizes 8MiB..8", "a range goes from"),
    "root": ("draw allreduce --root 9", "0 to 3"),
    "folder": ("profile --read /nowhere", "no folder /nowhere"),
    "file in no folder": ("draw allreduce --svg /nowhere/a.svg", "/nowhere is no folder"),
    "nothing to profile": ("profile", "after --"),
    "record": ("doctor --record /nowhere", "/nowhere"),
}

INIT = "import numpy, paceline; x = numpy.ones(3); c = paceline.init(); "
SCRIPTS = {
    "operation": (INIT + "c.allreduce(x, op='summ')", "Did you mean sum?"),
    "no name of an operation": (INIT + "c.allreduce(x, op=3)", "op: '3' is not an operation"),
    "operation of torch": (INIT + "c.allreduce(x, op='ReduceOp.AVG')", "Did you mean average?"),
    "root": (INIT + "c.broadcast(x, root='x')", "root is 'x'; it must be a rank, from 0 to 1"),
    "collective": (INIT + "c.plan('bcast', x)", "Did you mean broadcast?"),
    "algorithm": (INIT + "c.allreduce(x, algorithm='rign')", "Did you mean ring?"),
    "limit": ("import paceline; paceline.init(timeout_ms='soon')", "timeout_ms is 'soon'"),
    "bits of floats": (INIT + "c.allreduce(x, op='bit_and')", "bit_and"),
}


def sentence(text):
    """The answer without click's lines on the usage; it must be a line."""
    lines = [line for line in text.splitlines() if not re.match("(Usage:|Try )", line)]
    assert "Traceback" not in text
    assert len(list(filter(None, lines))) == 1, text
    return flat(text)


@pytest.mark.parametrize("name", LINES)
def test_of_a_command(paceline, name):
    line, word = LINES[name]
    status, _, err = paceline(*line.split())
    assert status == 2
    assert word in sentence(err)


@pytest.mark.parametrize("name", SCRIPTS)
def test_of_a_script(capfd, name):
    program, word = SCRIPTS[name]
    assert launch([sys.executable, "-c", program], 2) == 1
    assert word in sentence(capfd.readouterr().err)


def test_a_variable_that_is_misspelt(paceline, monkeypatch):
    monkeypatch.setenv("PACELINE_TIMEOUT", "5")
    status, out, _ = paceline("options")
    assert status == 0
    assert "Did you mean PACELINE_TIMEOUT_MS?" in flat(out)


@pytest.fixture
def script(tmp_path, monkeypatch, capfd):
    """Runs a program of so many lines on 3 ranks; returns the lines of standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*lines, status=1):
        (tmp_path / "train.py").write_text("\n".join(lines), encoding="utf-8")
        assert launch(["train.py"], 3) == status
        return capfd.readouterr().err.splitlines()

    return run


JOIN = "import numpy, paceline; c = paceline.init()"


def test_a_refusal_names_the_line_of_the_program(script):
    assert script(JOIN, "c.allreduce(numpy.ones(3), op='summ')")[0].endswith("(train.py:2)")


def test_an_error_of_one_rank_is_the_last_line(script):
    said = script(JOIN, "if c.rank == 1:", "    c.broadcast(numpy.ones(3), root=7)", "c.barrier()")
    assert said[-1].startswith("paceline run: rank 1 was the first to fail: broadcast: root is 7;")
    assert said[-1].endswith("(train.py:3)")
    assert sum("Traceback" in line for line in said) <= 2  # RankLost, of the two others
    assert any("rank 1 is lost" in line for line in said)


def test_a_killed_rank_is_the_cause_though_others_tell_theirs(script):
    kill = "os.kill(os.getpid(), 9)"
    said = script("import os", JOIN, f"{kill} if c.rank == 1 else c.barrier()", status=137)
    assert any("RankLost" in line for line in said)
    assert said[-1] == "paceline run: rank 1 was the first to fail, with exit status 137."


def test_a_traceback_of_the_programs_own_is_shown_once(script):
    said = script(JOIN, "def step():", "    return {}['loss']", "step()")
    assert [line.strip() for line in said].count("step()") == 1
    assert said[0] == "Traceback (most recent call last):" and said[-2] == "KeyError: 'loss'"
    assert re.fullmatch(r"paceline run: rank \d was the first to fail, and 2 others alike: "
                        r"KeyError: 'loss' \(train.py:3 in step\)", said[-1])


def test_tracebacks_that_differ_are_all_shown(script):
    said = script(JOIN, "raise ValueError(f'of rank {c.rank}')")
    shown = [line for line in said if line.startswith("ValueError: of rank")]
    assert sorted(shown) == [f"ValueError: of rank {rank}" for rank in range(3)]
    assert re.match(r"paceline run: rank (\d) was the first to fail: ValueError: of rank \1 \(",
                    said[-1])


def test_a_hook_of_the_program_is_called(script):
    hook = "sys.excepthook = lambda kind, *_: print('mine', kind.__name__, file=sys.stderr)"
    said = script("import sys", hook, JOIN, "c.allreduce(3)")
    assert said == [said[0]] and "x is a int" in said[0]
    said = script("import sys", hook, JOIN, "1 / 0")
    assert "mine ZeroDivisionError" in said


def test_alone_a_program_has_its_traceback():
    done = subprocess.run([sys.executable, "-c", INIT + "c.allreduce(x, op='summ')"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "Traceback" in done.stderr
