"""The handwritten digits that scikit-learn carries (1797 pictures, 8x8), split and sharded."""

from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Digits:
    """Pictures as float32 (count, 1, 8, 8) of about unit spread, labels as int64 (count)."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


def load() -> tuple[Digits, Digits]:
    """The training and the test set: the same split on every rank and in every run."""
    bunch = load_digits()
    split = train_test_split(
        bunch.images, bunch.target, test_size=TEST_SHARE, random_state=0, stratify=bunch.target
    )
    train_images, test_images, train_labels, test_labels = split

    def digits(images, labels) -> Digits:
        pixels = torch.tensor(images, dtype=torch.float32).unsqueeze(1)
        # Pixels are 0..16; the picture's mean and spread are near 5 and 6.
        return Digits((pixels - 5.0) / 6.0, torch.tensor(labels, dtype=torch.int64))

    return digits(train_images, train_labels), digits(test_images, test_labels)


class Shard:
    """One rank's share of the training set, dealt anew each epoch as DistributedSampler does.

    All ranks draw the same permutation from (seed, epoch) and take every ranks-th entry of it,
    so the batches depend on the seed alone and never on what carries the gradients.
    """

    def __init__(self, digits: Digits, rank: int, ranks: int, batch_count: int, seed: int):
        self.digits, self.rank, self.ranks = digits, rank, ranks
        self.batch_count, self.seed = batch_count, seed
        self.steps_per_epoch = len(digits) // (ranks * batch_count)
        self._epoch, self._order = -1, torch.empty(0, dtype=torch.int64)
        if self.steps_per_epoch == 0:
            raise ValueError(
                f"demo: {ranks} ranks x {batch_count} images exceed the {len(digits)} training "
                "images; each step needs one full batch per rank. Use fewer ranks or a smaller "
                "--batch."
            )

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """The pictures and labels of this rank in step `step`, counted from 0 over all epochs."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            dice = torch.Generator().manual_seed(1_000_003 * self.seed + epoch)
            order = torch.randperm(len(self.digits), generator=dice)
            self._epoch, self._order = epoch, order[self.rank :: self.ranks]
        first = position * self.batch_count
        chosen = self._order[first : first + self.batch_count]
        return self.digits.images[chosen], self.digits.labels[chosen]
