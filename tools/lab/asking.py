"""Asks a node to run something, as ssh does: over a socket that only root can reach.

One request per connection: its length, then JSON, with three descriptors beside it. The answer is
the exit status; a client that hangs up before ends what was running.
"""

import array
import json
import os
import socket
import struct

LENGTH = struct.Struct("!I")


def ask(path, request, descriptors=(0, 1, 2), limit_s=None):
    """Sends a request to the node behind a socket; its answer, a whole number.

    Raises TimeoutError after limit_s, and hangs up."""
    own = os.getpriority(os.PRIO_PROCESS, 0)  # the command gets this process's priority
    text = json.dumps({**request, "nice": own}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(os.fspath(path))
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        connection.sendmsg([LENGTH.pack(len(text))], ancillary)
        connection.sendall(text)
        connection.settimeout(limit_s)
        answer = b""
        while some := connection.recv(64):
            answer += some
    if not answer:
        raise ConnectionError(f"{path}: the node has ended")
    return int(answer)


def request_in(connection):
    """(request, descriptors) from a new connection."""
    size = array.array("i").itemsize
    head, ancillary, _, _ = connection.recvmsg(LENGTH.size, socket.CMSG_SPACE(3 * size))
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % size])
    if len(head) < LENGTH.size:
        raise ConnectionError("hung up")
    left, text = LENGTH.unpack(head)[0], b""
    while left:
        some = connection.recv(left)
        if not some:
            raise ConnectionError("hung up")
        text, left = text + some, left - len(some)
    return json.loads(text), list(descriptors)


def listening(path):
    """A socket at this path."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(os.fspath(path))
    os.chmod(path, 0o600)
    server.listen(64)
    return server
