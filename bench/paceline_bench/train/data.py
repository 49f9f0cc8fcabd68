"""Training data: digits of scikit-learn, CIFAR-10, ImageNet folders, a text, or chance."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from paceline.errors import UsageError
from torch.nn import functional

from paceline_bench.networks import gpt

KINDS = ("digits", "synthetic")
TEST_SHARE = 0.2
SYNTHETIC = 2048  # pictures, of which a fifth is for validation
RECORD, SIDE = 3073, 32  # bytes of CIFAR-10's binary form: a label, and three planes
TRAINING = [f"data_batch_{n}.bin" for n in range(1, 6)]
VALIDATION = ["test_batch.bin"]
ENDINGS = (".jpeg", ".jpg", ".png")


@dataclass
class Data:
    """`pictures` and `labels` of training; `held` and `held_labels` are for validation.

    Pictures are tensors (count, channels, side, side) of bytes or floats, lists of files, or (for a
    text) bytes of which each batch takes pieces."""

    about: str  # for people: the data, and if it is real
    is_real: bool
    classes: int
    pictures: object
    labels: torch.Tensor
    held: object
    held_labels: torch.Tensor

    def __len__(self):
        return len(self.labels)

    def batch(self, chosen, side, held=False):
        """(inputs, labels) of these numbers; pictures get `side`, three channels, unit spread."""
        pictures, labels = (self.held, self.held_labels) if held else (self.pictures, self.labels)
        labels = labels[chosen]
        if not side:
            text = pictures[chosen]
            return text[:, :-1].long(), text[:, 1:].long()
        if isinstance(pictures, list):
            return torch.stack([decoded(pictures[i], side) for i in chosen.tolist()]), labels
        found = pictures[chosen].float()
        if found.shape[1] == 1:
            found = found.expand(-1, 3, -1, -1)
        if pictures.dtype == torch.uint8:
            found = (found - 118.0) / 64.0
        if found.shape[-1] != side:
            found = functional.interpolate(found, size=(side, side))
        return found.contiguous(), labels


def load(name, side, seed, classes=10):
    """The Data of digits, synthetic, or a path. `side`: what the model wants; 0: a text.
    `classes`: of the model as published, which synthetic pictures have, too."""
    if name == "synthetic":
        return synthetic(side, seed, classes)
    if name != "digits":
        try:
            return of_path(Path(name), side)
        except OSError as error:
            raise UsageError(f"train: {error.filename or name} cannot be read: {error.strerror}."
                             ) from None
    if not side:
        raise UsageError("train: digits are pictures; gpt reads a text: --data FILE, or synthetic.")
    return digits()


def digits():
    """1797 handwritten digits, 8x8."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise UsageError("train: digits come with scikit-learn, which is not installed: pip "
                         "install scikit-learn, or --data synthetic.") from None
    bunch = load_digits()
    pictures = torch.tensor((bunch.images - 5.0) / 6.0, dtype=torch.float32).unsqueeze(1)
    return split(pictures, torch.tensor(bunch.target), 10,
                 f"real data: {len(pictures)} handwritten digits of scikit-learn, 8x8", True)


