"""Frameworks that people train with, as they stand, on two ranks: the losses are gloo's."""

import os
import subprocess
import sys

import launched
import pytest
from length import param

pytestmark = pytest.mark.ranks

pytest.importorskip("torch")

MODULES = {"lightning": "lightning", "accelerate": "accelerate", "trainer": "transformers",
           "deepspeed": "deepspeed", "keras": "keras", "ray": "ray"}


def losses(framework, backend, replaced, folder):
    """Who served the ranks, and the losses of each, in the order of their text."""
    command = [str(launched.RANKS / "frameworks.py"), framework, backend]
    if framework != "ray":  # which starts its workers itself
        command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *command]
    env = {
        **os.environ, **launched.limits(), "PACELINE_REPLACE": replaced, "RESULTS": str(folder),
        "TORCH_DEVICE_BACKEND_AUTOLOAD": "1", "PYTHONPATH": str(launched.RANKS),
        "HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "true", "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    found = sorted(line.split(": ") for line in done.stdout.splitlines() if ": 0x" in line)
    assert found, done.stdout + done.stderr[-5000:]
    return {served for served, _ in found}, [
        [float.fromhex(word) for word in text.split()] for _, text in found]


@pytest.mark.parametrize("framework, backend, replaced", [
    ("lightning", "paceline", "off"), param("lightning", "gloo", "gloo"),
    param("accelerate", "gloo", "gloo"), param("trainer", "gloo", "gloo"),
    param("deepspeed", "paceline", "off"), param("keras", "paceline", "off"),
    param("ray", "paceline", "off"), param("ray", "gloo", "gloo"),
])  # fmt: skip
def test_losses_are_those_of_gloo(framework, backend, replaced, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")  # Keras imports it with itself
    module = MODULES[framework]
    pytest.importorskip(module, reason=f"{module} is not installed (pip install {module})")
    served, ours = losses(framework, backend, replaced, tmp_path)
    assert served == {"PacelineGroup"}
    served, theirs = losses(framework, "gloo", "off", tmp_path)
    assert served == {"ProcessGroup"}
    assert len(ours) == len(theirs) == (1 if framework == "ray" else 2)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, rel=1e-6) and len(mine) >= 4
