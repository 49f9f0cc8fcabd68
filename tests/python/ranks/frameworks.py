"""The same short training in a framework as it stands: frameworks.py FRAMEWORK BACKEND. Each rank
prints its losses, to the last bit, and who served it."""

import os
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, DistributedSampler
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


def accelerate(_):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = Model()
    model, optimizer, batches = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), 0.05), loader())
    found = []
    for one in batches:
        loss = model(**one)["loss"]
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        found.append(accelerator.gather(loss.detach().reshape(1)).mean().item())
    return found


def trainer(backend):
    from transformers import Trainer, TrainingArguments

    found = []

    class Recording(Trainer):
        def training_step(self, *arguments, **keywords):
            found.append(super().training_step(*arguments, **keywords).item())
            return torch.tensor(found[-1])

    settings = TrainingArguments(
        output_dir=os.environ["RESULTS"], use_cpu=True, ddp_backend=backend, max_steps=STEPS,
        per_device_train_batch_size=1, report_to=[], save_strategy="no", disable_tqdm=True,
        logging_strategy="no", optim="sgd", learning_rate=0.05, seed=3)
    Recording(Model(), settings, train_dataset=Batches()).train()
    return found


def deepspeed(backend):
    import deepspeed as D
    import deepspeed.comm.torch as comm

    comm.build_shm_op = lambda: None  # for inference alone; compiling it takes minutes
    D.init_distributed(backend)
    model = Model()
    engine, *_ = D.initialize(
        model=model, optimizer=torch.optim.SGD(model.parameters(), 0.05),
        config={"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3},
                "zero_allow_untested_optimizer": True})
    found = []
    for one in loader(DistributedSampler(Batches(), shuffle=False)):
        loss = engine(**one)["loss"]
        engine.backward(loss)
        engine.step()
        found.append(loss.item())
    return found


def keras(backend):
    import keras as K

    dist.init_process_group(backend)
    K.utils.set_random_seed(3)
    model = nn.parallel.DistributedDataParallel(K.Sequential([
        K.Input((64,)), K.layers.Dense(96, activation="relu"), K.layers.BatchNormalization(),
        K.layers.Dense(10)]))
    optimizer, found = torch.optim.SGD(model.parameters(), 0.05), []
    for one in loader(DistributedSampler(Batches(), shuffle=False)):
        loss = nn.functional.cross_entropy(model(one["images"][0]), one["labels"][0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def loop(config):
    """What each worker of Ray Train runs."""
    import ray.train
    import ray.train.torch

    rank = ray.train.get_context().get_world_rank()
    model = ray.train.torch.prepare_model(Model())
    optimizer, found = torch.optim.SGD(model.parameters(), 0.05), []
    for one in loader(DistributedSampler(Batches(), 2, rank, shuffle=False)):
        loss = model(**one)["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(total := loss.detach().clone())
        found.append(total.item())
    if rank == 0:
        Path(os.environ["RESULTS"], "losses").write_text(line_of(found))


def ray(backend):
    import ray as R
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    kept = ("PACELINE_REPLACE", "PACELINE_SHM_DIR", "PYTHONPATH", "RESULTS",
            "TORCH_DEVICE_BACKEND_AUTOLOAD")
    variables = {name: os.environ[name] for name in kept if name in os.environ}
    R.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
           runtime_env={"env_vars": variables})
    try:
        TorchTrainer(
            loop, torch_config=TorchConfig(backend=backend),
            scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
            run_config=RunConfig(storage_path=os.environ["RESULTS"])).fit()
        sys.stdout.write(Path(os.environ["RESULTS"], "losses").read_text())
    finally:
        R.shutdown()


def line_of(losses):
    served = type(dist.group.WORLD).__name__
    return f"{served}: {' '.join(loss.hex() for loss in losses)}\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    framework, backend = sys.argv[1:]
    losses = globals()[framework](backend)
    if losses is not None:
        sys.stdout.write(line_of(losses))
        sys.stdout.flush()
        if dist.is_initialized():
            dist.destroy_process_group()
