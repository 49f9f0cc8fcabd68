"""Ranks that start unlike each other: the first difference is named, over every channel."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta

import launched
import mpis
import pytest
from length import each, param
from test_preload import built, compiled, mpi_of, mpicc_of, run, served

import paceline
from paceline import open_worlds, world
from paceline.launch import held_port

pytestmark = pytest.mark.ranks

SAID = ("start-up: option transport differs between ranks (rank 0: auto, rank 1: mpi); "
        "all ranks must have the same. PACELINE_TRANSPORT sets it.")  # fmt: skip
CHANNELS = ("folder", *(mpi.name for mpi in mpis.found()))


@each("channel", CHANNELS, ["torchrun"])
def test_transport_differs(channel):
    if channel == "torchrun":
        pytest.importorskip("torch")
    mpi = None if channel in ("folder", "torchrun") else mpi_of(channel)
    said = launched.start("unlike.py", 2, channel, mpi=mpi, timeout_s=60)
    for rank in range(2):
        assert f"rank {rank}: {SAID}" in said.text(), said.text()


@each("name", ["openmpi4", "mpich5"], ["openmpi5"])
def test_transport_differs_under_the_drop_in(name, tmp_path):
    """Its calls are the host's on both ranks, and whoever runs it is told."""
    mpi = mpi_of(name)
    mpicc = mpicc_of(mpi)
    wrapper = tmp_path / "unlike"
    wrapper.write_text(
        '#!/bin/sh\n[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] && export PACELINE_TRANSPORT=mpi\n'
        'exec "$@"\n'
    )
    wrapper.chmod(0o755)
    _, said = run(mpi, 2, built(mpicc), wrapper, compiled(mpicc, "collectives"))
    assert said.count(SAID) >= 2, said
    assert served(said)["Allreduce"][0] == 0, said
    assert len(re.findall(r"rank \d of 2: \d{5} calls compared", said)) == 2, said


@pytest.mark.parametrize("own, words", [
    ("", ("this rank has a secret, and it bears no seal", "and this rank has none")),
    ("another", ("its seal is by another secret",) * 2),
])  # fmt: skip
def test_secret_of_the_launcher(own, words):
    """Who has it not is no rank, and each says so of the other."""
    said = launched.start("unproven.py", 2, own, timeout_s=60)
    for rank in range(2):
        line = next(x for x in said.text().split("\n") if x.startswith(f"rank {rank}: "))
        assert words[rank] in line and f"/{1 - rank}'" in line, said.text()


WAYS = {
    "standalone": lambda port: ["--standalone"],
    "port": lambda port: [f"--master-port={port}"],
    "c10d": lambda port: ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"],
}


@pytest.mark.parametrize(
    ("way", "by"), [param("standalone", "init"), param("port", "torch"), param("c10d", "init")])
def test_restart_of_torchrun(way, by):
    """What ranks of the first attempt have said does not reach those of the second."""
    pytest.importorskip("torch")
    env = {**os.environ, **launched.limits()}
    with held_port() as port:
        command = [
            sys.executable, "-m", "torch.distributed.run", *WAYS[way](port), "--nproc-per-node=2",
            "--max-restarts=1", "--monitor-interval=0.1", str(launched.RANKS / "restarts.py"), by,
        ]  # fmt: skip
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"attempt 1: rank {rank} of 2, nodes 1" for rank in range(2)
    ]


@pytest.mark.parametrize("killed", [None, 1])
def test_a_folder_used_twice(tmp_path, killed):
    """Whoever reads what is left of the first run says so, on all ranks, long before time is up;
    also of a run that was killed, ever so often."""
    words = [] if killed is None else [killed]
    first = launched.start("store_twice.py", 3, tmp_path, *words)
    said = first.text(stream="stdout").splitlines()
    if killed is None:
        assert said == ["fine"] * 3, first.text()
    else:
        assert any("rank 1 is lost" in line for line in said), first.text()
    for _ in range(2):
        again = launched.start("store_twice.py", 3, tmp_path)
        lines = again.text(stream="stdout").splitlines()
        assert len(lines) == 3, again.text()
        assert all("is in the store from an earlier run" in line for line in lines), again.text()


ALONE = """
import signal, sys, paceline
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
paceline.init(1, 2, sys.argv[1], start_timeout_ms=100_000)
"""


