"""Unpredictable arrivals: the cost of predicting them, simulated call by call.

Before each call the library's own predictor names late ranks, if any; the call takes the form
for late ranks then, and else its form without a prediction. The predictor learns of a call
what the ranks would tell each other, in the next call, as they do. Arrivals are drawn with fixed
seeds, or are those of a profile, one call after the other.
"""

import functools
import random

from paceline import _core
from paceline.patterns import Pattern
from paceline.schedules import unit_count

from paceline_bench.report.arrival_across import passes
from paceline_bench.report.lines import Figure, Model
from paceline_bench.report.simulated import ELEMENT
from paceline_bench.report.verdicts import Cell

RANKS, CALLS = 8, 1000
MESSAGE = 1 << 20
LAB = Model("200 Mbit/s, one rank a node", "lab-200mbit")
FACTORS = (1, 2, 5, 10, 20, 50)
RUNS = (1, 4, 6, 8, 12, 20)   # calls in a row with the same late rank, on average
LATE = 2   # in times of a message
LEAST_REPLAYED, MOST_REPLAYED = 4, 64   # ranks; of fewer none is ever named
HEADINGS = ("arrivals", "calls", "took ranks for late", "time, of that without a prediction")


@functools.cache
def world_of(ranks, late):
    """The World of an allreduce that takes these ranks for late."""
    if late:
        return _core.World("allreduce", "tail_as_ring", ranks, fused=True, blocks=passes(ranks),
                           late=list(late))
    choice = _core.choose("allreduce", ranks, MESSAGE, machine=LAB.machine)
    return _core.World("allreduce", choice["algorithm"], ranks, fused=True,
                       segments=choice["segments"], window=choice["window"])


def message_s():
    """Seconds that the message takes at a rank's port."""
    return _core.bound_s("broadcast", 2, MESSAGE, LAB.machine)


def exits_of(late, arrivals):
    """Exit times of the ranks, in seconds."""
    ranks = len(arrivals)
    count = unit_count("allreduce", ranks, MESSAGE)
    return world_of(ranks, late).simulate(count, ELEMENT, LAB.machine, list(arrivals)).exit_s


def played(rows):
    """For calls whose ranks enter at these times: the number that took ranks for late, and the sum
    of seconds from last entry to last exit, with the predictor and without."""
    predictor = _core.Predictor(len(rows[0]), MESSAGE, LAB.machine)
    named, with_s, without_s, told = 0, 0.0, 0.0, None
    for arrivals in rows:
        late, last = tuple(predictor.next()), max(arrivals)
        exits = exits_of(late, arrivals)
        took_s = max(exits) - last
        named += bool(late)
        with_s += took_s
        without_s += took_s if not late else max(exits_of((), arrivals)) - last
        if told:
            predictor.learn(*told)
        told = ([(int(1e9 * (last - at)), int(1e9 * (end - last)))
                 for at, end in zip(arrivals, exits)], list(late))
    return named, with_s, without_s


def uniform(factor, calls):
    """Random arrivals, apart by at most `factor` times of a message."""
    pattern = Pattern("", "uniform", factor)
    return [pattern.delays_s(RANKS, call, message_s(), seed=2022) for call in range(calls)]


def moving(run, calls):
    """One rank is late, and another one is drawn after so many calls on average."""
    draw, late, rows = random.Random(f"2022 {run}"), 0, []
    for _ in range(calls):
        if draw.random() < 1 / run:
            late = draw.randrange(RANKS)
        rows.append([LATE * message_s() if rank == late else 0.0 for rank in range(RANKS)])
    return rows


def patterns(calls):
    """{name: the arrivals of its calls}."""
    found = {f"uniform:{factor}": uniform(factor, calls) for factor in FACTORS}
    for run in RUNS:
        found[f"one late by {LATE}, another every {run} calls" if run > 1
              else f"one late by {LATE}, another in every call"] = moving(run, calls)
    return found


def figures(files):
    """The Figure of this part; nothing of it is measured."""
    rows, with_s, without_s = [], 0.0, 0.0
    for label, arrivals in patterns(CALLS).items():
        named, own_s, plain_s = played(arrivals)
        rows.append((label, str(CALLS), str(named), f"{own_s / plain_s:.4f}"))
        with_s, without_s = with_s + own_s, without_s + plain_s
    rows.append(("all", str(CALLS * len(rows)), "", f"{with_s / without_s:.4f}"))
    return [Figure(
        "random arrivals", "what predicting them costs, simulated",
        f"Allreduces of 1 MiB on {RANKS} ranks of {LAB.name}, one after the other, from the last "
        "entry to the last exit, with numbers=fast. Lateness, and the limit of uniform arrivals, "
        "are multiples of the time of a message.", (),
        table=(HEADINGS, *rows))]


def replayed(rows, where):
    """The Figure of a profile's arrivals, one call after the other, or none."""
    if not rows or not LEAST_REPLAYED <= len(rows[0]) <= MOST_REPLAYED:
        return []
    named, with_s, without_s = played(rows)
    return [Figure(
        "replay", f"the profile's arrivals, simulated; {where}",
        f"Allreduces of 1 MiB on {len(rows[0])} ranks of {LAB.name}, which enter as recorded, one "
        "call after the other.", (),
        table=(HEADINGS, ("recorded", str(len(rows)), str(named), f"{with_s / without_s:.4f}")))]


def cells(named):
    """{claim: its Cells}: what each pattern loses."""
    *rows, _ = named["random arrivals"].table[1:]
    return {"goal: random": [Cell("simulated", row[0], float(row[-1])) for row in rows]}
