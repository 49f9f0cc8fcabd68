"""Statistics of the measured times: medians, intervals, verdicts.

These machines are noisy, so a verdict rests on paired data: several launches, in each of which both
sides run in turn, and one ratio of medians per launch. No time is compared across launches.
"""

import math
from dataclasses import dataclass

import numpy as np

LEAST_LAUNCHES = 10
TOLERANCE = 1.05  # a ratio up to here is no loss that shows in the noise
CONFIDENCE = 0.95
RESAMPLES = 10_000


@dataclass(frozen=True)
class Summary:
    """The times of one variant at one size, over all repetitions of all launches."""

    median: float
    least: float
    most: float
    count: int


def summarize(launches):
    """The median of the launches' medians, and the fastest and slowest repetition of all."""
    medians = [float(np.median(times)) for times in launches]
    return Summary(
        median=float(np.median(medians)),
        least=float(min(min(times) for times in launches)),
        most=float(max(max(times) for times in launches)),
        count=sum(len(times) for times in launches),
    )


def slowest(durations):
    """One time per repetition from `durations[rank][repetition]`: a collective ends with its last
    rank."""
    return np.max(np.asarray(durations, dtype=float), axis=0)


def ratios(ours, peers):
    """One ratio of medians per launch, from the times of both sides in the same launches."""
    if len(ours) != len(peers):
        raise ValueError(f"{len(ours)} launches against {len(peers)}; ratios need pairs")
    return [float(np.median(a) / np.median(b)) for a, b in zip(ours, peers)]


def geometric_mean(values):
    """The geometric mean of ratios; None of none."""
    return float(np.exp(np.mean(np.log(values)))) if len(values) else None


def interval(values, seed=1):
    """The bootstrap interval of the median: what the median might have been with other launches."""
    values = np.asarray(values, dtype=float)
    draws = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    medians = np.median(values[draws], axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return float(low), float(high)


def median_interval(values):
    """(low, high) between which the median lies, by ranks alone: no shape of the noise is assumed.
    None if there are too few values for CONFIDENCE."""
    n, tail, outside = len(values), 0.0, 0
    # With `outside` values cut off at each end, `tail` is the chance that the median is among them.
    while 2 * (tail + math.comb(n, outside) / 2**n) <= 1 - CONFIDENCE:
        tail += math.comb(n, outside) / 2**n
        outside += 1
    if outside == 0:
        return None
    ordered = sorted(values)
    return float(ordered[outside - 1]), float(ordered[n - outside])


@dataclass(frozen=True)
class Verdict:
    """Our time beside the peer's: a word, the median ratio, and its interval."""

    word: str  # faster, not slower, undecided, slower
    ratio: float
    low: float
    high: float
    launches: int


def judge(values):
    """The verdict on one ratio (ours / peer's) per launch; at least LEAST_LAUNCHES of them."""
    if len(values) < LEAST_LAUNCHES:
        raise ValueError(f"{len(values)} launches; a verdict takes at least {LEAST_LAUNCHES}")
    ratio = float(np.median(values))
    low, high = interval(values)
    if high < 1:
        word = "faster"
    elif low < TOLERANCE and ratio <= TOLERANCE:
        word = "not slower"
    elif low >= TOLERANCE:
        word = "slower"
    else:
        word = "undecided"
    return Verdict(word, ratio, low, high, len(values))
