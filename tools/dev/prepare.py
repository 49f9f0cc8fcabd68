"""Make .venv hold what building and testing need. Skipped while a stamp says that it does."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from dev.process import ROOT, VENV, Failed, environment, run

TORCH = "2.13.0"
STAMP = VENV / "stamp"
PROJECTS = ("pyproject.toml", "bench/pyproject.toml")

TORCH_NOTICE = f"""
Installing torch {TORCH}. A machine that gets it from PyPI (Linux, x86-64) downloads 526 MB, and
about 2.7 GB of CUDA packages with it. The build without CUDA is far smaller and does here too:
    PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu ./dev setup
"""


def has_headers():
    return Path(sysconfig.get_paths()["include"], "Python.h").exists()


def has_doctest():
    roots = [Path("/usr/include"), Path("/usr/local/include")]
    return any((root / "doctest/doctest.h").exists() for root in roots)


# Tools that pip cannot bring: name, test, Debian package, True if there is another way to get it.
SYSTEM = (
    ("a C++ compiler", lambda: shutil.which(os.environ.get("CXX", "c++")), "g++", False),
    ("Python's venv", lambda: importlib.util.find_spec("ensurepip"), "python3-venv", False),
    ("Python's headers", has_headers, "python3-dev", False),
    ("doctest", has_doctest, "doctest-dev", True),  # else CMake downloads it
    ("ccache", lambda: shutil.which("ccache"), "ccache", True),  # else every clone compiles all
)


def ensure(torch=True):
    """Bring .venv up to date with PROJECTS and with this script; torch with it, or not."""
    stamp = wanted_stamp()
    kept = STAMP.read_text() if STAMP.exists() else ""
    if kept == stamp or (kept == f"{stamp} without torch" and not torch):
        return
    for name, present, package, optional in SYSTEM:
        if not present():
            install_system(package)
        importlib.invalidate_caches()
        if not optional and not present():
            raise Failed(f"{name} is missing; on Debian or Ubuntu: apt-get install {package}")
    run([sys.executable, "-m", "venv", VENV], timeout_s=300)
    # Python compiles a module when it is first imported; most of torch's never are.
    pip = [VENV / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
           "--no-compile"]
    if torch and torch_version() != TORCH:
        print(TORCH_NOTICE, flush=True)
        run([*pip, f"torch=={TORCH}"], timeout_s=3600)
    wanted = [line for line in requirements() if torch or not line.startswith("torch")]
    run([*pip, *wanted], timeout_s=1200)
    STAMP.write_text(stamp if torch else f"{stamp} without torch")


def wanted_stamp():
    digest = hashlib.sha256(sys.version.encode() + str(ROOT).encode())
    for path in (*(ROOT / name for name in PROJECTS), ROOT / "dev", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def install_system(package):
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    env = environment(DEBIAN_FRONTEND="noninteractive")
    install = ["apt-get", "install", "-y", "--no-install-recommends", package]
    try:
        run(install, timeout_s=600, env=env)
    except Failed:  # a fresh image has no package lists yet
        try:
            run(["apt-get", "update"], timeout_s=300, env=env)
            run(install, timeout_s=600, env=env)
        except Failed as failure:
            print(failure, flush=True)


def ask_venv(program):
    """The output of `program` in .venv's Python; empty if it fails."""
    answer = subprocess.run(
        [VENV / "bin/python", "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    return answer.stdout.strip() if answer.returncode == 0 else ""


def torch_version():
    version = ask_venv("import importlib.metadata as m; print(m.version('torch'))")
    return version.split("+")[0]  # 2.13.0+cpu is 2.13.0


def requirements():
    """Everything that pyproject.toml and the laboratory's name: versions stand nowhere else.

    But the extra mpi: its launcher would hide those of the MPIs that the tests run over.
    """
    # Python 3.10 has no tomllib, but pip brings one.
    listing = ask_venv(
        "try: import tomllib\n"
        "except ImportError: from pip._vendor import tomli as tomllib\n"
        f"for file in {PROJECTS}:\n"
        "    t = tomllib.load(open(file, 'rb')); p = t['project']\n"
        "    o = p['optional-dependencies']\n"
        "    extras = sum((o[name] for name in o if name != 'mpi'), [])\n"
        "    every = t['build-system']['requires'] + p['dependencies'] + extras\n"
        "    print('\\n'.join(r for r in every if not r.startswith('paceline')))"
    )
    if not listing:
        raise Failed("the pyproject.toml files could not be read")
    return listing.splitlines()
