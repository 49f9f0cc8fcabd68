"""The statistics of the benchmark: verdicts on known ratios, and mistakes that must be found."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
from paceline_bench.measure import statistics

# (ratios of ten launches, verdict). The comment says which rule a case is there for.
VERDICTS = [
    ([0.90] * 10, "faster"),
    ([0.99] * 10, "faster"),
    ([1.00] * 10, "not slower"),  # the interval must lie below 1, not end there
    ([0.98] * 9 + [1.02], "faster"),  # a single launch may go the other way
    ([0.80] * 6 + [1.02] * 4, "not slower"),  # a good median is not enough: the interval decides
    ([1.02] * 10, "not slower"),
    ([1.05] * 10, "slower"),  # "reaches below 1.05" does not include it
    ([1.04] * 5 + [1.06] * 5, "not slower"),  # a median of 1.05 is still allowed
    ([1.04] * 4 + [1.08] * 6, "undecided"),  # reaches below 1.05, but the median is above
    ([0.50] * 4 + [1.20] * 6, "undecided"),
    ([1.06] * 10, "slower"),
    ([1.20] * 9 + [0.50], "slower"),  # one lucky launch does not help
    ([2.00] * 10, "slower"),
]

# (part of statistics.py, what a mistake would make of it)
MUTANTS = [
    ("high < 1", "high <= 1"),
    ("high < 1", "low < 1"),
    ("high < 1", "ratio < 1"),
    ("high < 1", "high < TOLERANCE"),
    ("low < TOLERANCE and ratio <= TOLERANCE", "low < TOLERANCE"),
    ("low < TOLERANCE and ratio <= TOLERANCE", "ratio <= TOLERANCE"),
    ("low < TOLERANCE and ratio <= TOLERANCE", "low < TOLERANCE and ratio < TOLERANCE"),
    ("low < TOLERANCE and ratio <= TOLERANCE", "low < 1 and ratio <= TOLERANCE"),
    ("low < TOLERANCE and ratio <= TOLERANCE", "high < TOLERANCE and ratio <= TOLERANCE"),
    ("elif low >= TOLERANCE", "elif ratio >= TOLERANCE"),
    ("elif low >= TOLERANCE", "elif high >= TOLERANCE"),
    ("TOLERANCE = 1.05", "TOLERANCE = 1.01"),
    ("TOLERANCE = 1.05", "TOLERANCE = 1.5"),
    ("np.median(values[draws], axis=1)", "np.mean(values[draws], axis=1)"),
    ("np.median(values[draws], axis=1)", "np.min(values[draws], axis=1)"),
    ("(1 - CONFIDENCE) / 2", "0.5"),
    ("(1 - CONFIDENCE) / 2", "0.0"),
    ("ratio = float(np.median(values))", "ratio = float(np.mean(values))"),
    ("ratio = float(np.median(values))", "ratio = float(np.min(values))"),
    ("np.median(a) / np.median(b)", "np.median(b) / np.median(a)"),
    ("np.median(a) / np.median(b)", "np.min(a) / np.min(b)"),
    ("np.max(np.asarray(durations", "np.mean(np.asarray(durations"),
    ("np.max(np.asarray(durations", "np.min(np.asarray(durations"),
    ("dtype=float), axis=0)", "dtype=float), axis=1)"),
    ("float(np.median(medians))", "float(np.median(np.concatenate(launches)))"),
    ("LEAST_LAUNCHES = 10", "LEAST_LAUNCHES = 9"),
    ("if len(ours) != len(peers)", "if False"),
    ("np.exp(np.mean(np.log(values)))", "np.mean(values)"),
]


def faults(module):
    """What is wrong with an implementation of the statistics."""
    found = []
    for ratios, word in VERDICTS:
        verdict = module.judge(ratios)
        if verdict.word != word:
            found.append(f"{ratios}: {verdict} instead of {word}")
    # A median of ten with one half on either side can be nearly anything in between.
    spread = module.judge([1.0] * 3 + [1.1] * 4 + [1.2] * 3)
    if not (spread.low <= 1.05 and 1.15 <= spread.high <= 1.2 and spread.ratio == 1.1):
        found.append(f"interval {spread}")
    if not 1.0 < module.judge(np.linspace(1.0, 2.0, 21)).low < 1.5:
        found.append("the interval reaches the fastest launch")
    if module.ratios([[1, 2, 9]], [[4, 4, 1]]) != [0.5]:
        found.append("ratios")
    if list(module.slowest([[1, 5], [2, 4]])) != [2, 5]:
        found.append("slowest")
    summary = module.summarize([[1, 1, 1, 1, 1], [3, 3, 9], [2]])
    if (summary.median, summary.least, summary.most, summary.count) != (2, 1, 9, 9):
        found.append(f"{summary}")
    if abs(module.geometric_mean([0.5, 8.0]) - 2) > 1e-9 or module.geometric_mean([]) is not None:
        found.append("geometric mean")
    for few in (lambda: module.judge([1.0] * 9), lambda: module.ratios([[1]], [[1], [1]])):
        try:
            few()
            found.append("accepts too little")
        except ValueError:
            pass
    return found


def mutated(old, new):
    """statistics.py with a mistake in it."""
    source = Path(statistics.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1, f"{old!r} is not in statistics.py once"
    module = types.ModuleType("mutant")
    sys.modules["mutant"] = module  # dataclasses look there
    exec(compile(source.replace(old, new), "mutant", "exec"), module.__dict__)
    return module


def test_statistics():
    assert faults(statistics) == []


@pytest.mark.parametrize("old, new", MUTANTS)
def test_statistics_reject_a_mutant(old, new):
    assert faults(mutated(old, new))


def test_equal_times_are_seldom_called_faster():
    """With ten launches of pure noise, a verdict "faster" or "slower" is a rare mistake."""
    draw, wrong, slower, trials = np.random.default_rng(3), 0, 0, 300
    for _ in range(trials):
        word = statistics.judge(draw.lognormal(0, 0.05, 10)).word
        wrong += word == "faster"
        slower += word == "slower"
    assert wrong <= 0.06 * trials
    assert slower <= 0.01 * trials


def test_a_difference_is_found_through_noise():
    draw = np.random.default_rng(4)
    words = [statistics.judge(0.85 * draw.lognormal(0, 0.05, 10)).word for _ in range(100)]
    assert words.count("faster") >= 95


def test_the_interval_of_a_median_is_that_of_the_tables():
    """Ranks of order statistics for 95 %, as printed in tables: 1 and 6 of 6, 2 and 9 of 10."""
    for n, low, high in ((5, None, None), (6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (20, 6, 15)):
        found = statistics.median_interval(range(n, 0, -1))
        assert found == ((low, high) if low else None), n


def test_the_interval_of_a_median_holds_it_often_enough():
    draws = np.random.default_rng(3).exponential(1, (2000, 11))
    held = [low <= np.log(2) <= high for low, high in map(statistics.median_interval, draws)]
    assert 0.95 <= np.mean(held) < 1
