"""./dev gpu: builds, tests and measures on a machine with a GPU, or on devices that are feigned.

The reduce kernels are compiled for the GPUs at hand; nvcc is the machine's, or comes from PyPI into
.venv. The tests of src/device/cuda run on the GPU, once more under compute-sanitizer if there is
one. Then collectives are measured between devices, and between virtual ones that share a device,
and written as CSV.
"""

import argparse
import contextlib
import csv
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from dev import build, prepare
from dev.process import ROOT, VENV, Failed, environment, run

# nvcc's packages on PyPI, in one version.
NVCC = ("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime",
        "nvidia-cuda-cccl")
FEIGNED = ROOT / "build/release/tests/fakes/cuda"
RESULTS = ROOT / "bench/results/gpu.csv"
FIELDS = ("date", "gpu", "device", "collective", "bytes", "participants", "devices", "way",
          "algorithm", "time_us_median", "time_us_follow", "bound_us")
SIZES, SHORT_SIZES = "4KiB..1GiB*8", "4KiB,1MiB"
TESTS = (("unit", "*cuda_test.cpp"), ("world", "*cuda_test.cpp"), ("unit", "*device_test.cpp"),
         ("process", "*device*_test.cpp"))

RANKS = ("tests/python/test_device_ranks.py", "tests/python/test_torch_cuda.py")


def parser():
    """The command line."""
    made = argparse.ArgumentParser(prog="./dev gpu", description=__doc__.splitlines()[0])
    made.add_argument("--feigned", action="store_true",
                      help="without a GPU: the tests on a feigned driver, model time")
    made.add_argument("--short", action="store_true", help="two sizes, no sanitizer")
    made.add_argument("--no-build", action="store_true", help="with what has been built")
    made.add_argument("--mps", action="store_true",
                      help="processes also under CUDA's multi-process service, started for them")
    made.add_argument("--csv", type=Path, default=RESULTS, help="where the figures go")
    return made


def find_nvcc():
    """The machine's nvcc, or that of .venv; None."""
    places = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    on_path = shutil.which("nvcc")
    found = [Path(on_path)] if on_path else []
    found += [Path(place) / "bin/nvcc" for place in places if place]
    found += sorted(VENV.glob("lib/python3*/site-packages/nvidia/cu*/bin/nvcc"))
    return next((path for path in found if path.is_file()), None)


def bring_nvcc():
    """An nvcc, from PyPI if there is none."""
    if find_nvcc() is None:
        run([VENV / "bin/python", "-m", "pip", "install", "-q", *NVCC], timeout_s=900)
    found = find_nvcc()
    if found is None:
        raise Failed("no nvcc, also after pip install " + " ".join(NVCC))
    for tool in (*found.parent.iterdir(), *found.parent.parent.glob("nvvm/bin/*")):
        if tool.is_file():
            tool.chmod(tool.stat().st_mode | 0o111)  # wheels of some versions forget it
    return found


def architectures():
    """Those of the GPUs at hand, such as "90"."""
    asked = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"],
                           capture_output=True, text=True)
    found = {line.strip().replace(".", "") for line in asked.stdout.splitlines() if line.strip()}
    if asked.returncode or not found:
        raise Failed("nvidia-smi finds no GPU; ./dev gpu --feigned does without")
    return ";".join(sorted(found))


def settings(feigned):
    """The environment of tests and measurements."""
    if not feigned:
        return environment()
    return environment(LD_LIBRARY_PATH=str(FEIGNED),
                       PACELINE_CUDA_KERNELS=str(ROOT / "src/device/cuda/reduce.cu"))


def test(options):
    """The tests of devices, and once more under compute-sanitizer."""
    env = settings(options.feigned)
    for binary, files in TESTS:
        path = ROOT / "build/release/tests" / binary
        run([path, f"--source-file={files}"], timeout_s=1200, env=env)
    if options.feigned:
        return
    run([VENV / "bin/python", "-m", "pytest", "-q", *RANKS], timeout_s=1200, env=env)
    sanitizer = shutil.which("compute-sanitizer")
    if options.short or not sanitizer:
        return
    # Errors of calls are what some tests are about.
    for words in (("memcheck", "--report-api-errors", "no"), ("racecheck",)):
        run([sanitizer, "--error-exitcode", "9", "--tool", *words,
             ROOT / "build/release/tests/unit", "--source-file=*cuda_test.cpp"],
            timeout_s=1800, env={**env, "PACELINE_SHORT": "1"})


def bench(collective, kind, participants, sizes, env, words=()):
    """Runs `paceline bench --device`: returns date and records. words: more for its command."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        run([VENV / "bin/paceline", "bench", collective, "--device", kind, "-n", str(participants),
             "--sizes", sizes, "--json", file, *words], timeout_s=1800, env=env)
        found = json.loads(file.read_text())
    return found["date"][:10], found["records"]


@contextlib.contextmanager
def multi_process_service(wanted):
    """The environment of processes that share a device at the same time, and not by turns."""
    if not wanted:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        env = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        control = "nvidia-cuda-mps-control"
        run([control, "-d"], timeout_s=30, env=environment(**env))
        try:
            yield env
        finally:
            subprocess.run([control], input="quit\n", text=True, timeout=30,
                           env=environment(**env))


def ways(options, participants):
    """The ways to measure: kind, sizes, more words for `paceline bench`, a suffix for the name, and
    True for CUDA's multi-process service."""
    sizes = SHORT_SIZES if options.short else SIZES
    if options.feigned:
        return (("emulated", sizes, (), "", False), ("peers", SHORT_SIZES, (), "", False))
    # One segment moves least on a device that all share; more segments hide the waits of copies.
    pipeline = ("--algorithm", "chain", "--segments", "1" if participants == 2 else "4")
    return (("cuda", sizes, (), "", False),
            *(("peers", sizes, words, how + (", MPS" if shared else ""), shared)
              for shared in ((False, True) if options.mps else (False,))
              for words, how in (((), ""), (pipeline, ", LP"))))


def measure(options):
    """Rows of the CSV: collectives between 2, 4 and 8 participants, of one process and of one for
    each. Without a GPU model time, and for processes that of emulated devices."""
    env = environment() if options.feigned else settings(False)
    rows = []
    with multi_process_service(options.mps) as service:
        for collective in ("broadcast", "reduce", "allreduce"):
            for participants in (2,) if options.short else (2, 4, 8):
                for kind, sizes, words, added, shared in ways(options, participants):
                    date, records = bench(collective, kind, participants, sizes,
                                          {**env, **(service if shared else {})}, words)
                    rows += rows_of(date, records, participants, added)
    return rows


def rows_of(date, records, participants, added):
    """Rows of one run of `paceline bench`."""
    return [{**{name: record.get(name) for name in FIELDS}, "date": date,
             "participants": participants, "way": record["variant"] + added} for record in records]


def write(rows, path):
    """The figures, a line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()
        for row in rows:
            out.writerow({name: f"{value:.2f}" if isinstance(value, float) else value
                          for name, value in row.items()})
    print(f"wrote {path}", flush=True)


def main(arguments):
    options = parser().parse_args(arguments)
    if not options.no_build:
        prepare.ensure()
        defines = [] if options.feigned else [
            f"-DPACELINE_NVCC={bring_nvcc()}", f"-DPACELINE_CUDA_ARCHS={architectures()}"]
        build.release(*defines)
    test(options)
    write(measure(options), options.csv)
    return 0
