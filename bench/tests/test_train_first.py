"""`paceline train` without arguments, and training that ends before its time."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import mpis
import pytest
from click.testing import CliRunner
from length import in_long
from paceline import cli, on_ranks
from paceline.on_ranks import Failed
from paceline_bench.cli import train as commands
from paceline_bench.train import first, picture, starting
from rich.console import Console

pytestmark = pytest.mark.ranks

ROW = {"epoch": 1, "seconds": 1.0, "time_s": 1.0, "images_per_s": 4321.0, "loss": 0.5,
       "accuracy": 0.875}
RANKS = [{"rank": rank, "edges": [0.0, 1.0, 2.0, 3.0], "weights_equal": True,
          "profile": {"computing_s": 0.0137, "exchange_s": 0.0049, "exchange_share": 0.26,
                      "iteration_s": 1.2345, "hidden_share": 0.5}} for rank in range(2)]
RUN = "import sys; from paceline.cli import main; sys.exit(main(sys.argv[1:]))"
SMALL = ["--model", "resnet20", "--side", "8", "--data", "digits", "--rate", "0.02"]


def told(turns, ways=len(first.WAYS), is_last_whole=True):
    """What rank 0 says of so many ways."""
    for number in range(ways):
        for said in ({"turn": number}, {"steps": 2, "data": "real data: digits"},
                     {"step": 1, "time_s": 0.1, "loss": 2.0}, {"row": ROW}):
            turns.hear(said)
        if is_last_whole or number + 1 < ways:
            turns.hear({"found": RANKS})


@pytest.fixture
def feigned(monkeypatch, tmp_path):
    """Runs the command line with ranks that say what `say(turns)` does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(say):
        monkeypatch.setattr(starting, "run", lambda spec, ranks, out, turns, *_: say(turns))
        return cli.main(["train"])

    return run


def test_the_first_run_ends_with_a_table_and_a_picture(feigned, tmp_path, capsys):
    assert feigned(told) == 0
    said = capsys.readouterr().out
    assert said.startswith("Trains a small ResNet"), "it says first what it will do"
    assert max(map(len, said.replace(str(tmp_path), "").splitlines())) <= 80
    rows = [line.split() for line in said.splitlines() if "1234.5 ms" in line]
    assert [row[:3] for row in rows] == [[way, "over", over] for way, over in first.WAYS]
    assert rows[0][3:5] == ["4321", "0.875"]
    svg = (tmp_path / first.PICTURE).read_text()
    assert all(f"{way} over {over}" in svg for way, over in first.WAYS)
    assert str(tmp_path / first.PICTURE) in said


def test_a_first_run_that_is_cut_short_shows_what_it_has(feigned, capsys):
    def say(turns):
        told(turns, 2, is_last_whole=False)
        raise Failed("train: the ranks were not done in time.")

    assert feigned(say) == 1
    said = capsys.readouterr().out
    assert "not done in time" in said and "1234.5 ms" in said
    assert "ddp over paceline had time for 1 of 6 epochs" in " ".join(said.split())
    assert any(line.split() == ["ddp", "over", "paceline", "4321", "0.875"]
               for line in said.splitlines())


def test_an_interrupted_first_run_shows_what_it_has(feigned, capsys):
    def say(turns):
        told(turns, 1)
        raise KeyboardInterrupt

    assert feigned(say) == 130
    said = capsys.readouterr()
    assert "interrupted" in said.err and "1234.5 ms" in said.out


@pytest.mark.parametrize("module, words", [
    ("torch", "pip install 'paceline[torch]'"), ("sklearn", "pip install 'paceline-bench[train]'")])
