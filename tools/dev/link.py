"""Make .venv see python/paceline and bench/paceline_bench as installed packages, without building
them a second time.

Run by .venv's Python. An editable install would compile its own copy of the core, so this writes
what such an install consists of: a path file, the metadata (entry points!) and the command.
"""

import os
import shutil
import stat
import sys
import sysconfig
from pathlib import Path

from scikit_build_core.build import prepare_metadata_for_build_wheel

ROOT = Path(__file__).resolve().parents[2]

COMMAND = """#!{python}
import sys
from paceline.cli import main
sys.exit(main())
"""


def link(name, project, folder, *more):
    """The distribution `name` of the folder `project`: its packages lie in `folder`."""
    site = Path(sysconfig.get_paths()["purelib"])
    for old in site.glob(f"{name}-*.dist-info"):
        shutil.rmtree(old)
    os.chdir(project)  # scikit-build-core reads pyproject.toml there
    info = site / prepare_metadata_for_build_wheel(str(site))
    path = site / f"{name}.pth"
    path.write_text(f"{folder}\n")

    # With a RECORD, `pip install .` and `pip uninstall` can replace all this.
    (info / "INSTALLER").write_text("dev\n")
    (info / "RECORD").touch()
    files = [path, *more, *(file for file in info.rglob("*") if file.is_file())]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def command():
    """The command `paceline`; returns its file."""
    file = Path(sys.executable).parent / "paceline"
    file.write_text(COMMAND.format(python=sys.executable))
    file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return file


if __name__ == "__main__":
    link("paceline", ROOT, ROOT / "python", command())
    link("paceline_bench", ROOT / "bench", ROOT / "bench")
