"""Turns the ranks' records of train.py into figures: rates, shares of time, loss differences.

A run is the list of its ranks' records, rank 0 first. Times are ns unless a name says ms.
"""

import json
from pathlib import Path
from statistics import median, quantiles

WARM_UP_STEPS = 10
CHECKED_STEPS = 50
TOLERANCE = 1e-5
STEADY_SPREAD = 0.15


def load_run(folder: Path, ranks: int) -> list[dict]:
    """The records that the ranks of one run left in `folder`."""
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


def warm(run: list[dict]) -> range:
    """Indices of the steps that count: all but the first few, unless there are only few."""
    steps = len(run[0]["steps"])
    return range(min(WARM_UP_STEPS, steps // 2), steps)


def step_ms(run: list[dict], step: int) -> float:
    """Length of one step on the rank that took longest for it (ms)."""
    edges = [record["steps"][step]["edges"] for record in run]
    return max(edge[-1] - edge[0] for edge in edges) / 1e6


def covered(intervals: list[tuple[int, int]]) -> int:
    """Length of the union of (begin, end) intervals (ns)."""
    total, reached = 0, None
    for begin, end in sorted(intervals):
        begin = begin if reached is None else max(begin, reached)
        if end > begin:
            total, reached = total + end - begin, end
    return total


def communication(step: dict) -> tuple[float, float]:
    """Shares (0..1) of one rank's step: some bucket on its way; nothing but waiting for one.

    A bucket is on its way from the all-reduce call until its sum is complete, so the wait for a
    slower peer counts. The rank only waits while it is held inside the all-reduce call, and
    after the last such call until backward ends: by then every gradient has been computed.
    """
    begin, _, backward_end, end = step["edges"]
    flights = [(issue, done) for _, _, issue, _, done in step["buckets"]]
    held = [(issue, issued) for _, _, issue, issued, _ in step["buckets"]]
    if not flights:
        return 0.0, 0.0
    tail = (max(issued for _, issued in held), backward_end)
    return covered(flights) / (end - begin), covered([*held, tail]) / (end - begin)


def typical_step(run: list[dict]) -> int:
    """The step whose length is nearest to the run's median: the one worth drawing."""
    middle = median(step_ms(run, step) for step in warm(run))
    return min(warm(run), key=lambda step: abs(step_ms(run, step) - middle))


def spread(rates: list[float]) -> float:
    """(largest - smallest) / median: how far a backend's rounds lie apart."""
    return (max(rates) - min(rates)) / median(rates)


def summarise(runs: list[list[dict]]) -> dict:
    """Figures of one backend over its rounds; medians and quartiles are over warm steps."""
    first = runs[0][0]
    images = first["ranks"] * first["batch"]
    lengths = [[step_ms(run, step) for step in warm(run)] for run in runs]
    pooled = [ms for run_lengths in lengths for ms in run_lengths]
    low, _, high = quantiles(pooled, n=4) if len(pooled) > 1 else pooled * 3
    by_round = [1e3 * images / median(run_lengths) for run_lengths in lengths]
    shares = [
        communication(record["steps"][step])
        for run in runs for record in run for step in warm(run)
    ]
    return {
        "backend": first["backend"],
        "images_per_s": 1e3 * images / median(pooled),
        "images_per_s_quartiles": [1e3 * images / high, 1e3 * images / low],
        "images_per_s_by_round": by_round,
        "steady": spread(by_round) <= STEADY_SPREAD,
        "step_ms": median(pooled),
        "communication_share": median(share for share, _ in shares),
        "waiting_share": median(share for _, share in shares),
        "test_accuracy": first["accuracy"],
        "final_loss": sum(record["losses"][-1] for record in runs[0]) / len(runs[0]),
        "weights_sha256": first["weights_sha256"],
        "ranks_agree": all(
            record["weights_sha256"] == run[0]["weights_sha256"] for run in runs for record in run
        ),
        "rerun_loss_difference": max(
            (worst(loss_differences(runs[0], run)) for run in runs[1:]), default=None
        ),
        "buckets": len(first["steps"][-1]["buckets"]),
        "steps_measured": len(pooled),
    }


def relative(a: float, b: float) -> float:
    """|a - b| by the larger of both; inf where one of them is not a number."""
    if a == b:
        return 0.0
    difference = abs(a - b) / max(abs(a), abs(b))
    return difference if difference == difference else float("inf")


def loss_differences(run: list[dict], other: list[dict]) -> list[float]:
    """Per step, the largest relative difference of the loss over the ranks."""
    by_rank = [
        [relative(a, b) for a, b in zip(record["losses"], its_peer["losses"], strict=True)]
        for record, its_peer in zip(run, other, strict=True)
    ]
    return [max(step) for step in zip(*by_rank, strict=True)]


def worst(differences: list[float]) -> float:
    """The largest entry, 0 where there is none."""
    return max(differences, default=0.0)


def compare(runs: list[list[dict]], others: list[list[dict]]) -> dict:
    """Loss differences of two backends, round by round; `per_step` is the worst round's."""
    rounds = [loss_differences(run, other) for run, other in zip(runs, others, strict=True)]
    per_step = [max(step) for step in zip(*rounds, strict=True)]
    same = {run[0]["weights_sha256"] for run in [*runs, *others]}
    return {
        "steps": len(per_step),
        "largest_first_steps": worst(per_step[:CHECKED_STEPS]),
        "checked_steps": min(CHECKED_STEPS, len(per_step)),
        "largest_all_steps": worst(per_step),
        "first_different_step": next((i for i, d in enumerate(per_step) if d > 0), None),
        "same_final_weights": len(same) == 1,
        "per_step": per_step,
    }