def test_what_is_not_installed_is_named(module, words, feigned, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    assert feigned(None) == 2
    said = capsys.readouterr().err
    assert said.startswith("paceline: train: ") and words in said and said.count("\n") == 1


@in_long
def test_three_ways_in_turn_learn_in_time():
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    turns = first.Turns(Console(file=io.StringIO()))
    spec = {**first.SPEC, "in_turn": first.WAYS, "epochs": 2, "seconds": 600}
    starting.run(spec, first.RANKS, turns.out, turns)
    assert [one.label for one in turns.tries] == [f"{way} over {over}" for way, over in first.WAYS]
    for one in turns.tries:
        assert len(one.epochs) == 2 and len(one.ranks) == first.RANKS
        assert one.epochs[1]["accuracy"] > 0.5, "ten classes: by chance it is 0.1"
    losses = [one.epochs[1]["loss"] for one in turns.tries]
    assert losses == pytest.approx([losses[0]] * 3, rel=0.05), "all ways learn alike"


@in_long
def test_ways_that_are_late_end_after_an_epoch():
    pytest.importorskip("torch")
    turns = first.Turns(Console(file=io.StringIO()))
    spec = {**first.SPEC, "in_turn": first.WAYS[:1], "epochs": 50, "seconds": 0}
    starting.run(spec, first.RANKS, turns.out, turns)
    assert len(turns.tries[0].epochs) == 1 and len(turns.tries[0].ranks) == 2


def test_pictures_are_below_each_other():
    one, two = picture.svg(RANKS, "a"), picture.stacked([("a", RANKS), ("b", RANKS)])
    assert two.count("<g ") == 2 * one.count("<g ") == 2 and 'translate(0 0)' in one


# --- the end before its time ----------------------------------------------------------------------


TWO = ("train", "-n", "2")
JOINED = ("run", "-n", "2", sys.executable, "-c", RUN, "train")  # ranks that somebody has started


def begun(tmp_path, *words, start=TWO):
    """A training of many epochs, when its first one is over."""
    command = [sys.executable, "-c", RUN, *start, *SMALL, "--epochs", "1000", "--validation", "1",
               "--json", str(tmp_path / "kept.json"), *words]
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               start_new_session=True)
    for line in process.stdout:
        if line.startswith("epoch 2"):
            return process
    pytest.fail(process.communicate(timeout=60)[1])


def kept(tmp_path):
    content = json.loads((tmp_path / "kept.json").read_text())
    assert len(content["ranks"][0]["epochs"]) >= 2 and content["ranks"][0]["losses"]
    assert content["plan"]["model"] == "resnet20"
    return content["ended_early"]


def ranks_of(process):
    """The processes that train, whoever is between."""
    listed = subprocess.run(["ps", "-wwe", "-o", "pid=,ppid=,args="], text=True,
                            capture_output=True, check=True).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    below = {str(process.pid)}
    while more := {pid for pid, parent, *_ in rows if parent in below} - below:
        below |= more
    return [int(pid) for pid, _, *words in rows if pid in below and words
            and words[0].startswith(sys.executable)
            and ("paceline_bench.train.worker" in words[0] or "resnet20" in words[0])
            and int(pid) != process.pid]


