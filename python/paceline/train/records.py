"""What is known of networks without torch: their published sizes, and records of training steps,
as `paceline train record` writes them."""

from pathlib import Path

from paceline.errors import UsageError
from paceline.files import member, number, read_json

RECORDED = Path(__file__).with_name("recorded")
# parameters, flops of a forward pass and picture: table 2 of Barrachina and others.
PUBLISHED = {"alexnet": (62_378_344, 2_270_512_192), "resnet50": (25_636_712, 8_178_368_512),
             "vgg11": (132_863_336, 15_218_180_096), "resnet110": (1_747_898, 506_832_128)}
PUBLISHED_MB = {"alexnet": 256, "googlenet": 51}  # of parameters: table 2 of Wang and others


def read(name):
    """The record of a model, by its name or its file. Raises UsageError."""
    path = Path(name) if name.endswith(".json") else RECORDED / f"{name}.json"
    if not path.exists() and not name.endswith(".json"):
        known = ", ".join(sorted(file.stem for file in RECORDED.glob("*.json")))
        raise UsageError(f"train: there is no record of {name}; there are {known}, and `paceline "
                         "train record` makes more.")
    return read_json(path, "record of a training step", checked)


def checked(fields):
    """The record; ValueError where it is none."""
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
