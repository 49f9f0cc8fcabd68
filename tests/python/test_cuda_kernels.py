"""The reduce kernels for GPUs: nvcc compiles them without a warning, where there is one."""

import re
import struct
import subprocess
from pathlib import Path

import pytest
from dev import gpu
from length import in_long

from paceline import _core

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


@in_long
@pytest.mark.limit_s(300)  # for nvcc, which is one process more
def test_for_one_architecture(tmp_path):
    assert b"paceline_float32_sum" in compile_kernels(tmp_path, "-cubin", "-arch=sm_90")


@in_long
@pytest.mark.limit_s(1400)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_for_every_architecture(tmp_path, architecture):
    code = compile_kernels(tmp_path, "-cubin", f"-arch=sm_{architecture}")
    assert b"paceline_bfloat16_sum" in code


@in_long
@pytest.mark.limit_s(900)
def test_ptx_has_every_kernel(tmp_path):
    text = compile_kernels(tmp_path, "-ptx", "-arch=compute_75").decode()
    assert text.count(".visible .entry paceline_") == KERNELS


PTX, MACHINE_CODE = 1, 2
MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)  # of what fatbinary makes; its length follows


def images_in(content):
    """{(kind, architecture)} of the images in the first file of fatbinary's there."""
    begin = content.find(MAGIC)
    assert begin >= 0, "no kernels"
    at = begin + 16
    end = at + struct.unpack_from("<Q", content, begin + 8)[0]
    found = set()
    while at < end:
        kind, _, head, length = struct.unpack_from("<HHIQ", content, at)
        found.add((kind, struct.unpack_from("<I", content, at + 28)[0]))
        at += head + length
    return found


def test_the_module_brings_machine_code_and_ptx():
    """The module is what a wheel has: code for the architectures asked for, PTX for later ones."""
    cache = (ROOT / "build/release/CMakeCache.txt").read_text()
    if re.search(r"^PACELINE_NVCC:.*NOTFOUND", cache, re.MULTILINE):
        pytest.skip("no nvcc: on the PATH, in CUDA_HOME, or in .venv by ./dev gpu")
    asked = re.search(r"^PACELINE_CUDA_ARCHS:STRING=(.*)", cache, re.MULTILINE).group(1).split(";")
    module = Path(_core.__file__).read_bytes()
    assert images_in(module) == {(PTX, 75), *((MACHINE_CODE, int(arch)) for arch in asked)}
