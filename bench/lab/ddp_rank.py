"""One rank of real training: a network under DDP, over ours, gloo and the MPI, a step each in turn.

Started by training.py, as `python -m ddp_rank SPEC`. All begin with the same weights and see the
same pictures; at the end all ranks must hold the same bits.
"""

import hashlib
import json
import os
import queue
import socket
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import libraries
import models
import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import paceline.torch  # noqa: F401  Importing it registers the backend's name.
from paceline import mpi
from paceline.bench import links
from paceline.bench.meeting import Meeting

BACKENDS = ("paceline", "gloo")
TIMEOUT_S = 60


class HostMpi:
    """MPI_Allreduce of one bucket after the other, in a thread beside the one that computes, as
    Horovod calls it."""

    def __init__(self, mpi):
        self.mpi = mpi
        self.buckets = queue.SimpleQueue()
        threading.Thread(target=self.work, name="mpi", daemon=True).start()

    def average(self, _, bucket):
        """DDP's communication hook: a future of the bucket's average."""
        future = torch.futures.Future()
        self.buckets.put((bucket.buffer(), future))
        return future

    def work(self):
        """The thread; the process ends with it at work."""
        world = self.mpi.COMM_WORLD
        while True:
            buffer, future = self.buckets.get()
            world.Allreduce(self.mpi.IN_PLACE, buffer.numpy())
            future.set_result(buffer.div_(world.size))


def digest(net):
    """SHA-256 of all weights' bytes."""
    sha = hashlib.sha256()
    for weights in net.parameters():
        sha.update(weights.detach().contiguous().numpy().tobytes())
    return sha.hexdigest()


class Trainer:
    """A model under DDP in the group of one backend; where a host is given, that sums."""

    def __init__(self, spec, backend, host=None):
        torch.manual_seed(spec["seed"])
        self.net = DistributedDataParallel(
            models.made(spec["model"]), process_group=dist.new_group(backend=backend))
        if host:
            self.net.register_comm_hook(None, host.average)
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.01, momentum=0.9)
        self.times, self.cpu_s, self.losses = [], [], []

    def step(self, images, labels, begin_ns):
        """Forward, backward with all sums, and the new weights."""
        cpu_s = time.process_time()
        loss = functional.cross_entropy(self.net(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.times.append((time.monotonic_ns() - begin_ns) / 1e9)
        self.cpu_s.append(time.process_time() - cpu_s)
        self.losses.append(loss.item())


def train(spec, meeting, settle):
    """What this rank has seen: by backend the seconds of each step, the losses, the weights."""
    trainers = {backend: Trainer(spec, backend) for backend in BACKENDS}
    if spec["mpiexec"]:
        trainers["mpi"] = Trainer(spec, "gloo", HostMpi(libraries.start_mpi()))
    generator = torch.Generator().manual_seed(1000 + meeting.rank)
    turn, idle = list(trainers.values()), links.idle_clock()
    for _ in range(spec["warm_up"] + spec["rounds"]):
        images, labels = models.batch_of(spec["model"], spec["images"], generator)
        for trainer in turn:
            trainer.step(images, labels, meeting.start())
            settle()
        turn.append(turn.pop(0))
    rested, ticks = (b - a for a, b in zip(idle, links.idle_clock()))
    return {
        "node": socket.gethostname(), "idle": rested / max(ticks, 1),
        "backends": {
            backend: {"times": trainer.times[spec["warm_up"] :],
                      "cpu_s": trainer.cpu_s[spec["warm_up"] :], "losses": trainer.losses,
                      "sha256": digest(trainer.net.module)}
            for backend, trainer in trainers.items()
        },
    }  # fmt: skip


def main():
    """Reads the specification that the command line names."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(spec["folder"])
    if spec["cluster"]:
        os.environ["GLOO_SOCKET_IFNAME"] = spec["cluster"]["interface"]
    torch.set_num_threads(1)
    dist.init_process_group("paceline", timeout=timedelta(seconds=TIMEOUT_S))
    meeting = Meeting(folder / "meeting", dist.get_rank(), dist.get_world_size())
    world = mpi.load()[0].world() if spec["mpiexec"] else None
    # Between nodes an MPI may have yet to send what others wait for.
    found = train(spec, meeting, (lambda: meeting.settle(world.nudge)) if world
                  else meeting.barrier)
    file = folder / f"rank{meeting.rank}.json"
    file.write_text(json.dumps(found), encoding="utf-8")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
