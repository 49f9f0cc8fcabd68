"""`./dev docs --site`: the pages as HTML, in build/site. Sphinx makes them, out of build/sphinx."""

import shutil

from dev.process import ROOT, VENV, environment, run

SITE, SPHINX = ROOT / "build/site", ROOT / "build/sphinx"
WANTED = ROOT / "docs/requirements.txt"


def make():
    """Fails for each dead link, and for each page that the navigation lacks."""
    fetch()
    run([VENV / "bin/python", "tools/dev/docs.py"], timeout_s=600)
    shutil.rmtree(SITE, ignore_errors=True)
    run([VENV / "bin/python", "-m", "sphinx", "--quiet", "--fail-on-warning", "--fresh-env",
         "--doctree-dir", ROOT / "build/site-read", "--conf-dir", ROOT / "docs", ROOT, SITE],
        timeout_s=600, env=environment(PYTHONPATH=str(SPHINX)))  # fmt: skip
    shutil.copy(SITE / "README.html", SITE / "index.html")
    print(f"Wrote {SITE / 'index.html'}")


def fetch():
    """Brings build/sphinx up to date; .venv stays as it is."""
    stamp, wanted = SPHINX / "stamp", WANTED.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(SPHINX, ignore_errors=True)
    run([VENV / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--target", SPHINX, "-r", WANTED], timeout_s=600)  # fmt: skip
    stamp.write_text(wanted, encoding="utf-8")
