"""`paceline hello`: what it measures on real ranks, and what its screens say of it."""

import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from launched import flat, forking, limits
from rich.console import Console

from paceline.cli import hello
from paceline.hello import ALONE, GLOO, OVERLAP
from paceline.units import human_time

pytestmark = pytest.mark.ranks
ROUNDS = 9


def test_it_trains_and_times_and_draws(paceline, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    for name, value in {**limits(), "COLUMNS": "80", "WITH_TORCH": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(hello, "STEPS", 1)
    monkeypatch.setattr(hello, "SIZE_ROUNDS", 1)
    monkeypatch.chdir(tmp_path)
    with forking():
        status, said, errors = paceline("hello", "-n", "2")
    assert status == 0 and max(map(len, said.splitlines())) <= 80, said + errors
    assert re.search(r"overlap\(\) is \d+\.\d\d times as fast as DDP over gloo", flat(said))
    assert "Same losses: yes" in flat(said) and "paceline.torch.overlap(model)" in said
    row = re.compile(r"^ +(\d+ \w?i?B) +[\d.]+ \w?s +[\d.]+ \w?s +█* [\d.]+", re.MULTILINE)
    sizes = row.findall(said)
    assert (sizes[0], sizes[-1], len(sizes)) == ("8 B", "64 MiB", 13)
    svg = (tmp_path / "paceline-hello.svg").read_text()
    for kind in ("forward", "backward", "waits for gradients", "update", "gradients on their way"):
        assert svg.count(f"<title>{kind}: ") >= 4, f"{kind}: on 2 ranks, in 2 ways"


def test_it_times_allreduce_where_torch_is_missing(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['torch'] = None\n")
    done = subprocess.run(
        [sys.executable, "-m", "paceline", "hello", "-n", "2"], cwd=tmp_path, timeout=280,
        capture_output=True, text=True,
        env={**limits(), "COLUMNS": "80", "PYTHONPATH": str(tmp_path)})
    said = done.stdout
    assert done.returncode == 0 and max(map(len, said.splitlines())) <= 80, said + done.stderr
    assert "pip install torch" in said and "64 MiB" in said
    assert "gloo" not in said and not (tmp_path / "paceline-hello.svg").exists()


def step(computing, exchange, count=12):
    """Edges of equal steps, in seconds."""
    edges = (0, computing / 2, computing, computing + exchange, computing + exchange)
    return [[at + edge for edge in edges] for at in range(count)]


def shown(busy=False, loss=1.0, slow_round=None):
    """Shows 9 rounds of 2 ranks; returns the first screen, and if the losses are the same."""
    found = [{"steps": 1, "bytes": 4_000_000, "losses": {OVERLAP: [1.0], GLOO: [loss]}, "edges": {
        ALONE: step(0.010, 0, ROUNDS), OVERLAP: step(0.010, 0.005 * rank, ROUNDS),
        GLOO: step(0.010, 0.020, ROUNDS)}} for rank in range(2)]  # fmt: skip
    for late in range(0, slow_round or 0):
        found[0]["edges"][OVERLAP][late][-1] += 0.015  # such a step takes 25 ms
    out = Console(width=100, record=True, file=open("/dev/null", "w"))
    same = hello.show_step(out, 2, found, busy)
    return flat(out.export_text()), same


def test_a_step_is_as_long_as_on_the_slowest_rank():
    said, same = shown()
    assert same and "4.0 MB of gradients, 2 ranks of this machine" in said
    for name, ms in ((ALONE, "10.0"), (OVERLAP, "15.0"), (GLOO, "30.0")):
        assert re.search(rf"{re.escape(name)} [█▒]+ {ms} ms", said), said
    assert "overlap() is 2.00 times as fast as DDP over gloo (7 of 9 rounds: 2.00 to 2.00)" in said


def test_a_busy_machine_is_shown_by_its_least_round():
    said, _ = shown(busy=False, slow_round=8)
    assert "overlap() is 1.20 times" in said and "(7 of 9 rounds: 1.20 to 1.20)" in said
    said, _ = shown(busy=True, slow_round=8)
    assert "overlap() is 2.00 times" in said and "(7 of 9 rounds: 1.20 to 1.20)" in said


@pytest.mark.parametrize("seconds, said", [
    (2.5e-7, "0.25 us"), (999.4e-6, "999 us"), (999.7e-6, "1 ms"), (0.9996, "1 s"), (61, "61 s")])
def test_a_time_has_the_unit_that_it_is_rounded_to(seconds, said):
    assert human_time(seconds) == said


def test_other_losses_are_no_success():
    said, same = shown(loss=1.001)
    assert "Same losses: no" in said and not same


def test_a_picture_has_the_exchanges_of_its_steps_alone(tmp_path):
    edges = [100.0, 100.1, 100.2, 100.3, 100.4]
    found = [{"drawn": {OVERLAP: edges, GLOO: edges}, "spans": [(90.0, 90.1), (100.15, 100.25)]}]
    names = ("enter", "leave", "done", "bytes")
    records = np.array([(99.0, 99.1, 0, 8), (100.2, 0, 100.3, 8), (100.35, 100.36, 0, 0)])
    records = np.rec.fromarrays((records.T * [[1e9], [1e9], [1e9], [1]]).astype(int), names=names)
    hello.draw(found, [SimpleNamespace(rank=0, records=records)], tmp_path / "step.svg")
    svg = (tmp_path / "step.svg").read_text()
    assert svg.count("<title>gradients on their way: 100.00 ms") == 2
    assert svg.count("gradients on their way:") == 2
