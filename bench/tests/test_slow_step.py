"""A simulated training step with a slow rank: what naming it late saves, and where it cannot."""

import importlib.util
import re
from pathlib import Path

from click.testing import CliRunner

PROGRAM = Path(__file__).parents[1] / "lab/slow_step.py"
ROW = r"(\d+) ranks: ([\d.]+) s, named ([\d.]+) s; after the last gradient ([\d.]+), ([\d.]+)"


def rows(*words):
    spec = importlib.util.spec_from_file_location("slow_step", PROGRAM)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    result = CliRunner().invoke(program.main, ["--model", "resnet110", *words])
    assert result.exit_code == 0, result.output
    return [tuple(map(float, row)) for row in re.findall(ROW, result.output)]


def test_a_slow_rank_that_is_named_leaves_less_after_its_last_gradient():
    for ranks, usual, named, usual_left, named_left in rows("--slow", "1.5", "--ranks", "8,16"):
        assert ranks in (8, 16)
        assert named < 0.92 * usual
        assert named_left < 0.75 * usual_left


def test_ranks_that_are_equally_fast_are_not_named():
    [(_, usual, named, *_)] = rows("--slow", "1", "--ranks", "8")
    assert named == usual
