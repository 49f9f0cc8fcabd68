"""Formats times, sizes and numbers, and places the marks of an axis."""

import math


def unit_of(span_s):
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if span_s >= scale:
            return unit, scale
    return "ns", 1e-9


def ticks(span_s, most):
    """Round numbers from 0 to at most span_s, no more than `most` of them."""
    if span_s <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(span_s / most))
    step = next(power * f for f in (1, 2, 5, 10, 20) if power * f * most >= span_s)
    return [i * step for i in range(int(span_s / step * (1 + 1e-9)) + 1)]


def number(value):
    return f"{value:.4g}"


def human_bytes(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.4g} {unit}"
        count /= 1024


def human_time(seconds):
    """A time with a fitting unit: 1.5 ms."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        value = f"{seconds * factor:.3g}"
        if float(value) >= 1 or unit == "us":
            return f"{value} {unit}"
