"""Bytes over TCP as fast as they go: `serve PORT` says how fast they came, `send NODE PORT` sends.

Prints bits of payload per second, and the congestion control of the connection.
"""

import socket
import struct
import sys
import time

BYTES = 4_000_000
BEGIN = struct.Struct("q")


def serve(port):
    with socket.create_server(("", int(port))) as server:
        connection, _ = server.accept()
        # The sender's time: this process may come late, when much has arrived already.
        begin_ns, = BEGIN.unpack(connection.recv(BEGIN.size, socket.MSG_WAITALL))
        left = BYTES
        while left:
            left -= len(connection.recv(min(left, 1 << 16)))
        print(BYTES * 8e9 / (time.monotonic_ns() - begin_ns))


def send(node, port):
    for _ in range(1000):  # until it listens
        try:
            connection = socket.create_connection((node, int(port)))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    connection.sendall(BEGIN.pack(time.monotonic_ns()))
    connection.sendall(bytes(BYTES))
    connection.close()
    print(name.rstrip(b"\0").decode())


if __name__ == "__main__":
    {"serve": serve, "send": send}[sys.argv[1]](*sys.argv[2:])
