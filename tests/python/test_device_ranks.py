"""paceline.device on several ranks: the checks of tests/python/ranks/device_checks.py."""

import feigned_cuda
import launched
import pytest
from length import each

from paceline import _core

pytestmark = pytest.mark.ranks

SHAPES = [(2, None), (3, "0,1,1")]


@pytest.mark.parametrize("name", [*launched.names("device_checks"), "end"])
@each("ranks", [1, 2, 3], [4])
def test_emulated(name, ranks):
    launched.expect("device_checks", name, ranks, ("DEVICES", "emulated"))


@pytest.mark.parametrize("name", [*launched.names("device_checks"), "end"])
@each("ranks", [2], [1, 3, 4])
def test_feigned_cuda(name, ranks):
    """The CUDA implementation on a driver that feigns GPUs: arrays that the host cannot touch."""
    settings = (("DEVICES", "cuda"), *feigned_cuda.settings("devices=2").items())
    launched.expect("device_checks", name, ranks, *settings)


@pytest.mark.parametrize("name", [*launched.names("device_checks"), "end"])
@each("ranks", [1, 2, 3], [])
def test_cuda(name, ranks):
    """On a GPU, which ranks may share."""
    if trouble := _core.trouble_with_cuda():
        pytest.skip(f"no CUDA here: {trouble}")
    launched.expect("device_checks", name, ranks, ("DEVICES", "cuda"))
