"""Starts ranks on this machine, as `paceline run` does.

    status = launch(["train.py", "--epochs", "3"], ranks=4)

Every rank gets these variables:
- PACELINE_RANK, PACELINE_RANKS and PACELINE_STORE, through which paceline.init() finds the other
  ranks;
- PACELINE_SECRET, new for each launch, by which ranks recognise each other in the store;
- those of torchrun (RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), for
  torch.distributed.init_process_group("paceline");
- OMP_NUM_THREADS=1, unless it is set: the thread pools of several ranks would slow each other down.

Ranks are not pinned to cores.
"""

import glob
import os
import queue
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from paceline import cause
from paceline.errors import UsageError
from paceline.units import human_time

TIMED_OUT = 124  # the exit status of coreutils' timeout
# Each rank is in a session of its own: a terminal that closes reaches it through here alone.
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

# Called with rank, stream ("stdout" or "stderr") and a line of output without its line feed.
OnLine = Callable[[int, str, str], None]


def launch(
    command: Sequence[str],
    ranks: int,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    grace_s: float = 5.0,
    prefix: bool = False,
    on_line: OnLine | None = None,
) -> int:
    """Runs `command` once per rank, waits for all of them, and returns one exit status.

    command: program and arguments. This Python runs a first word that ends in .py.
    env: variables for the ranks, in addition to this process's environment.
    timeout_s: seconds after which all ranks are ended; the status is then 124. None: no limit.
    grace_s: seconds for the other ranks to end after the first one fails. Then they get SIGTERM,
    and after the same time again SIGKILL.
    prefix: True puts "[rank] " before every line of output.
    on_line: function that is called with rank, stream and line, in place of the output.
    Without prefix and on_line, ranks write to stdout and stderr of this process directly.

    The status is 0 if all ranks return 0. Otherwise it is that of the first rank to fail, or
    128 + n if signal n ended that rank. In the main thread, SIGINT, SIGTERM, SIGHUP and SIGQUIT are
    passed on to the ranks, except those that this process ignores, as under nohup. If several ranks
    fail with the same error, it is printed once.

    Raises UsageError for a command that cannot be started, and for a number of ranks below 1.
    """
    if ranks < 1:
        raise UsageError(f"run: {ranks} ranks; there must be at least 1.")
    if not command:
        raise UsageError("run: no command; pass a program and its arguments.")
    if prefix and on_line is None:
        on_line = _print_prefixed
    folder = tempfile.mkdtemp(prefix="paceline-")
    run = _Run(grace_s, on_line)
    seen = on_line in (None, _print_prefixed)  # a person sees what ranks write
    if seen:
        cause.folder_in(folder).mkdir()
    common = {**os.environ, **(env or {})}
    common.setdefault("OMP_NUM_THREADS", "1")
    if on_line:
        common.setdefault("PYTHONUNBUFFERED", "1")  # lines of ranks come in the right order
    common.update(PACELINE_STORE=folder, PACELINE_SECRET=secrets.token_hex(16))
    try:
        with held_port() as port, _forwarding(run):
            common.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            for rank in range(ranks):
                run.start(_words(command), {**common, **_numbers(rank, ranks)})
            return run.wait(timeout_s)
    finally:
        run.end()
        if run.first and ranks > 1 and seen:
            _say_why(run.first, cause.last_words(folder, ranks, run.first.rank))
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class _Exit:
    rank: int
    status: int  # as a shell reports it


