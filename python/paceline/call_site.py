"""Finds a thread's place in the program; called only when an error is made: calls pay nothing."""

import os
import sys
import threading

_OWN = os.path.dirname(__file__) + os.sep


def here() -> str:
    """'train.py:41 in step' for the innermost line outside of this package and of torch.

    A program that is all torch's (a test suite of it, say) gets the line outside of this package.
    """
    torch = sys.modules.get("torch")
    theirs = os.path.dirname(getattr(torch, "__file__", None) or "")
    outside = []
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        # Skips threading.py: the line that starts a thread would seem to be one of ours.
        if not file.startswith(_OWN) and file != threading.__file__:
            outside.append(frame)
            if not theirs or not file.startswith(theirs + os.sep):
                return _line(frame)
        frame = frame.f_back
    return _line(outside[0]) if outside else ""


def _line(frame) -> str:
    code = frame.f_code
    return f"{_short(code.co_filename)}:{frame.f_lineno} in {code.co_name}"


def _short(path: str) -> str:
    """The path relative to the working directory, if that is shorter."""
    try:
        seen = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if seen.startswith("..") or len(seen) > len(path) else seen