def interrupt_all(process):
    """As a terminal does: everything in it hears Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)


def interrupt_in_turn(process):
    """As a launcher does: one rank has left before the other hears of it."""
    for pid in sorted(ranks_of(process), reverse=True):
        os.kill(pid, signal.SIGINT)
        time.sleep(0.15)


HOW = {"SIGINT": (TWO, lambda process: process.send_signal(signal.SIGINT)),
       "SIGTERM": (TWO, subprocess.Popen.terminate), "in a terminal": (TWO, interrupt_all),
       "started by another": (JOINED, interrupt_all), "in turn": (JOINED, interrupt_in_turn)}


@in_long
@pytest.mark.parametrize("how", HOW)
def test_interrupted_training_keeps_what_it_has(how, tmp_path):
    pytest.importorskip("torch")
    start, interrupt = HOW[how]
    process = begun(tmp_path, start=start)
    ranks = ranks_of(process)
    interrupt(process)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted after" in said and "Traceback" not in said
    assert len(said.strip().splitlines()) == 1, "one rank speaks for all"
    assert "of 1000 epochs" in kept(tmp_path)
    assert len(ranks) == 2 and not any(os.path.exists(f"/proc/{pid}") for pid in ranks)


@in_long
def test_a_rank_that_is_killed_ends_it_in_a_sentence(tmp_path):
    pytest.importorskip("torch")
    process = begun(tmp_path)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1 and said.count("\n") == 1 and "Traceback" not in said
    assert "was ended by SIGKILL" in said and "memory" in said and "of 1000 epochs" in said
    assert "SIGKILL" in kept(tmp_path)


@in_long
@pytest.mark.parametrize("mpi", mpis.found()[:2], ids=str)
@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_training_over_an_mpi_ends_as_any_other(how, mpi, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    for name, value in mpi.environment().items():
        monkeypatch.setenv(name, value)
    process = begun(tmp_path, "--over", "mpi", "--way", "ddp")
    ranks = ranks_of(process)
    if how == "killed":
        os.kill(ranks[1], signal.SIGKILL)
    else:
        interrupt_all(process)
    _, said = process.communicate(timeout=60)
    assert process.returncode == (1 if how == "killed" else 130) and "Traceback" not in said
    assert "of 1000 epochs" in kept(tmp_path)
    assert len(ranks) == 2
    while any(os.path.exists(f"/proc/{pid}") for pid in ranks):  # an mpiexec may end before them
        time.sleep(0.05)


@in_long
def test_a_killed_rank_that_somebody_has_started_ends_it_in_a_sentence(tmp_path):
    pytest.importorskip("torch")
    process = begun(tmp_path, start=JOINED)
    os.kill(ranks_of(process)[1], signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    lost, first_to_fail = said.splitlines()
    assert "rank 1 is lost" in lost
    assert first_to_fail == "paceline run: rank 1 was the first to fail, with exit status 137."
    assert "rank 1 is lost" in kept(tmp_path)


def test_who_interrupts_before_ranks_start_is_answered_too(monkeypatch, capsys):
    pytest.importorskip("torch")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "check", interrupted)
    assert cli.main(["train", *SMALL]) == 130
    assert "interrupted after 0 of 1 epochs and 0 steps." in capsys.readouterr().err


def test_an_interrupted_replay_shows_the_launches_that_it_has(monkeypatch, capsys, tmp_path):
    from paceline_bench.train import replay

    launches = []

    def launch(job, *_):
        if launches:
            raise KeyboardInterrupt
        launches.append(1)
        return ["of rank 0"]

    found = {"resnet110": {"funnel:numbered": 0.4321}}
    monkeypatch.setattr(replay.Job, "launch", launch)
    monkeypatch.setattr(replay, "judged", lambda *_: (found, []))
    words = ["train", "replay", "--models", "resnet110", "--compute-s", "0.1", "--ways",
             "funnel:numbered", "--launches", "3", "--json", str(tmp_path / "kept.json")]
    assert cli.main(words) == 130
    said = capsys.readouterr()
    assert "0.432" in said.out and "interrupted after 1 of 3 launches" in said.err
    assert len(json.loads((tmp_path / "kept.json").read_text())["launches"]) == 1


def test_what_became_of_the_ranks_is_said_in_a_sentence():
    lost = ["allreduce #3: rank 1 is lost: its process has died."]
    assert starting.why(137, lost, []).startswith("train: rank 1 was ended by SIGKILL.")
    assert starting.why(139, [], []) == "train: a rank was ended by SIGSEGV."
    assert on_ranks.ended(137) == "one was ended by SIGKILL"
    assert on_ranks.ended(3) == "exit status 3" and on_ranks.ended(250) == "exit status 250"
    assert starting.why(1, ["train: so it is."], ["[0] trace"]) == "train: so it is."
    assert "[0] trace" in starting.why(1, [], ["[0] trace"])


def test_arguments_are_no_first_run(monkeypatch):
    pytest.importorskip("torch")
    seen = []
    monkeypatch.setattr(commands, "train_first", lambda *_: seen.append("first"))
    monkeypatch.setattr(commands, "trained", lambda spec, *_: seen.append(spec["model"]))
    CliRunner().invoke(commands.command, [])
    CliRunner().invoke(commands.command, ["--model", "resnet20", "--side", "8"])
    assert seen == ["first", "resnet20"]
