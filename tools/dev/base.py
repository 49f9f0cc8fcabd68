"""Selects the proofs and sanitizers of `./dev test`: those of code changed since a base.

`tests/base` names the base, a commit whose `./dev test` was green; `./dev base` moves it. In a
clean clone the answer depends on two commits alone. If git does not know the base, all run.
"""

import re
import subprocess

from dev.process import ROOT, Failed

FILE = ROOT / "tests/base"
CODE = r".*\.(c|cpp|h|hpp|def)$"
BUILD = r"(^|/)CMakeLists\.txt$|^CMakePresets\.json$|\.cmake$"
# The proofs are made of these files, named by how their paths begin.
PROVEN = ("src/ir/", "src/shapes/", "src/coll/", "src/verify/", "src/arrival/claims",
          "src/base/copy_bytes", "src/base/error", "src/base/hazard", "src/base/nearest",
          "src/base/processors", "src/base/random", "src/base/str", "src/transport/leaving",
          "src/transport/staging", "src/transport/transport", "tests/main", "tests/world/verify",
          "tests/world/orders", "tests/world/canonical_proofs", "tests/world/claims",
          "tests/world/mutate", "tests/world/worlds")  # fmt: skip
# The code that each checks. The thread sanitizer has nothing to tell of a single thread.
CHECKED = {
    "proofs": rf"^({'|'.join(PROVEN)}){CODE}|{BUILD}",
    "asan": rf"^(src|include|tests)/{CODE}|{BUILD}",
    "tsan": r"^(src/(arrival|engine|graph|runtime|machine|bootstrap|transport|tasks|store|device)"
            rf"|tests/(process|world))/{CODE}|{BUILD}",
}


def due(changed):
    """Those of CHECKED that these changed files concern; all of them if `changed` is None."""
    return [name for name, checked in CHECKED.items()
            if changed is None or any(re.search(checked, path) for path in changed)]  # fmt: skip


def changed_since(base):
    """The files that differ from this commit, uncommitted ones too; None if git cannot say."""
    differ = git("diff", "--name-only", "--no-renames", base, "--") if base else None
    new = git("ls-files", "--others", "--exclude-standard")
    return None if differ is None or new is None else [*differ.splitlines(), *new.splitlines()]


def read():
    """The base; empty if there is none."""
    return FILE.read_text().strip() if FILE.exists() else ""


def move(name):
    """Make this commit the base. Failed if it is not part of HEAD's history."""
    commit = (git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") or "").strip()
    if not commit or git("merge-base", "--is-ancestor", commit, "HEAD") is None:
        raise Failed(f"{name} is no commit of this branch")
    FILE.write_text(f"{commit}\n")
    return commit


def git(*words):
    """The output of git; None if it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