@pytest.mark.parametrize(("sign", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 3)])
def test_a_signal_ends_the_wait_for_others(tmp_path, sign, status):
    """Over a folder; a rank that is late hears that it was given up."""
    env = os.environ | launched.limits()
    with subprocess.Popen([sys.executable, "-c", ALONE, str(tmp_path)], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        while not (tmp_path / "paceline+init1+0+1").exists():   # its first word
            assert waiting.poll() is None
            time.sleep(0.02)
        waiting.send_signal(sign)
        begin = time.monotonic()
        _, errors = waiting.communicate(timeout=90)
    assert waiting.returncode == status and time.monotonic() - begin < 20, errors
    late = "import sys, paceline; paceline.init(0, 2, sys.argv[1], start_timeout_ms=90_000)"
    done = subprocess.run([sys.executable, "-c", late, str(tmp_path)], env=env,
                          capture_output=True, text=True, timeout=60)
    assert "RankLost: start-up: rank 1 has given up waiting" in done.stderr, done.stderr


@each("way", ["folder"], ["store", "group"])
def test_a_start_that_was_given_up_is_tried_again(tmp_path, way):
    """One rank comes after the other has given up three times."""
    if way != "folder":
        pytest.importorskip("torch")

    def rank(number):
        return subprocess.Popen(
            [sys.executable, launched.RANKS / "try_again.py", str(number), way, str(tmp_path)],
            env=os.environ | launched.limits(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)

    with rank(0) as early, rank(1) as late:
        for process in (early, late):
            out, errors = process.communicate(timeout=100)
            assert (process.returncode, out) == (0, "2.0\n"), errors


REPLACED = """
import sys, torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", rank=int(sys.argv[1]), world_size=2,
                        store=dist.FileStore(sys.argv[2], 2), timeout=timedelta(seconds=4))
"""


def test_a_backend_that_is_replaced_on_one_rank_only(tmp_path):
    """The rank that has the option says so; the other one is gloo's alone."""
    pytest.importorskip("torch")
    env = os.environ | launched.limits()
    env.pop("PACELINE_REPLACE", None)

    def rank(number, **more):
        return subprocess.Popen(
            [sys.executable, "-c", REPLACED, str(number), str(tmp_path / "store")],
            env=env | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    with rank(0, PACELINE_REPLACE="gloo") as ours, rank(1) as theirs:
        _, errors = ours.communicate(timeout=100)
        assert ours.returncode == 1, errors
        assert "Is PACELINE_REPLACE=gloo set on every rank?" in errors, errors
        assert theirs.wait(timeout=100) == 1


class NoWayOut:
    """A socket of a machine that has no way out by addresses of some families."""

    def __init__(self, family, kind):
        self.family = family

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def connect(self, address):
        if self.family not in self.ways:
            raise OSError("Network is unreachable")

    def getsockname(self):
        return self.ways[self.family]


@pytest.mark.parametrize(("ways", "found"), [
    ({socket.AF_INET: ("10.0.0.1", 1), socket.AF_INET6: ("fd00::1", 1, 0, 0)}, "10.0.0.1"),
    ({socket.AF_INET6: ("fd00::1", 1, 0, 0)}, "fd00::1"),
    ({}, socket.gethostname()),
])  # fmt: skip
def test_own_address(monkeypatch, ways, found):
    """Of hosts of either kind of address, and of one with neither: its name."""
    pytest.importorskip("torch")
    import importlib
    from types import SimpleNamespace

    module = importlib.import_module("paceline.torch.rendezvous")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    monkeypatch.setattr(NoWayOut, "ways", ways, raising=False)
    monkeypatch.setattr(module.socket, "socket", NoWayOut)
    assert module.own_host(SimpleNamespace(is_one_node=False)) == found


class Own:
    """A store of one's own: each get() that finds nothing fails as torch's stores do."""

    def __init__(self):
        import torch.distributed as dist

        self.store = dist.HashStore()

    def set(self, key, value):
        self.store.set(key, value)

    def get(self, key, timeout):
        self.store.wait([key], timeout)
        return self.store.get(key)


def test_torch_store_waits_in_silence(capfd):
    pytest.importorskip("torch")
    import torch.distributed as dist

    from paceline.torchrun import TorchStore

    server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    client = dist.TCPStore("127.0.0.1", server.port, is_master=False)
    store = TorchStore(client, "prefix")
    with pytest.raises(paceline.TimeoutError, match="no rank set 'key'"):
        store.get("key", timedelta(seconds=1))
    timer = threading.Timer(0.3, lambda: TorchStore(server, "prefix").set("key", b"value"))
    timer.start()
    assert store.get("key", timedelta(seconds=30)) == b"value"
    assert capfd.readouterr().err == ""


HOLDER = """
import sys, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""


def test_store_that_ends_is_said(capfd):
    """Not asked again until the start time-out."""
    pytest.importorskip("torch")
    import torch.distributed as dist

    from paceline.torchrun import TorchStore

    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        client = dist.TCPStore("127.0.0.1", int(holder.stdout.readline()), is_master=False)
        threading.Timer(0.3, holder.kill).start()
        with pytest.raises(paceline.ResourceError, match="torch's store no longer answers"):
            world.join(TorchStore(client, "prefix"), 1, 2, "left", None, 60000)


def test_store_of_ones_own_that_says_time_is_up_in_its_own_way():
    """Ranks may start far apart."""
    pytest.importorskip("torch")
    store, found = Own(), []

    def join(rank, wait_s):
        time.sleep(wait_s)
        found.append(world.join(store, rank, 2, "own", None, 30000))

    threads = [threading.Thread(target=join, args=pair) for pair in ((0, 0), (1, 1.5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(comm.rank for comm in found) == [0, 1]
    for comm in found:
        open_worlds.leave(comm)


def test_an_error_of_ones_own_store_is_no_waiting():
    class Bad(Own):
        def get(self, key, timeout):
            raise RuntimeError("no route")

    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="no route"):
        world.join(Bad(), 0, 2, "bad", None, 30000)
