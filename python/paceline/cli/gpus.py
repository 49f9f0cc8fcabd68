"""What `paceline doctor` says about CUDA devices."""

import os
from pathlib import Path

from paceline import _core
from paceline.errors import Error

NODES = "/sys/bus/pci/devices"


def topology(bus, system=NODES):
    """Where a device is plugged in: its switch (the bridge above it) and its NUMA node; "" where
    the system does not tell."""
    folder = Path(system) / f"{bus}.0"
    try:
        switch = Path(os.path.realpath(folder)).parent.name
        node = (folder / "numa_node").read_text().strip()
    except OSError:
        return "", ""
    return switch, node if node != "-1" else ""


def near_order(buses, system=NODES):
    """The devices in an order whose neighbours are near: one socket after the other, and in it one
    switch after the other."""
    def place(one):
        switch, node = topology(buses[one], system)
        return (node, switch, buses[one])

    return sorted(range(len(buses)), key=place)


def finding():
    """(state, text, advice)."""
    trouble = _core.trouble_with_cuda()
    emulated = "paceline.device.emulated() serves programs and tests without"
    if trouble:
        return "ok", f"none: {trouble}", f"Tensors are on the CPU; {emulated}." \
            if "version" in trouble else ""
    try:
        found = _core.cuda_devices()
        about = [found.describe(one) for one in range(found.count)]
    except Error as error:
        return "warn", str(error), f"Nothing works on devices; {emulated}."
    names = {}
    for one in about:
        key = f"{one['name']} ({one['architecture']}, {_core.human_bytes(one['memory_bytes'])})"
        names[key] = names.get(key, 0) + 1
    text = ", ".join(f"{count} x {name}" for name, count in names.items())
    text += f", driver {about[0]['driver']}"
    apart = [(a, b) for a in range(found.count) for b in range(found.count)
             if a < b and not (found.reaches(a, b) and found.reaches(b, a))]
    if found.count > 1:
        order = near_order([one["bus"] for one in about])
        text += f"; neighbours in the order {' '.join(map(str, order))}"
        text += "; all reach each other" if not apart else ""
    kernels = _core.has_cuda_kernels()
    advice = []
    if not kernels:
        advice.append("No reduce kernels: broadcasts work, sums do not. Build where nvcc is on the "
                      "PATH, or set PACELINE_CUDA_KERNELS.")
    if apart:
        pairs = ", ".join(f"{a} and {b}" for a, b in apart[:4])
        advice.append(f"Devices {pairs} do not reach each other: algorithms that send serve them, "
                      "and the driver copies through the host.")
    return ("warn" if advice else "ok"), text, " ".join(advice)
