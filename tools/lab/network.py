"""The links: a bridge, a pair of virtual interfaces for each node, shaped both ways."""

import array
import fcntl
import re
import shutil
import socket
import struct
import subprocess
from pathlib import Path

INTERFACE, BRIDGE = "eth0", "lab"
MTU = 9000
# Bytes that a bucket lets pass at once: few, or short messages are faster than the link.
BURST_BYTES, BURST_S = 20_000, 50e-6
QUEUE_BYTES = 4 << 20  # what several nodes send to one at a time waits, as in a switch
# The default is the machine's, may be any, and may not be changed for a namespace: so by route.
CONGESTION = "cubic"
NEEDED = ("ip", "tc")

SIOCETHTOOL = 0x8946
OFFLOADS = {"tso": 0x1F, "gso": 0x24, "gro": 0x2C}  # ETHTOOL_STSO and so on
UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}


def missing():
    """Why there can be no links here; empty if there can."""
    lacking = [name for name in NEEDED if not shutil.which(name)]
    return f"no {' and no '.join(lacking)}; on Debian or Ubuntu: apt-get install iproute2" \
        if lacking else ""


def rate_of(text):
    """Bits per second from "200mbit", as tc writes it. Raises ValueError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]?)bit", text.strip().lower())
    if not found or not float(found[1]):
        raise ValueError(f"'{text}' is no rate; write 200mbit or 1.5gbit")
    return float(found[1]) * UNITS[found[2]]


def address(node):
    """The address of a node."""
    return f"10.77.{node // 200}.{node % 200 + 1}"


def run(words, lines):
    """ip or tc with these lines at once."""
    found = subprocess.run([words, "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                           capture_output=True)
    if found.returncode:
        raise OSError(f"{words}: {' '.join(found.stderr.split())}")


def burst_bytes(rate):
    """Bytes that may pass at once: more if the link is faster than the kernel's clock."""
    return max(BURST_BYTES, int(rate / 8 * BURST_S))


def shape(interface, rate):
    """The line for tc that lets an interface send so many bits per second."""
    return (f"qdisc add dev {interface} root tbf rate {rate:.0f}bit burst {burst_bytes(rate)}b "
            f"limit {QUEUE_BYTES}b")


def no_offloads(interface):
    """Turns off packets longer than the link's: else the kernel hands over 64 KiB at a time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in OFFLOADS.values():
            value = array.array("I", [command, 0])
            name = interface.encode()
            request = struct.pack("16sP", name, value.buffer_info()[0])
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def without_ipv6():
    """Turns IPv6 off: its announcements would be counted as if they were messages."""
    for name in ("all", "default"):
        switch = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
        if switch.exists():
            switch.write_text("1")


def make_bridge():
    """Makes the bridge in this namespace."""
    without_ipv6()
    run("ip", ["link set lo up", f"link add {BRIDGE} mtu {MTU} type bridge",
               f"link set {BRIDGE} up"])


def plug(node, process, rate):
    """A link from the bridge to the namespace of that process; shapes what comes to the node."""
    port = f"port{node}"
    run("ip", [f"link add {port} mtu {MTU} type veth peer name {INTERFACE} mtu {MTU} "
               f"netns {process}",
               f"link set {port} master {BRIDGE}", f"link set {port} up"])
    run("tc", [shape(port, rate)])
    no_offloads(port)


def plugged(node, rate):
    """The node's end, from within; shapes what it sends."""
    without_ipv6()
    own = address(node)
    run("ip", ["link set lo up", f"address add {own}/16 dev {INTERFACE} noprefixroute",
               f"link set {INTERFACE} up",
               f"route add 10.77.0.0/16 dev {INTERFACE} src {own} congctl {CONGESTION}"])
    run("tc", [shape(INTERFACE, rate)])
    no_offloads(INTERFACE)
