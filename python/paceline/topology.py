"""Orders CUDA devices so that neighbours have fast links.

The link counts first, as the driver ranks it: NVLink before PCI Express. A common switch counts
next, then a common socket.
"""

import os
from pathlib import Path

NODES = "/sys/bus/pci/devices"


def place(bus, system=NODES):
    """The switch of a device (the bridge above it) and its NUMA node; "" if unknown."""
    folder = Path(system) / f"{bus}.0"
    try:
        switch = Path(os.path.realpath(folder)).parent.name
        node = (folder / "numa_node").read_text().strip()
    except OSError:
        return "", ""
    return switch, node if node != "-1" else ""


def chain(buses, link=lambda device, peer: 0, system=NODES):
    """The numbers of the devices in an order in which neighbours are near. It begins with the first
    device of the first socket. The nearest device that is left follows each.

    link: (device, peer) -> rank of their link by speed; 0: the fastest.
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
    """The order of chain() for the devices of paceline.device.cuda() or emulated()."""
    if devices.kind != "cuda":
        return list(range(devices.count))
    buses = [devices.describe(one)["bus"] for one in range(devices.count)]
    return chain(buses, devices.link)
