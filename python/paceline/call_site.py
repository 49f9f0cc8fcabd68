"""Finds the line of the program that made a call. Only errors call it: calls pay nothing."""

import os
import sys
import threading
import traceback

_OWN = os.path.dirname(__file__) + os.sep


def here() -> str:
    """'train.py:41 in step' for this thread's innermost line outside of this package and of torch.

    If all lines are torch's, as in its own tests: the innermost line outside of this package.
    """
    return _innermost(traceback.walk_stack(sys._getframe(1)))


def of(trace) -> str:
    """The same for the line from which an exception came."""
    return _innermost(reversed([*traceback.walk_tb(trace)]))


def _innermost(frames) -> str:
    torch = sys.modules.get("torch")
    theirs = os.path.dirname(getattr(torch, "__file__", None) or "")
    outside = []
    for frame, number in frames:
        file = frame.f_code.co_filename
        # Skips threading.py: the line that starts a thread would seem to be one of ours.
        if not file.startswith(_OWN) and file != threading.__file__:
            outside.append((frame, number))
            if not theirs or not file.startswith(theirs + os.sep):
                return _line(frame, number)
    return _line(*outside[0]) if outside else ""


def _line(frame, number) -> str:
    code = frame.f_code
    return f"{_short(code.co_filename)}:{number} in {code.co_name}"


def _short(path: str) -> str:
    """The path relative to the working directory, if that is shorter."""
    try:
        seen = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if seen.startswith("..") or len(seen) > len(path) else seen
