"""tools/dev/process.py: what a command of `./dev` has started ends with it, in whatever way."""

import io
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dev import process, progress

TOOLS = Path(__file__).parents[2] / "tools"
SLOW = "import time; print('under way', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLOW}"
# In a session of its own, as ranks and daemons are, and with no parent.
AWAY = ("import subprocess, sys, time; subprocess.Popen(['sh', '-c', 'setsid \"$0\" -c \"$1\" &', "
        f"sys.executable, {STUBBORN!r}]); time.sleep(60)")
ENDS = [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGINT, -signal.SIGINT)]
CALLER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)   # whoever runs the tests may ignore it
if {hangs_up}:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)   # and this
sys.path.insert(0, {tools!r})
from dev import process
process.GRACE_S = 1
class Slow(process.subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        time.sleep({pause_s})
process.subprocess.Popen = Slow
class SlowTimer(process.threading.Timer):
    def start(self):
        super().start()
        time.sleep({watch_s})
process.threading.Timer = SlowTimer
try:
    process.run([sys.executable, "-c", {program!r}], timeout_s={timeout_s}, keep={keep!r})
except process.Failed as failure:
    sys.exit(str(failure))
"""


def caller_of(program, timeout_s=60, keep=None, hangs_up=True, pause_s=0, watch_s=0):
    """Somebody who runs `program`, once that is under way."""
    script = CALLER.format(tools=str(TOOLS), program=program, timeout_s=timeout_s, keep=keep,
                           hangs_up=hangs_up, pause_s=pause_s, watch_s=watch_s)
    caller = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert caller.stdout.readline().startswith("+ ")
    assert caller.stdout.readline() == "under way\n"
    return caller


def end_of(caller):
    """(exit status, what stands on stderr), once nobody has its pipes any more."""
    try:
        _, errors = caller.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        raise AssertionError("what it started has outlived it") from None
    return caller.returncode, errors


@pytest.mark.parametrize("program", [SLOW, STUBBORN, AWAY], ids=["slow", "stubborn", "away"])
@pytest.mark.parametrize("sign, status", ENDS)
def test_what_was_started_ends_with_us(program, sign, status):
    caller = caller_of(program, keep="." if program == STUBBORN else None)
    caller.send_signal(sign)
    assert end_of(caller)[0] == status


@pytest.mark.parametrize("pause", ["pause_s", "watch_s"])
@pytest.mark.parametrize("sign, status", ENDS)
def test_what_is_being_started_ends_with_us(sign, status, pause):
    caller = caller_of(SLOW, **{pause: 1})   # it is under way; its start, its limit's are not done
    caller.send_signal(sign)
    assert end_of(caller)[0] == status


def test_impatience_does_not_cut_the_end_short():
    caller = caller_of(STUBBORN)
    for _ in range(3):
        caller.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    assert end_of(caller)[0] == 128 + signal.SIGTERM


def test_what_is_late_ends():
    status, errors = end_of(caller_of(STUBBORN, timeout_s=5))
    assert status == 1 and errors.startswith("no end after 5 s: ")


def test_nohup_holds():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)   # what is started inherits it
    try:
        caller = caller_of("import time; print('under way', flush=True); time.sleep(1)",
                           hangs_up=False)
    finally:
        signal.signal(signal.SIGHUP, before)
    caller.send_signal(signal.SIGHUP)
    assert end_of(caller)[0] == 0


def shown(lines, terminal=False):
    """(what a progress bar prints of a build's lines, the last of them)"""
    out = io.StringIO()
    out.isatty = lambda: terminal
    tail = progress.show(io.StringIO("".join(f"{line}\n" for line in lines)), "compiling", out)
    return out.getvalue(), tail


def test_progress_bar():
    steps = [f"[{n}/8] Building part{n}.cpp.o" for n in range(1, 9)]
    text, tail = shown(["-- configured", *steps])
    assert [line[-5:] for line in text.splitlines()] == [" 25 %", " 50 %", " 75 %", "100 %"]
    assert "part" not in text and tail.endswith(steps[-1]) and "-- configured" in tail
    on_terminal, _ = shown(steps, terminal=True)
    assert on_terminal.count("\r") == 8 and on_terminal.count("\n") == 1
    assert f"[{'#' * 5}{'.' * 35}]  12 %" in on_terminal


def test_progress_bar_without_steps():
    assert shown(["ninja: no work to do."]) == ("", "ninja: no work to do.")
    assert shown(["[0/0] nothing"])[0] == ""


def test_a_failed_build_shows_what_the_bar_has_hidden():
    program = "print('[1/2] first'); print('error: no such header'); raise SystemExit(3)"
    with pytest.raises(process.Failed, match="exit status 3") as failure:
        process.run([sys.executable, "-c", program], timeout_s=30, bar="compiling")
    assert "no such header" in failure.value.unseen
