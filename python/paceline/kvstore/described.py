"""Describes a plan of auto, with reasons and alternatives, in text of 80 columns."""

import itertools
import textwrap
from collections import Counter

from paceline._core import human_bytes
from paceline.kvstore.plan import PIECE, TAIL, Plan, Predicted, ends_s
from paceline.kvstore.prices import Prices
from paceline.units import human_time

COLUMNS = 80
FEW = 24  # calls, or runs of them, that are listed, unless all are asked for


def describe(
    plan: Plan, prices: Prices, ready_s: dict[int, float], order: list[int], outstanding: int,
    every_call: bool = False,
) -> str:  # fmt: skip
    """`order` and `ready_s` as Plan.order() has them; `every_call`: lists all of them."""
    keys = [entry for bucket in plan.buckets for entry in bucket]
    size = human_bytes(sum(entry.nbytes for entry in keys))
    lines = _wrapped(f"auto: {len(keys)} keys, {size}, in {_lengths(plan, outstanding)}",
                     COLUMNS - len("paceline: "))
    lines += _why(plan, prices)
    lines += _alternatives(plan.predicted(order, ready_s, prices),
                           max(ready_s.values()) - min(ready_s.values()))
    return "\n".join(lines + _calls(plan, prices, ready_s, order, every_call))


def _lengths(plan: Plan, outstanding: int) -> str:
    count = len(plan.buckets)
    if not plan.hides:
        return "1 call a step" if count == 1 else f"{count} calls a step, one for each type"
    return (f"{_number(count, 'bucket')} of up to {human_bytes(plan.bucket_bytes)}, called in "
            f"{_number(len(plan.pieces), 'call')}, up to {outstanding} under way")


def _why(plan: Plan, prices: Prices) -> list[str]:
    first = "last" if plan.is_reversed else "first"
    reasons = [f"keys: those pushed {first} come first, since their gradients are ready first"]
    rate = (f", plus the time of its bytes at {human_bytes(round(1 / prices.byte_s))}/s"
            if prices.byte_s else "")
    call = f"a call takes {human_time(prices.call_s)}{rate}"
    if not plan.hides:
        reasons.append(
            f"one call: computing hides nothing, since {plan.cores.threads} threads of the ranks "
            f"compute on the {plan.cores.count} cores of their node; {call}")
    else:
        reasons += [
            f"buckets: {call}. Buckets are so long that the fixed part is at most "
            f"{100 * prices.overhead:.0f} % of their time. The last {TAIL + 1} are shorter, since "
            "no computing hides them",
            f"pieces: a key longer than {PIECE} buckets is exchanged in several calls, so that "
            "more urgent calls can go between",
            "order: when the links are free, the ready bucket goes that the next forward pass "
            "needs first"]
    return list(itertools.chain.from_iterable(map(_item, reasons)))


def _alternatives(predicted: dict[str, Predicted], last_s: float) -> list[str]:
    lines = [f"predicted, from the first gradient on (the last after {human_time(last_s)}):",
             f"  {'':<14}{'':>12}{'next pass begins':>18}{'all is over':>13}"]
    return lines + [
        f"  {way:<14}{_number(one.calls, 'call'):>12}{human_time(one.begins_s):>18}"
        f"{human_time(one.over_s):>13}" for way, one in predicted.items()]


def _calls(
    plan: Plan, prices: Prices, ready_s: dict[int, float], order: list[int], all_of_them: bool
) -> list[str]:  # fmt: skip
    """A line for each run of calls of one bucket, in their order."""
    pieces, calls = Counter(order), plan.calls(order, ready_s, prices)
    ends = ends_s(calls, plan.hides)
    runs = [(bucket, len(list(run))) for bucket, run in itertools.groupby(order)]
    passed = sum(b < a for (a, _), (b, _) in itertools.pairwise(runs))
    lines = _wrapped(f"in the order of calls; {passed} times a call lets others pass that "
                     "are needed before it:" if plan.hides else "in the order of calls:")
    lines.append(f"  {'calls':>9}{'bytes':>11}{'ready':>10}{'over':>10}  keys")
    end = left_out = 0
    for place, (bucket, run) in enumerate(runs):
        entries = plan.buckets[bucket]
        nbytes = sum(entry.nbytes for entry in entries) * run // pieces[bucket]
        begin, end = end + 1, end + run
        if all_of_them or len(runs) <= FEW or not FEW // 2 <= place < len(runs) - FEW // 2:
            numbers = f"{begin}-{end}" if run > 1 else str(begin)
            times = (human_time(seconds) for seconds in (calls[end - 1][0], ends[end - 1]))
            lines.append(f"  {numbers:>9}{human_bytes(nbytes):>11}" +
                         "".join(f"{time:>10}" for time in times) +
                         f"  {_keys([entry.key for entry in entries])}")
        elif not left_out:
            left_out = len(runs) - FEW // 2 * 2
            lines.append(f"  {'...':>9}  {left_out} more")
    return lines


def _keys(keys: list) -> str:
    """As many of the keys as fit."""
    room = COLUMNS - 44
    shown = ""
    for i, key in enumerate(keys):
        more = f" and {len(keys) - i - 1} more" if i + 1 < len(keys) else ""
        longer = f"{shown}, {key!r}" if shown else repr(key)
        if len(longer + more) > room:
            break
        shown, rest = longer, more
    if not shown:
        return f"{len(keys)} keys" if len(keys) > 1 else repr(keys[0])[:room]
    return shown + rest


def _item(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent="  ", subsequent_indent="    ")


def _wrapped(text: str, columns: int = COLUMNS) -> list[str]:
    return textwrap.wrap(text, columns, subsequent_indent="  ")


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' if count != 1 else ''}"

