"""The newest torch that pip finds, beside the one of .venv: fetched once into build/torch, where
what depends on torch's minors runs. From PyPI that is 3.2 GB; a line says why it was left out.
"""

import shutil
import time

from dev.process import ROOT, VENV, Failed, environment, run

FOLDER = ROOT / "build/torch"
NEEDED_GIB = 16  # torch and its packages, as they come and unpacked
FILES = ("tests/python/test_minors.py", "tests/python/test_torch.py")
NEEDS = ("torch", "numpy", "click", "rich", "pytest", "scikit-build-core", "nanobind")
KEPT = r"^=+ .*(passed|failed|error|no tests ran).* in [\d.]+s|^skipped \d+: |^FAILED: |^torch "


def test(left_s):
    """Fetch and run; the lines to keep."""
    end = time.monotonic() + left_s
    free_gib = shutil.disk_usage(ROOT).free / 2**30
    if free_gib < NEEDED_GIB:
        return f"skipped: {free_gib:.0f} GiB are free where it would go; it needs {NEEDED_GIB}"
    python = FOLDER / "bin/python"
    try:
        fetch(python, left_s / 2)
    except Failed as failure:
        return f"skipped: it cannot be fetched: {failure}"
    run([python, ROOT / "tools/dev/link.py"], timeout_s=300)
    show = "import torch; print('torch', torch.__version__)"
    kept = [run([python, "-c", show], timeout_s=300, keep=KEPT)]
    kept.append(run([python, "-m", "pytest", "-p", "no:cacheprovider", *FILES],
                    timeout_s=end - time.monotonic(), env=environment(PACELINE_LONG=""),
                    keep=KEPT))  # fmt: skip
    return "\n".join(kept)


def fetch(python, limit_s):
    """Brings build/torch up to date; Failed where it cannot be."""
    if not python.exists():
        run([VENV / "bin/python", "-m", "venv", FOLDER], timeout_s=300)
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile",
         "--upgrade", *NEEDS], timeout_s=limit_s, env=environment())  # fmt: skip
