"""torch's own tests of process groups pass over Paceline. Minutes: only in the long run."""

import os
import re
import socket
import subprocess
import sys

import launched
import pytest

LEAST_PASSED = 88  # the others want GPUs, other backends or larger worlds


@pytest.mark.skipif(not os.environ.get("PACELINE_LONG"), reason="a minute each; PACELINE_LONG=1")
@pytest.mark.parametrize("ranks", [3, 4])
def test_suite_of_torch(ranks, tmp_path):
    for module in ("torch", "expecttest", "psutil"):
        pytest.importorskip(module)
    for folder in ("barrier", "test_dir"):
        (tmp_path / folder).mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {
        **os.environ, "WORLD_SIZE": str(ranks), "TEMP_DIR": str(tmp_path),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "PACELINE_TIMEOUT_MS": "30000",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore",
         str(launched.RANKS / "conformance.py")],
        env=env, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    summary = done.stdout.splitlines()[-1]
    failed = re.findall(r"^FAILED \S*::(\S+)", done.stdout, re.MULTILINE)
    assert not failed and done.returncode == 0, (summary, failed, done.stdout[-3000:])
    assert int(re.search(r"(\d+) passed", summary)[1]) >= LEAST_PASSED, summary
