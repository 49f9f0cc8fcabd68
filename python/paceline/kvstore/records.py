"""Records of training steps, which `paceline train record` writes: the keys of a network, the times
at which the forward pass needs them, and the times at which their gradients are ready."""

from pathlib import Path

from paceline.errors import UsageError
from paceline.files import member, number, read_json

RECORDED = Path(__file__).with_name("recorded")


def read(name):
    """The record of a network, by name or file. Raises UsageError if there is none."""
    path = Path(name) if name.endswith(".json") else RECORDED / f"{name}.json"
    if not path.exists() and not name.endswith(".json"):
        known = ", ".join(sorted(file.stem for file in RECORDED.glob("*.json")))
        raise UsageError(f"train: there is no record of {name}; there are {known}. `paceline train "
                         "record` makes others.")
    return read_json(path, "record of a training step", checked)


def checked(fields):
    """The record. Raises ValueError for other contents."""
    found = {name: number(fields, name) for name in ("forward_s", "backward_s")}
    keys = member(fields, "keys", list)
    for row in keys:
        if not (isinstance(row, list) and len(row) == 4 and isinstance(row[0], str)
                and isinstance(row[1], int) and row[1] > 0
                and all(isinstance(at, float | int) and at >= 0 for at in row[2:])):
            raise ValueError(f"keys holds {row!r} where [name, elements, needed_s, ready_s] is due")
    if not keys or min(found.values()) <= 0:
        raise ValueError("it has no keys, or takes no time")
    return {**found, "keys": keys}


def ready_s(record, compute_s):
    """Times at which gradients are ready (s, from the start of backward) by key, in a step that
    computes for `compute_s`: all times are scaled alike."""
    scale = compute_s / (record["forward_s"] + record["backward_s"])
    return [min(scale * row[3], scale * record["backward_s"]) for row in record["keys"]]
