"""Reads files that other programs may have written or damaged: checks size and contents."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paceline.errors import UsageError

MOST_BYTES = 64 << 20
SHOWN = 200  # characters of what is wrong


def read_json(path: str | Path, what: str, check: Callable[[Any], Any]) -> Any:
    """Reads a JSON file, and returns `check(value)`. Raises UsageError, which names the file, if it
    is no `what`: missing, no plain file, too long, no JSON, or refused by `check` (a ValueError).
    """
    return read_text(path, what, lambda text: check(json.loads(text)))


def read_text(path: str | Path, what: str, check: Callable[[str], Any]) -> Any:
    """Like read_json, for a file of any text."""
    try:
        return check(_text_of(path))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        shown = why[:SHOWN] + ("..." if len(why) > SHOWN else "")
        raise UsageError(f"{path} is no {what} ({shown}).") from error


def _text_of(path: str | Path) -> str:
    # A plain open or read of a pipe would wait.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no plain file")
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise ValueError(f"it is longer than {MOST_BYTES >> 20} MiB")
    return found.decode("utf-8")


def member(fields: Any, name: str, kind: type, fallback: Any = ...) -> Any:
    """fields[name], checked to be of this kind; `fallback` if it is missing."""
    if not isinstance(fields, dict):
        raise ValueError(f"it has {_shown(fields)} in place of an object with {name}")
    value = fields.get(name, fallback)
    if value is ...:
        raise ValueError(f"it has no {name}")
    is_well = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not is_well or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {_shown(value)}")
    return value


def whole(fields: Any, name: str, least: int, most: int, fallback: Any = ...) -> int:
    """Like member, for a whole number from `least` to `most`."""
    value = member(fields, name, int, fallback)
    if not least <= value <= most:
        raise ValueError(f"{name} is {_shown(value)}; it must be {least} to {most}")
    return value


def number(fields: Any, name: str, fallback: Any = ...) -> float:
    """Like member, for a finite number."""
    value = member(fields, name, float, fallback)
    if not abs(value) <= 1e300:  # also what is no number
        raise ValueError(f"{name} is {_shown(value)}")
    return float(value)


def wholes(fields: Any, name: str, least: int, most: int, fallback: Any = ...) -> list:
    """Like member, for a list of whole numbers from `least` to `most`."""
    values = member(fields, name, list, fallback)
    for value in values:
        whole({name: value}, name, least, most)
    return values


def _shown(value: Any) -> str:
    """A value as text; it may be anything, also an integer of more digits than Python prints."""
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of more than 30 digits"
    text = repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__
    return text if len(text) <= 40 else text[:40] + "..."
