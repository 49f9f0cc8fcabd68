"""Places of CUDA devices: orders them so that a chain has short hops.

A link counts first, by what the driver says of it: NVLink before PCI Express. The same switch comes
next, then the same socket.
"""

import os
from pathlib import Path

NODES = "/sys/bus/pci/devices"


def place(bus, system=NODES):
    """A device's place: its switch (the bridge above it) and its NUMA node; "" if the system does
    not tell."""
    folder = Path(system) / f"{bus}.0"
    try:
        switch = Path(os.path.realpath(folder)).parent.name
        node = (folder / "numa_node").read_text().strip()
    except OSError:
        return "", ""
    return switch, node if node != "-1" else ""


def chain(buses, link=lambda device, peer: 0, system=NODES):
    """The devices in an order whose neighbours are near. Starts at the first socket's first device;
    each is followed by the nearest that is left.

    link: (device, peer) -> how slow their link is, beside the others'; 0: the fastest.
    """
    places = [(*reversed(place(bus, system)), bus) for bus in buses]  # node, switch, bus
    left = sorted(range(len(buses)), key=lambda one: places[one])
    order = left[:1]
    while len(order) < len(buses):
        last = order[-1]
        left.remove(last)
        order.append(min(left, key=lambda one: (
            link(last, one), places[one][0] != places[last][0],
            places[one][:2] != places[last][:2], places[one])))
    return order


def near_order(devices):
    """The numbers of the devices in such an order, of paceline.device.cuda() or emulated()."""
    if devices.kind != "cuda":
        return list(range(devices.count))
    buses = [devices.describe(one)["bus"] for one in range(devices.count)]
    return chain(buses, devices.link)
