"""Forks ranks from a process that has imported what they import: `import torch` takes longer than
most of what a rank is tested for.

    server = Server("torch", "paceline")
    process = server.popen([script, *arguments], environment)   # as subprocess.Popen, with pipes
    process = server.popen(["-m", module, *arguments], environment)

A forked rank is what a started one is: its standard streams, environment, arguments and end are its
own. It differs where the environment is read at import, and in that all ranks have one layout of
addresses.
"""

import gc
import importlib
import io
import json
import os
import runpy
import selectors
import socket
import subprocess
import sys
from contextlib import suppress

MOST = 1 << 20  # bytes of a request


class Server:
    """The process that forks; it ends with the one that made it."""

    def __init__(self, *modules, env=None):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self.socket, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *modules],
                env={**os.environ, **(env or {})}, pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def popen(self, words, environment):
        """A rank that runs this script of Python, or this module after "-m"."""
        pipes = [os.pipe() for _ in range(3)]
        request = {"words": words, "environment": dict(environment), "folder": os.getcwd()}
        socket.send_fds(self.socket, [json.dumps(request).encode()], [end for _, end in pipes])
        for _, end in pipes:
            os.close(end)
        answer = self.socket.recv(64)
        if not answer:
            raise RuntimeError(f"the fork server has ended: {self.process.wait()}")
        return Forked(int(answer), *(open(end, "rb") for end, _ in pipes))

    def end(self):
        self.socket.close()
        self.process.wait(10)


class Forked:
    """What launch() needs of a subprocess.Popen."""

    def __init__(self, pid, stdout, stderr, status):
        self.pid, self.stdout, self.stderr, self.status = pid, stdout, stderr, status

    def wait(self):
        with self.status:
            return int(self.status.readline())  # later children hold the pipe open too


def serve(requests):
    """Forks a child for each request and tells its end. Returns in a child alone: its request."""
    waiting = selectors.DefaultSelector()
    waiting.register(requests, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is requests:
                text, descriptors, *_ = socket.recv_fds(requests, MOST, 3)
                if not text:
                    sys.exit()
                pid = os.fork()
                if pid == 0:
                    waiting.close()
                    requests.close()
                    become(json.loads(text), *descriptors)
                    return json.loads(text)["words"]
                *streams, status = descriptors
                for stream in streams:
                    os.close(stream)
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))
                requests.send(str(pid).encode())
            else:
                pid, status = key.data
                waiting.unregister(key.fileobj)
                os.close(key.fileobj)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with suppress(BrokenPipeError), open(status, "w") as told:
                    told.write(f"{code}\n")


def become(request, stdout, stderr, status):
    """Makes of this child what a started process would be."""
    os.close(status)
    os.setsid()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for number, name in ((stdout, "stdout"), (stderr, "stderr")):
        target = getattr(sys, name).fileno()
        os.dup2(number, target)
        os.close(number)
        stream = io.TextIOWrapper(open(target, "wb", 0, closefd=False), write_through=True)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    number, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # what has been imported is never looked through in a rank, so pages stay shared
    words = serve(socket.socket(fileno=int(number)))
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    if words[0] == "-m":
        sys.argv[:], sys.path[0] = words[1:], os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv[:], sys.path[0] = words, os.path.dirname(words[0])
        runpy.run_path(words[0], run_name="__main__")
