"""The reduce kernels for GPUs: nvcc compiles them without a warning, where there is one."""

import subprocess
from pathlib import Path

import pytest
from dev import gpu
from length import in_long_only

ROOT = Path(__file__).parents[2]

ARCHITECTURES = (75, 80, 86, 90, 100, 120)
KERNELS = 7 * 12 + 3 * 8 + 10  # arithmetic of twelve types, bits of eight, truth values


def compile_kernels(folder, *words):
    """What nvcc makes of them, as bytes. Any warning is an error."""
    nvcc = gpu.find_nvcc()
    if nvcc is None:
        pytest.skip("no nvcc: on the PATH, in CUDA_HOME, or in .venv by ./dev gpu")
    made = folder / "kernels"
    command = [nvcc, "-std=c++17", "-O3", "--fmad=false", "-Werror", "all-warnings",
               "-Xcompiler", "-Wall,-Wextra", *words, "-o", made,
               ROOT / "src/device/cuda/reduce.cu"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert found.returncode == 0 and not found.stderr.strip(), found.stderr
    return made.read_bytes()


def test_for_one_architecture(tmp_path):
    assert b"paceline_float32_sum" in compile_kernels(tmp_path, "-cubin", "-arch=sm_90")


@in_long_only
@pytest.mark.limit_s(1400)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_for_every_architecture(tmp_path, architecture):
    code = compile_kernels(tmp_path, "-cubin", f"-arch=sm_{architecture}")
    assert b"paceline_bfloat16_sum" in code


@pytest.mark.limit_s(900)
def test_ptx_has_every_kernel(tmp_path):
    text = compile_kernels(tmp_path, "-ptx", "-arch=compute_75").decode()
    assert text.count(".visible .entry paceline_") == KERNELS
