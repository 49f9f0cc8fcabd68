"""Make .venv see python/paceline as an installed package, without building it a second time.

Run by .venv's Python. An editable install would compile its own copy of the core, so this writes
what such an install consists of: a path file, the metadata (entry points!) and the command.
"""

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


def link():
    site = Path(sysconfig.get_paths()["purelib"])
    for old in site.glob("paceline-*.dist-info"):
        shutil.rmtree(old)
    info = site / prepare_metadata_for_build_wheel(str(site))

    path = site / "paceline.pth"
    path.write_text(f"{ROOT / 'python'}\n")
    command = Path(sys.executable).parent / "paceline"
    command.write_text(COMMAND.format(python=sys.executable))
    command.chmod(command.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)

    # With a RECORD, `pip install .` and `pip uninstall paceline` can replace all this.
    (info / "INSTALLER").write_text("dev\n")
    (info / "RECORD").touch()
    files = [path, command, *(file for file in info.rglob("*") if file.is_file())]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


if __name__ == "__main__":
    link()
