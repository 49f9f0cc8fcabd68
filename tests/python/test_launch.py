"""launch(): what ranks get, how a run ends, and that nothing is left of it."""

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import launched
import pytest

import paceline
from paceline.launch import _group_lives, held_port, launch

pytestmark = pytest.mark.ranks


def run(*arguments, ranks=2, **keywords):
    """Runs waiting.py; afterwards no process of it may be alive."""
    begin = time.monotonic()
    result = launched.start("waiting.py", ranks, *arguments, **keywords)
    result.seconds = time.monotonic() - begin
    for rank in range(ranks):
        for line in result.text(rank, "stdout").splitlines():
            if line.startswith("pid "):
                assert not _group_lives(int(line.split()[1]))
    return result


def test_all_well():
    result = run(ranks=3)
    assert result.status == 0
    assert result.text(stream="stderr") == "ready\nready\nready"


def test_environment(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, expected in {
        "PACELINE_RANK": "01", "PACELINE_RANKS": "22", "RANK": "01", "WORLD_SIZE": "22",
        "OMP_NUM_THREADS": "11", "MINE": "xx",
    }.items():  # fmt: skip
        result = run(f"say={name}", env={"MINE": "x"})
        assert "".join(result.lines[rank, "stdout"][1] for rank in (0, 1)) == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert run("say=OMP_NUM_THREADS").lines[0, "stdout"][1] == "3"


def test_secret_is_the_ranks_own_and_new():
    said = [run("say=PACELINE_SECRET").lines for _ in range(2)]
    secrets = [[lines[rank, "stdout"][1] for rank in (0, 1)] for lines in said]
    assert all(re.fullmatch("[0-9a-f]{32}", secret) for pair in secrets for secret in pair)
    assert secrets[0][0] == secrets[0][1] != secrets[1][0] == secrets[1][1]


def test_store_is_removed():
    folder = Path(run("say=PACELINE_STORE").lines[0, "stdout"][1])
    assert folder.name.startswith("paceline-") and not folder.exists()


def test_the_port_of_rank_0_is_given_to_nobody_else():
    program = """
import errno, os, socket
port = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
for reuse in (0, 1):
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
        try:
            server.bind(port)
            server.listen()
            print("listens")
        except OSError as error:
            print(error.errno == errno.EADDRINUSE)
"""
    lines = []
    status = launch([sys.executable, "-c", program], 1, on_line=lambda *one: lines.append(one[2]))
    assert status == 0 and lines == ["True", "listens"], lines


def test_first_failure_counts():
    result = run("exit1=7", "sleep0=60", grace_s=0.3)
    assert result.status == 7
    assert result.seconds < 20


def test_others_may_end_by_themselves():
    result = run("exit0=3", "exit1=4", "sleep1=1", grace_s=20)
    assert result.status == 3 and result.seconds < 15


def test_killed_rank():
    assert run("kill0=11", "sleep1=60", grace_s=0.2).status == 128 + 11


def test_rank_that_does_not_listen():
    result = run("exit0=5", "sleep1=60", "ignore=1", grace_s=0.3)
    assert result.status == 5 and result.seconds < 20


def test_children_of_ranks_are_ended():
    assert run("spawn=60", grace_s=0.5).status == 0


def test_time_out(capfd):
    result = run("sleep1=60", timeout_s=1, grace_s=0.3)
    assert result.status == 124 and result.seconds < 20
    assert "not done after 1 s; ending rank 1" in capfd.readouterr().err


def begun(words="", **keywords):
    """A process that launches waiting.py, once its ranks are there."""
    script = launched.RANKS / "waiting.py"
    code = (
        "import sys; from paceline.launch import launch; "
        f"sys.exit(launch(['{script}', 'sleep=60'{words}], 2, prefix=True, grace_s=1))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **keywords,
    )  # fmt: skip
    ready = 0
    for line in process.stderr:  # "[0] ready" and "[1] ready", in either order
        ready += " ready" in line
        if ready == 2:
            break
    return process


def groups_in(out):
    return [int(line.split()[-1]) for line in out.splitlines() if " pid " in line]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_are_passed_on(sign):
    # Tests in the background of a shell are started to ignore some.
    process = begun(
        ", 'say=PACELINE_STORE'", preexec_fn=lambda: signal.signal(sign, signal.SIG_DFL))
    process.send_signal(sign)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + sign
    assert len(groups_in(out)) == 2 and not any(map(_group_lives, groups_in(out)))
    folders = {line.split()[-1] for line in out.splitlines() if "/paceline-" in line}
    assert len(folders) == 1 and not Path(folders.pop()).exists()


def test_what_was_ignored_is_no_signal():
    """Under nohup a terminal may close."""
    process = begun(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_prefix(capfd):
    assert launch([str(launched.RANKS / "waiting.py")], 2, prefix=True) == 0
    captured = capfd.readouterr()
    assert sorted(captured.err.splitlines()) == ["[0] ready", "[1] ready"]
    assert {line[:7] for line in captured.out.splitlines()} == {"[0] pid", "[1] pid"}


def test_direct_output(capfd):
    assert launch(["echo", "hello"], 2) == 0
    assert capfd.readouterr().out == "hello\nhello\n"


def test_who_failed_first_is_said_last(capfd):
    program = "import os, sys, time; r = int(os.environ['PACELINE_RANK']); time.sleep(0 if r == 1" \
              " else 0.5); sys.exit(f'rank {r} ends') if r else None"
    assert launch([sys.executable, "-c", program], 3) == 1
    assert capfd.readouterr().err.splitlines() == [
        "rank 1 ends", "rank 2 ends",
        "paceline run: rank 1 was the first to fail, with exit status 1."]


def test_from_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(run("exit0=9").status))
    thread.start()
    thread.join(60)
    assert found == [9]


@pytest.mark.parametrize(
    ("command", "ranks", "words"),
    [(["x"], 0, "0 ranks"), ([], 1, "no command"), (["/no/such/program"], 2, "cannot be started")],
)
def test_bad_input(command, ranks, words):
    with pytest.raises(paceline.UsageError, match=words):
        launch(command, ranks)


def test_the_port_for_torch_is_free_on_every_address():
    """Gloo's listen on one address each; torch's store then on all of them."""
    with held_port() as port:
        with socket.socket() as gloo, pytest.raises(OSError, match="in use"):
            gloo.bind(("127.0.0.2", port))
        with socket.create_server(("", port), reuse_port=False) as store:
            store.listen()
