"""Process 1 of a node: sets it up from within, then runs what it is asked to."""

import os
import selectors
import signal
import socket
import subprocess
import sys

from lab import asking, namespaces, network

PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")  # where libraries look for ranks of the same node
GRACE_S = 2


def set_up(number, plan, plugged):
    """Sets up all that makes it a machine of its own; waits on `plugged` for its link."""
    namespaces.private_mounts()
    socket.sethostname(plan.name(number))
    namespaces.mount("sysfs", "/sys", "sysfs")  # shows the interfaces of this node
    for folder in PRIVATE:
        if os.path.isdir(folder):
            namespaces.cover(folder, plan.keep)
    os.read(plugged, 1)
    network.plugged(number, plan.rate)


class Server:
    """Starts processes for others, and says how they ended."""

    def __init__(self, path):
        self.listener = asking.listening(path)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.running = {}  # connection by process
        self.ends = socket.socketpair()  # a signal writes into one, which wakes the selector
        for end in self.ends:
            end.setblocking(False)
        signal.set_wakeup_fd(self.ends[1].fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(self.ends[0], selectors.EVENT_READ, self.ended)

    def serve(self):
        """Serves for ever."""
        while True:
            for key, _ in self.selector.select():
                key.data(key.fileobj)

    def accept(self, listener):
        """Handles a new connection."""
        connection, _ = listener.accept()
        connection.settimeout(5)
        descriptors = []
        try:
            request, descriptors = asking.request_in(connection)
            if "end" in request:
                self.told(namespaces.end_all())
                return self.answer(connection, 0)
            process = self.start(request, descriptors)
        except (OSError, ValueError) as error:
            if len(descriptors) == 3:
                os.write(descriptors[2], f"lab: {error}\n".encode())
            return self.answer(connection, 127)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        self.running[process] = connection
        self.selector.register(connection, selectors.EVENT_READ,
                               lambda _: self.hung_up(process, connection))

    def start(self, request, descriptors):
        """The number of a new process, the first of a group of its own."""
        stdin, stdout, stderr = descriptors
        words = ["nice", "-n", str(request["nice"] - os.nice(0)), *request["words"]]
        child = subprocess.Popen(
            words, cwd=request["folder"], env=request["environment"],
            stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)  # fmt: skip
        child.returncode = 0  # reaped below, with all that this process inherits
        return child.pid

    def ended(self, woken):
        """Reaps children that have ended."""
        try:
            woken.recv(4096)
        except BlockingIOError:
            pass
        self.told(namespaces.reap())

    def told(self, ends):
        """Sends back the status of each (process, status) that a client has asked for."""
        for process, status in ends:
            connection = self.running.pop(process, None)
            if connection:
                self.selector.unregister(connection)
                self.answer(connection, status if status >= 0 else 128 - status)

    def hung_up(self, process, connection):
        """Ends a process whose client is gone."""
        self.selector.unregister(connection)
        connection.close()
        self.running.pop(process, None)
        try:
            os.killpg(process, signal.SIGTERM)
        except ProcessLookupError:
            return
        # Another process waits, so that this one can go on.
        later = f"sleep {GRACE_S}; kill -KILL -{process} 2>/dev/null"
        subprocess.Popen(["sh", "-c", later], start_new_session=True).returncode = 0

    def answer(self, connection, status):
        """Sends the status, the last word on a connection."""
        try:
            connection.sendall(str(status).encode())
        except OSError:
            pass
        connection.close()


def main(number, plan, plugged, ready):
    """The life of a node. Says nothing on `ready` when all is well, and closes it."""
    try:
        set_up(number, plan, plugged)
        server = Server(plan.socket(number))
    except Exception as error:
        os.write(ready, f"{plan.name(number)}: {error}\n".encode())
        raise
    os.close(ready)
    sys.stdout.flush()
    server.serve()