class _Run:
    """The ranks of one launch. Each is the leader of a process group of its own."""

    def __init__(self, grace_s: float, on_line: OnLine | None):
        self.grace_s = grace_s
        self.on_line = on_line
        self.ranks: list[subprocess.Popen] = []
        self.exits: queue.SimpleQueue[_Exit | signal.Signals] = queue.SimpleQueue()
        self.alive: set[int] = set()
        self.threads: list[threading.Thread] = []
        self.first: _Exit | None = None  # rank to fail, unless a signal came before

    def start(self, words: list[str], environment: dict[str, str]) -> None:
        """Starts the next rank, and threads that watch it and read what it writes."""
        rank = len(self.ranks)
        try:
            process = self.popen(words, environment)
        except OSError as error:
            raise UsageError(f"run: '{words[0]}' cannot be started: {error.strerror}.") from error
        self.ranks.append(process)
        self.alive.add(rank)
        self._thread(self._watch, rank, process)
        for name in ("stdout", "stderr") if self.on_line else ():
            self._thread(self._read, rank, name, getattr(process, name), self.on_line)

    def popen(self, words: list[str], environment: dict[str, str]) -> subprocess.Popen:
        """Starts a rank in a session of its own; its output goes to pipes if anyone reads it."""
        pipe = subprocess.PIPE if self.on_line else None
        return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=pipe,
                                stderr=pipe, start_new_session=True)  # fmt: skip

    def wait(self, timeout_s: float | None) -> int:
        """Waits for all ranks; after a failure or a signal, for at most grace_s seconds."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        failed, signals = 0, 0
        while self.alive:
            event = self._next(deadline)
            if isinstance(event, _Exit):
                self.alive.discard(event.rank)
                if event.status and not failed:
                    failed = event.status
                    if not signals:
                        if event.status != 128 + signal.SIGINT:  # else: Ctrl-C
                            self.first = event
                        deadline = time.monotonic() + self.grace_s
            elif isinstance(event, signal.Signals):
                failed, signals = failed or 128 + event, signals + 1
                self._signal(event)
                deadline = time.monotonic() + (self.grace_s if signals == 1 else 0)
            elif failed:
                break
            else:
                missing = ", ".join(str(rank) for rank in sorted(self.alive))
                print(
                    f"paceline run: not done after {human_time(timeout_s)}; ending rank {missing}.",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
                return TIMED_OUT
        return failed

    def end(self) -> None:
        """Ends all processes that are left, also children of ranks: by SIGTERM, then by SIGKILL."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            self._signal(sign)
            deadline = time.monotonic() + self.grace_s
            while self._groups() and time.monotonic() < deadline:
                time.sleep(0.02)
        for thread in self.threads:
            thread.join(self.grace_s)

    def _next(self, deadline: float | None) -> _Exit | signal.Signals | None:
        while True:
            left = 0.2 if deadline is None else min(0.2, deadline - time.monotonic())
            try:
                # Short waits: a signal handler runs only between them.
                return self.exits.get(timeout=max(left, 0))
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    return None

    def _signal(self, sign: signal.Signals) -> None:
        for process in self._groups():
            try:
                os.killpg(process.pid, sign)
            except (ProcessLookupError, PermissionError):
                pass

    def _groups(self) -> list[subprocess.Popen]:
        """The ranks whose process group has a live process."""
        return [process for process in self.ranks if _group_lives(process.pid)]

    def _thread(self, target: Callable, *arguments: object) -> None:
        self.threads.append(threading.Thread(target=target, args=arguments, daemon=True))
        self.threads[-1].start()

    def _watch(self, rank: int, process: subprocess.Popen) -> None:
        status = process.wait()
        self.exits.put(_Exit(rank, status if status >= 0 else 128 - status))

    def _read(self, rank: int, name: str, stream: IO[bytes], on_line: OnLine) -> None:
        with stream:
            for line in stream:
                on_line(rank, name, line.decode(errors="replace").rstrip("\n"))


def _say_why(first: _Exit, why: str | None) -> None:
    """Prints the cause after the output of all ranks: the last lines often only name a lost
    rank."""
    if why is None:
        why = f"rank {first.rank} was the first to fail, with exit status {first.status}."
    if why:
        print(f"paceline run: {why}", file=sys.stderr, flush=True)


def _group_lives(group: int) -> bool:
    """True if a process of the group runs. A zombie does not count: in containers it may never be
    reaped."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    for path in glob.iglob("/proc/[0-9]*/stat"):
        try:
            with open(path, errors="replace") as file:
                state, _, its_group = file.read().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # it has ended meanwhile
        if int(its_group) == group and state not in "ZX":
            return True
    return False


def _words(command: Sequence[str]) -> list[str]:
    words = [os.fspath(word) for word in command]
    if not words[0].endswith(".py"):
        return words
    if not os.path.exists(words[0]):
        raise UsageError(f"run: there is no script '{words[0]}'.")
    return [sys.executable, *words]


def _numbers(rank: int, ranks: int) -> dict[str, str]:
    """The rank's numbers, in our variables and in torchrun's."""
    return {
        "PACELINE_RANK": str(rank), "PACELINE_RANKS": str(ranks),
        "RANK": str(rank), "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
    }  # fmt: skip


@contextmanager
def held_port() -> Iterator[int]:
    """Reserves a TCP port on all addresses; torch's store on rank 0 listens there. The holder has
    SO_REUSEADDR and does not listen, so a server that sets SO_REUSEADDR can bind the port."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))
        yield holder.getsockname()[1]


def _print_prefixed(rank: int, stream: str, line: str) -> None:
    # One write, so that lines of different ranks do not mix.
    target = getattr(sys, stream)
    target.write(f"[{rank}] {line}\n")
    target.flush()


@contextmanager
def _forwarding(run: _Run) -> Iterator[None]:
    """Sends these signals to the ranks instead of ending this process by them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        sign: signal.signal(sign, lambda number, _: run.exits.put(signal.Signals(number)))
        for sign in _FORWARDED
        if signal.getsignal(sign) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
