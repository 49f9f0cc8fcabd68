"""Messages of one call between nodes, and its rounds, read off the wire.

Short messages take as long as the machine under an emulated cluster needs to pass them on, so there
they are counted and not timed: how many are sent, and the longest chain of messages of which each
was sent after the one before it had come. A tap on every node's interface sees the segments of TCP
that carry something; a message is some full segments and one that is not. An MPI's own questions
and answers about a message count, but for those of 16 bytes that it cannot help.
"""

import socket
import struct
from dataclasses import dataclass

BELOW = 64 << 10  # bytes of a call; from there on it is its time that counts
HEADERS = 52  # of IP and TCP with time stamps, in a full segment
ROOM = 4 << 20  # for what a tap has yet to take
ALL_PROTOCOLS = 3  # others do not see what is sent
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
SOL_PACKET, PACKET_STATISTICS = 263, 6
STATISTICS = struct.Struct("II")  # packets, and those that found no room
NANOSECONDS = struct.Struct("qq")
LOOK = 128  # bytes of a packet: its headers
ANSWER = 16  # bytes with which libfabric says that a message has come, which no program asked for


@dataclass(frozen=True)
class Segment:
    """A segment of TCP that a node has sent, or received."""

    at_ns: int
    sent: bool
    way: tuple  # (address, port) of its sender and its receiver, and its place in the stream
    bytes: int


class Tap:
    """Reads packets of an interface of this process's network. Needs CAP_NET_RAW and _NET_ADMIN."""

    def __init__(self, interface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                    socket.htons(ALL_PROTOCOLS))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        self.socket.bind((interface, ALL_PROTOCOLS))
        self.socket.setblocking(False)

    def take(self):
        """The Segments since the last time. Raises RuntimeError if some found no room."""
        found = self.drain()
        lost = self.lost()
        if lost:
            raise RuntimeError(f"bench: {lost} packets of a call found no room in a tap of {ROOM} "
                               "bytes, so its messages cannot be counted; take shorter calls.")
        return found

    def discard(self):
        """Forgets the packets so far."""
        self.drain()
        self.lost()

    def lost(self):
        """Number of packets that found no room since the last time."""
        found = self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, STATISTICS.size)
        return STATISTICS.unpack(found)[1]

    def drain(self):
        """The Segments that are there."""
        found = []
        while True:
            try:
                packet, more, _, address = self.socket.recvmsg(LOOK, 64)
            except BlockingIOError:
                return found
            segment = read(packet, NANOSECONDS.unpack(more[0][2]), address[2])
            found += [segment] if segment else []

    def close(self):
        """Closes the tap."""
        self.socket.close()


def read(packet, stamp, kind):
    """The Segment of an IPv4 packet; None if it carries no message."""
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
        return None
    begin = 4 * (packet[0] & 15)
    (length,) = struct.unpack_from("!H", packet, 2)
    sender, receiver, number = struct.unpack_from("!HHI", packet, begin)
    carries = length - begin - 4 * (packet[begin + 12] >> 4)
    if carries <= ANSWER:
        return None
    hosts = (socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20]))
    return Segment(stamp[0] * 10**9 + stamp[1], kind == socket.PACKET_OUTGOING,
                   (hosts[0], sender, hosts[1], receiver, number), carries)


@dataclass(frozen=True)
class Message:
    """A message that a node has sent, or received: when it began to go, or had come."""

    at_ns: int
    sent: bool
    name: tuple  # sender, receiver, and its number among theirs in this call


def joined(segments, mtu):
    """The Messages of a node in one call, in the order of time."""
    seen, counts, begun, found = set(), {}, {}, []
    for segment in sorted(segments, key=lambda one: one.at_ns):
        if (segment.way, segment.sent) in seen:  # sent again
            continue
        seen.add((segment.way, segment.sent))
        stream = segment.way[0], segment.way[2], segment.sent
        begin = begun.setdefault(stream, segment.at_ns)
        if segment.bytes >= mtu - HEADERS:
            continue
        counts[stream] = counts.get(stream, 0) + 1
        del begun[stream]
        at = begin if segment.sent else segment.at_ns
        found.append(Message(at, segment.sent, (*stream[:2], counts[stream])))
    return sorted(found, key=lambda one: one.at_ns)


def messages(call):
    """Number of messages that all nodes sent. call: by node its Messages."""
    return sum(message.sent for node in call for message in node)


def rounds(calls):
    """The longest chain of messages each of which was sent after the one before had come, or had
    been sent by the same node, in every one of the calls: a message that happened to come early
    once was not waited for."""
    before = {}  # by message, those that had always passed its sender
    for call in calls:
        for node in call:
            passed = set()
            for message in node:
                if message.sent:
                    before.setdefault(message.name, set(passed)).intersection_update(passed)
                passed.add(message.name)
    sent = [sorted(((m.at_ns, m.name) for node in call for m in node if m.sent)) for call in calls]
    always = set.intersection(*({name for _, name in one} for one in sent))
    depth = {}
    for _, name in sent[0]:  # messages that came before another in every call did so in the first
        if name in always:
            depth[name] = 1 + max((depth[b] for b in before[name] & always), default=0)
    return max(depth.values(), default=0)
