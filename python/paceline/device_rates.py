"""Measures copies and sums on CUDA devices, for the machine model that chooses algorithms."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from paceline import device

REPEATS, WARMUPS = 10, 2
LONG = 64 << 20  # bytes: the start of a copy is little of its time
SHORT, BLOCKS = 4 << 10, 64  # bytes of a block whose time is that of starting it; so many


def median_s(action: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median seconds of one call until its end; the host enqueues it and waits."""
    times = []
    for turn in range(WARMUPS + repeats):
        begin = time.perf_counter()
        action()
        if turn >= WARMUPS:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def arrays_on(devices: Any, positions: Sequence[int], count: int) -> list[Any]:
    """An array of float32 on the device of each position."""
    return [device.Array(devices, where, count) for where in positions]


def call_s(
    group: Any, collective: str, arrays: Sequence[Any], repeats: int = REPEATS, **options: Any
) -> float:
    """Seconds of one call of a Group."""

    def action() -> None:
        getattr(group, collective)(arrays, **options)
        group.synchronize()

    return median_s(action, repeats)


def rates(
    devices: Any, positions: Sequence[int], nbytes: int = LONG
) -> tuple[float, float, float]:
    """Measured rates: bytes/s of a copy of `nbytes` between neighbours, bytes/s of a sum of two
    arrays on one device, and seconds of a short copy among others."""
    pair = (list(positions) * 2)[:2]
    two = device.Group(devices, pair)
    arrays = arrays_on(devices, pair, nbytes // 4)
    copied = call_s(two, "broadcast", arrays, algorithm="chain", segments=1)
    both = call_s(two, "reduce", arrays, algorithm="chain", segments=1)
    few = arrays_on(devices, pair, BLOCKS * SHORT // 4)
    one, many = (call_s(two, "broadcast", few, algorithm="chain", segments=blocks, window=blocks)
                 for blocks in (1, BLOCKS))  # fmt: skip
    starts_s = max(many - one, one / 100) / (BLOCKS - 1)
    return nbytes / copied, nbytes / max(both - copied, copied / 100), starts_s


def machine_of(found: tuple[float, float, float], positions: Sequence[int]) -> str:
    """The machine model with the figures of rates(), as --machine takes it. Positions on one device
    share its memory."""
    copies, sums, starts_s = found
    shared = max(list(positions).count(where) for where in positions)
    return (f"alpha_us={1e6 * starts_s:.3g},gbit_per_s={8e-9 * copies / shared:.4g},"
            f"reduce_gbyte_per_s={1e-9 * sums / shared:.4g}")  # fmt: skip


def measured(devices: Any, positions: Sequence[int]) -> str:
    """Measures the machine model of these devices, for device.Group(devices, positions, machine).

    Returns settings as --machine takes them. Takes about a second, and 64 MiB on each of two
    positions.
    """
    return machine_of(rates(devices, positions), positions)
