"""Messages and rounds of a call: what a tap sees, and what is made of it."""

import functools
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from lab.namespaces import NET, unshare
from paceline_bench.measure import messages
from paceline_bench.measure.messages import Segment

MTU, TRIP = 9000, 100
FULL = MTU - messages.HEADERS


def played(ranks, sends, lengths=(64,)):
    """By node the Messages of `sends`: (at, from, to) in units of time; each takes a while."""
    nodes, streams = [[] for _ in range(ranks)], {}
    for at, source, target in sends:
        for place, length in enumerate(lengths):
            number = streams[source, target] = streams.get((source, target), 0) + 1
            way = (f"10.0.0.{source}", 5000, f"10.0.0.{target}", 6000, number)
            nodes[source].append(Segment(at * 10 * TRIP + place, True, way, length))
            nodes[target].append(Segment(at * 10 * TRIP + place + TRIP, False, way, length))
    return [messages.joined(segments, MTU) for segments in nodes]


def doubling(ranks, late=None):
    """Recursive doubling, a distance after the other; a rank may begin late."""
    sends = []
    for step in range(ranks.bit_length() - 1):
        sends += [(step + (0.5 if rank == late else 0), rank, rank ^ 1 << step)
                  for rank in range(ranks)]
    return sends


def test_doubling_has_as_many_rounds_as_distances():
    call = played(8, doubling(8))
    assert messages.messages(call) == 24
    assert messages.rounds([call]) == 3


def test_what_came_early_once_is_not_waited_for():
    late = [played(8, doubling(8, late=rank)) for rank in range(2)]
    assert messages.rounds(late[:1]) > 3  # so that one call alone would tell of more
    assert messages.rounds(late) == 3


def test_a_chain_and_a_star_have_a_round_for_each_message():
    chain = played(5, [(rank, rank, rank + 1) for rank in range(4)])
    assert (messages.messages(chain), messages.rounds([chain])) == (4, 4)
    star = played(5, [(rank, 0, rank) for rank in range(1, 5)])
    assert (messages.messages(star), messages.rounds([star])) == (4, 4)
    tree = played(4, [(0, 0, 2), (1, 0, 1), (1, 2, 3)])
    assert (messages.messages(tree), messages.rounds([tree])) == (3, 2)


def test_what_crosses_on_its_way_does_not_wait_for_each_other():
    both = played(2, [(0, 0, 1), (0, 1, 0)])
    assert messages.rounds([both]) == 1
    answered = played(2, [(0, 0, 1), (1, 1, 0)])
    assert messages.rounds([answered]) == 2


def test_a_long_message_is_one():
    call = played(3, [(0, 0, 1), (1, 1, 2)], lengths=(FULL, FULL, 700))
    assert (messages.messages(call), messages.rounds([call])) == (2, 2)


def test_what_is_sent_again_is_no_other_message():
    first = Segment(0, True, ("10.0.0.0", 1, "10.0.0.1", 2, 77), 64)
    again = Segment(50 * TRIP, True, first.way, 64)
    assert [m.at_ns for m in messages.joined([first, again], MTU)] == [0]


def test_what_is_not_in_every_call_is_in_no_chain():
    some = played(3, [(0, 0, 1), (1, 1, 2)])
    less = played(3, [(0, 0, 1)])
    assert messages.rounds([some, less]) == 1


def test_nothing_is_no_message():
    assert (messages.messages([[], []]), messages.rounds([[[], []]])) == (0, 0)


def answer(server):
    """Says back what it hears."""
    peer, _ = server.accept()
    with peer:
        while said := peer.recv(100):
            peer.sendall(said)


def in_own_network(test):
    """Runs a test in a network whose loopback has no packets of other tests."""

    def inside(**fixtures):
        if not shutil.which("ip"):
            pytest.skip("ip is not installed (Debian: iproute2)")
        try:
            unshare(NET)  # for this thread and those that it starts
        except PermissionError:
            pytest.skip("needs CAP_NET_RAW and CAP_NET_ADMIN")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        test(**fixtures)

    @functools.wraps(test)
    def run(**fixtures):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(inside, **fixtures).result()

    return run


@in_own_network
def test_a_tap_without_room_says_so(monkeypatch):
    monkeypatch.setattr(messages, "ROOM", 4096)
    tap = messages.Tap("lo")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(200):
            sender.sendto(bytes(1000), ("127.0.0.1", 9))
    with pytest.raises(RuntimeError, match="found no room in a tap of 4096 bytes"):
        tap.take()
    tap.discard()
    assert tap.lost() == 0
    tap.close()


@in_own_network
def test_a_tap_sees_what_passes_and_no_answers():
    tap = messages.Tap("lo")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=answer, args=(server,))
        thread.start()
        with socket.create_connection(("127.0.0.1", port)) as client:
            for length in (20, 10, 100):
                client.sendall(b"x" * length)
                assert len(client.recv(100)) == length
        thread.join()
    seen = [s for s in tap.take() if port in (s.way[1], s.way[3])]
    tap.close()
    assert [s.bytes for s in seen if s.sent] == [20, 20, 100, 100]
    assert sorted(s.way for s in seen if s.sent) == sorted(s.way for s in seen if not s.sent)
    assert all(a.at_ns <= b.at_ns for a, b in zip(seen, seen[1:]))
