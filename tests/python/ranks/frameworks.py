"""The same short training in a framework as it stands: frameworks.py FRAMEWORK BACKEND. Each rank
prints its losses, to the last bit, and who served it."""

import sys
import warnings

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset
from train_checks import batch, network

STEPS = 4


class Batches(Dataset):
    """Rank r of the two gets the even or the odd ones."""

    def __len__(self):
        return 2 * STEPS

    def __getitem__(self, index):
        images, labels = batch(index, 0)
        return {"images": images, "labels": labels}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = network()

    def forward(self, images, labels):
        loss = nn.functional.cross_entropy(
            self.network(images.flatten(0, -2)), labels.flatten())
        return {"loss": loss}


def loader(sampler=None):
    return DataLoader(Batches(), batch_size=1, sampler=sampler)


def lightning(backend):
    import lightning as L
    from lightning.pytorch.strategies import DDPStrategy

    found = []

    class Module(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, index):
            loss = self.model(**batch)["loss"]
            # A whole number, which Lightning averages where the backend is not called gloo.
            self.log("images", torch.tensor(32), sync_dist=True, on_epoch=True, on_step=True)
            self.log("loss", loss, sync_dist=True)
            found.append(loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.05)

    trainer = L.Trainer(
        accelerator="cpu", devices=2, max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        strategy=DDPStrategy(process_group_backend=backend))
    trainer.fit(Module(), loader())
    return found


def said(served, losses):
    sys.stdout.write(f"{served}: {' '.join(loss.hex() for loss in losses)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    framework, backend = sys.argv[1:]
    losses = globals()[framework](backend)
    if losses is not None:
        said(type(dist.group.WORLD).__name__, losses)
        if dist.is_initialized():
            dist.destroy_process_group()
