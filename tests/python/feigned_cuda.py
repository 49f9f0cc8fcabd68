"""A CUDA driver without a GPU, which the C++ build makes beside its tests."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "build/release/tests/fakes/cuda/libcuda.so.1"


def settings(words=""):
    """What a process needs in its environment to find it.

    words: what the driver is like (tests/fakes/cuda.cpp).
    """
    if not LIBRARY.exists():
        pytest.skip("no feigned CUDA driver has been built (./dev build)")
    return {
        "LD_LIBRARY_PATH": str(LIBRARY.parent), "FEIGNED_CUDA": words,
        # Anything serves: its kernels are part of it.
        "PACELINE_CUDA_KERNELS": str(ROOT / "src/device/cuda/reduce.cu"),
    }  # fmt: skip
