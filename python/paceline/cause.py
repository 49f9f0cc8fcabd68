"""Tells `paceline run` why its ranks failed.

A rank writes the exception that ends it to a folder, and the launcher prints the first one last.
If several ranks have the same exception, only the first shows it. A UsageError is shown as a
sentence, every other exception with its traceback.
"""

import contextlib
import functools
import hashlib
import io
import os
import sys
import traceback
from pathlib import Path

from paceline import call_site
from paceline.errors import RefusalError, UsageError

SENTENCE = "paceline: "  # begins what is shown instead of a traceback


def folder_in(store: str) -> Path:
    """The folder. A rank tells its launcher nothing if there is none."""
    return Path(store, "ended")


def install() -> None:
    """Writes the exception that ends this rank, if a launcher has made the folder."""
    store, rank = os.environ.get("PACELINE_STORE"), os.environ.get("PACELINE_RANK")
    if store and rank and folder_in(store).is_dir():
        sys.excepthook = functools.partial(_tell, folder_in(store), rank, sys.excepthook)


def last_words(store: str, ranks: int, ended: int) -> str | None:
    """The launcher's sentence. None if the first rank to end wrote nothing, as after a signal;
    empty if its output already has the exception."""
    files = [file for file in folder_in(store).glob("*") if file.name.isdecimal()]
    told = sorted((file.stat().st_mtime_ns, int(file.name), file.read_text()) for file in files)
    if ended not in {rank for _, rank, _ in told}:
        return None
    _, rank, text = told[0]
    alike = sum(text == other for _, _, other in told)
    if alike == ranks and text.startswith(SENTENCE):
        return ""
    others = "" if alike == 1 else f", and {alike - 1} {'others' if alike > 2 else 'other'} alike"
    return f"rank {rank} was the first to fail{others}: {text.removeprefix(SENTENCE)}"


def _tell(folder, rank, before, kind, error, trace):
    """The hook: `before` is the one that was there, which may do more than show."""
    with contextlib.redirect_stderr(io.StringIO()) as usual:
        before(kind, error, trace)
    shown, full = usual.getvalue(), "".join(traceback.format_exception(kind, error, trace))
    text = f"{kind.__name__}: {error}".partition("\n")[0]
    place = call_site.of(trace).removesuffix(" in <module>")
    place = f" ({place})" if place else ""
    if isinstance(error, (UsageError, RefusalError)):
        full = text = f"{SENTENCE}{error}"
        shown = f"{text}{place}\n"
    try:
        if isinstance(error, Exception):  # Ctrl-C is no failure
            (folder / rank).write_text(f"{text}{place}")
        (folder / f"shown-{hashlib.sha256(full.encode()).hexdigest()}").touch(exist_ok=False)
    except FileExistsError:
        return
    except OSError:  # the launcher has gone
        pass
    # At once, so that lines of several ranks do not mix.
    print(shown, end="", file=sys.stderr, flush=True)
