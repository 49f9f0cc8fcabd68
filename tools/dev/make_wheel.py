"""Makes wheels of what `./dev build` has built, without compiling anything a second time.

Run by .venv's Python. Each holds what pip makes of its project, Paceline or the laboratory: the
package, and what CMake installs for a wheel (the components in pyproject.toml).
"""

import argparse
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from scikit_build_core.build import prepare_metadata_for_build_wheel
from scikit_build_core.settings.skbuild_read_settings import SettingsReader

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = (ROOT, ROOT / "bench")
LIMIT_S = 60


def fill(folder, project):
    """Puts into a folder what a project's wheel unpacks; returns the name of its metadata."""
    os.chdir(project)  # scikit-build-core reads pyproject.toml there
    settings = SettingsReader.from_file(project / "pyproject.toml", {}).settings
    for package in settings.wheel.packages:
        shutil.copytree(project / package, folder / Path(package).name,
                        ignore=shutil.ignore_patterns("__pycache__", "_*.so"))
    cmake = Path(sys.executable).with_name("cmake")
    for component in settings.install.components:
        subprocess.run([cmake, "--install", ROOT / "build/release", "--component", component,
                        "--prefix", folder], check=True, timeout=LIMIT_S,
                       stdout=subprocess.DEVNULL)
    return prepare_metadata_for_build_wheel(str(folder))


def record(path, folder):
    """Its row in RECORD."""
    content = path.read_bytes()
    sha = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path.relative_to(folder)},sha256={sha},{len(content)}\n"


def make(out, project):
    """Writes a project's wheel into a folder; returns its path."""
    with tempfile.TemporaryDirectory(prefix="paceline-wheel-") as name:
        folder = Path(name)
        info = folder / fill(folder, project)
        (tag,) = (line.split()[1] for line in (info / "WHEEL").read_text().splitlines()
                  if line.startswith("Tag:"))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        rows = [*(record(path, folder) for path in files), f"{info.name}/RECORD,,\n"]
        (info / "RECORD").write_text("".join(rows))
        out.mkdir(parents=True, exist_ok=True)
        wheel = out / f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in [*files, info / "RECORD"]:
                archive.write(path, path.relative_to(folder))
    return wheel


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="./dev wheel", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/wheel"), help="a folder")
    target = parser.parse_args().out.resolve()
    for each in PROJECTS:
        print(f"Wrote {make(target, each)}")
