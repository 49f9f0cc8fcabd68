"""`paceline profile -- program`: signals are the program's, whenever they come."""

import os
import signal
import subprocess

import pytest

from paceline.cli import profile


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_program_is_being_started_reaches_it(monkeypatch, sign):
    class Slow(subprocess.Popen):
        def __init__(self, *words, **options):
            super().__init__(*words, **options)
            os.kill(os.getpid(), sign)   # nobody knows the program's number yet

    before = signal.getsignal(sign)
    with monkeypatch.context() as patch:
        patch.setattr(profile.subprocess, "Popen", Slow)
        status = profile.run(["sleep", "30"], dict(os.environ))
    assert status == 128 + sign
    assert signal.getsignal(sign) is before