def split(pictures, labels, classes, about, is_real):
    """Data of which a share that depends on nothing is held back."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    first = int(TEST_SHARE * len(labels))
    held, kept = order[:first], order[first:]
    return Data(about, is_real, classes, pictures[kept], labels[kept], pictures[held], labels[held])


def synthetic(side, seed, classes):
    """A noisy prototype for each class, which can be learnt; or a text of chance."""
    dice = torch.Generator().manual_seed(seed)
    if not side:
        text = torch.randint(gpt.LETTERS, (SYNTHETIC, gpt.CONTEXT + 1), generator=dice)
        return split(text.to(torch.uint8), torch.zeros(SYNTHETIC, dtype=torch.int64), gpt.LETTERS,
                     "synthetic: random bytes, from which nothing can be learnt", False)
    small = min(side, SIDE)  # what is larger is made so batch by batch
    prototypes = torch.randn(classes, 3, small, small, generator=dice)
    labels = torch.randint(classes, (SYNTHETIC,), generator=dice)
    noise = torch.randn(SYNTHETIC, 3, small, small, generator=dice)
    return split(prototypes[labels] + noise, labels, classes,
                 f"synthetic: {classes} prototypes of {small}x{small} with noise", False)


def of_path(path, side):
    """CIFAR-10's binary files, ImageNet's folders train/ and val/, or one file of text."""
    if path.is_file() and not side:
        return text_of(path)
    if path.is_file() or not side:
        raise UsageError(f"train: {path}: gpt takes a file of text, other models a folder.")
    if all((path / name).is_file() for name in TRAINING + VALIDATION):
        return cifar(path)
    if (path / "train").is_dir() and (path / "val").is_dir():
        return folders(path)
    raise UsageError(f"train: {path} is neither digits nor synthetic, nor a folder with CIFAR-10's "
                     f"binary files ({TRAINING[0]}, ..., {VALIDATION[0]}), nor one with train/ and "
                     "val/ of pictures by class.")


def text_of(path):
    """Pieces of a file; the last fifth is held back."""
    found = np.fromfile(path, np.uint8)
    pieces = len(found) // (gpt.CONTEXT + 1)
    if pieces < 10:
        raise UsageError(f"train: {path} has {len(found)} bytes; gpt wants "
                         f"{10 * (gpt.CONTEXT + 1)} at least.")
    text = torch.from_numpy(found[: pieces * (gpt.CONTEXT + 1)].reshape(pieces, -1))
    first = pieces - max(1, int(TEST_SHARE * pieces))
    none = torch.zeros(pieces, dtype=torch.int64)
    return Data(f"real data: {len(found)} bytes of {path.name}", True, gpt.LETTERS, text[:first],
                none[:first], text[first:], none[first:])


def cifar(path):
    """Krizhevsky 2009, in the binary form."""
    def read(names):
        parts = []
        for name in names:
            found = np.fromfile(path / name, np.uint8)
            if not len(found) or len(found) % RECORD:
                raise UsageError(f"train: {path / name} has {len(found)} bytes; CIFAR-10's binary "
                                 f"files are of {RECORD} bytes a picture.")
            parts.append(found.reshape(-1, RECORD))
        rows = torch.from_numpy(np.concatenate(parts))
        labels = rows[:, 0].long()
        if int(labels.max()) > 9:
            raise UsageError(f"train: {path}: label {int(labels.max())}; CIFAR-10 has 0 to 9.")
        return rows[:, 1:].reshape(-1, 3, SIDE, SIDE), labels

    pictures, labels = read(TRAINING)
    held, held_labels = read(VALIDATION)
    return Data(f"real data: CIFAR-10, {len(labels)} pictures", True, 10, pictures, labels, held,
                held_labels)


def folders(path):
    """Pictures in a folder for each class, under train/ and val/."""
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise UsageError("train: pictures in folders need Pillow: pip install "
                         "'paceline-bench[train]'.") from None
    classes = sorted(entry.name for entry in os.scandir(path / "train") if entry.is_dir())

    def listed(part):
        found = [(str(file), number) for number, name in enumerate(classes)
                 for file in sorted((path / part / name).glob("*"))
                 if file.suffix.lower() in ENDINGS]
        if not found:
            raise UsageError(f"train: {path / part} has no pictures ({', '.join(ENDINGS)}) in "
                             "folders named as the classes.")
        return [file for file, _ in found], torch.tensor([number for _, number in found])

    pictures, labels = listed("train")
    held, held_labels = listed("val")
    return Data(f"real data: {len(labels)} pictures of {len(classes)} classes in {path.name}",
                True, len(classes), pictures, labels, held, held_labels)


def decoded(file, side):
    """A picture as the networks take it: its middle square in `side`."""
    from PIL import Image, ImageOps

    try:
        with Image.open(file) as image:
            square = ImageOps.fit(image.convert("RGB"), (side, side))
    # Pillow raises a SyntaxError for a damaged PNG, and more for others.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UsageError(f"train: {file} is no picture that can be read ({error}).") from error
    pixels = torch.from_numpy(np.array(square)).permute(2, 0, 1).float()
    return (pixels - 118.0) / 64.0


class Shard:
    """A rank's share of the training set, dealt anew each epoch; what is left over is left out."""

    def __init__(self, count, rank, ranks, images, seed):
        self.count, self.rank, self.ranks, self.images, self.seed = count, rank, ranks, images, seed
        self.steps = count // (ranks * images)
        if not self.steps:
            raise UsageError(f"train: {ranks} ranks of {images} pictures a step, and {count} to "
                             "train on; take fewer ranks or a smaller --batch.")

    def batches(self, epoch):
        """Numbers of pictures, step by step."""
        dice = torch.Generator().manual_seed(1_000_003 * self.seed + epoch)
        order = torch.randperm(self.count, generator=dice)[self.rank :: self.ranks]
        for step in range(self.steps):
            yield order[step * self.images : (step + 1) * self.images]
