"""One rank of `paceline train`: `python -m paceline_bench.train.worker SPEC`, or in an mpiexec."""

import contextlib
import hashlib
import json
import math
import os
import re
import sys
import time
from datetime import timedelta
from pathlib import Path

import paceline.torch  # noqa: F401  Importing it registers the backend's name.
import torch
import torch.distributed as dist
from paceline.errors import Error, RankLost, TimeoutError, UsageError

from paceline_bench.networks import branched, models
from paceline_bench.train import data, ways

SAID = "@train "  # begins rank 0's lines of progress
TIMEOUT_S = 600
PROFILE_STEPS = 3
VALIDATION_BATCH = 64
SHARE_TO_TRAIN = 0.7  # of a way's time, if time is short; the rest is for its profile


def rate_of(spec, ranks):
    """The learning rate grows with the workers, as the document has it: from 0.1 up to 1."""
    return min(spec["rate"] * ranks, max(spec["rate"], spec["most_rate"]))


def over_ranks(value, how="average"):
    """A number's average, sum or maximum over all ranks."""
    one = torch.tensor([float(value)], dtype=torch.float64)
    dist.all_reduce(one, dist.ReduceOp.MAX if how == "max" else dist.ReduceOp.SUM)
    return one.item() / (dist.get_world_size() if how == "average" else 1)


def digest(net):
    """SHA-256 of all weights' bytes."""
    sha = hashlib.sha256()
    for weights in net.parameters():
        sha.update(weights.detach().contiguous().numpy().tobytes())
    return sha.hexdigest()


class Trainer:
    """This rank: its network, its data, its way."""

    def __init__(self, spec, tell):
        self.spec, self.tell = spec, tell
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        model = models.known(spec["model"])
        self.side = (spec["side"] or model.side) if model.side else 0
        self.data = data.load(spec["data"], self.side, spec["seed"], model.classes)
        images = spec["batch"] or model.images
        self.shard = data.Shard(len(self.data), self.rank, self.ranks, images, spec["seed"])
        self.steps = min(self.shard.steps, spec["steps"] or self.shard.steps)
        torch.manual_seed(spec["seed"])
        self.bare = models.made(spec["model"], self.data.classes)
        self.way = self.way_of()
        self.images = images
        self.trained_s = 0.0  # without validation
        self.losses, self.epochs, self.edges = [], [], []

    def way_of(self):
        """The way in which its gradients are exchanged."""
        return ways.make(self.spec["way"], self.spec["over"], self.bare, self.optimizer_of,
                         self.spec["collectives"])

    def steps_of(self, number):
        """Number of steps of an epoch."""
        return self.steps

    def optimizer_of(self, parameters):
        """The documents' optimizer: SGD with momentum."""
        return torch.optim.SGD(parameters, rate_of(self.spec, self.ranks), momentum=0.9)

    def step(self, inputs, labels, exchanges=True):
        """Forward, backward, exchange and update; its loss. Notes when each began."""
        edges = [time.monotonic()]
        self.way.optimizer.zero_grad()
        with contextlib.nullcontext() if exchanges else self.way.quiet():
            found = self.way.net(inputs)
            edges.append(time.monotonic())
            loss = branched.loss_of(found, labels)
            loss.backward()
        edges.append(time.monotonic())
        if exchanges:
            self.way.finish()
        self.edges = [*edges, time.monotonic()]
        return loss.item()

    def epoch(self, number):
        """One pass over the data, then the accuracy on held back pictures."""
        self.bare.train()
        begin, found, steps = time.monotonic(), [], self.steps_of(number)
        for step, chosen in enumerate(self.shard.batches(number)):
            if step == steps:
                break
            found.append(self.step(*self.data.batch(chosen, self.side)))
            if not math.isfinite(found[-1]):
                raise UsageError(f"train: the loss of step {step + 1} of epoch {number + 1} is "
                                 f"{found[-1]} with a learning rate of "
                                 f"{rate_of(self.spec, self.ranks):g}; lower --rate.")
            self.losses.append([self.trained_s + time.monotonic() - begin, found[-1]])
            self.tell({"step": number * self.steps + step + 1, "time_s": self.losses[-1][0],
                       "loss": found[-1]})
        seconds = over_ranks(time.monotonic() - begin)
        self.trained_s += seconds
        row = {"epoch": number + 1, "seconds": seconds, "time_s": self.trained_s,
               "loss": over_ranks(sum(found) / len(found)), "accuracy": self.accuracy(),
               "images_per_s": steps * self.images * self.ranks / seconds}
        self.epochs.append(row)
        self.tell({"row": row})

    def is_late(self, until):
        """True if another epoch would end after `until`, a moment of the machine's clock."""
        return over_ranks(time.monotonic() + self.epochs[-1]["seconds"] > until, "max") > 0

    @torch.no_grad()
    def accuracy(self):
        """The share of held back pictures that is named rightly; each rank looks at a part."""
        self.way.settle()
        self.bare.eval()
        right, seen = 0, 0
        mine = torch.arange(self.rank, len(self.data.held_labels), self.ranks)
        for chosen in mine.split(VALIDATION_BATCH)[: self.spec["validation"] or None]:
            inputs, labels = self.data.batch(chosen, self.side, held=True)
            guessed = self.bare(inputs).argmax(-1)
            right, seen = right + (guessed == labels).sum().item(), seen + labels.numel()
        right, seen = over_ranks(right, "sum"), over_ranks(seen, "sum")
        return right / seen if seen else 0.0

    def profile(self):
        """Table 2 of the document: computing alone, exchange alone, and the iteration."""
        self.bare.train()
        batch = self.data.batch(next(self.shard.batches(0)), self.side)
        parts = {"computing_s": lambda: self.step(*batch, exchanges=False),
                 "exchange_s": self.way.exchange, "iteration_s": lambda: self.step(*batch)}
        found = {}
        for name, part in parts.items():
            part()  # to warm up
            dist.barrier()
            begin = time.monotonic()
            for _ in range(PROFILE_STEPS):
                part()
            found[name] = over_ranks((time.monotonic() - begin) / PROFILE_STEPS)
        whole = found["computing_s"] + found["exchange_s"]
        found["exchange_share"] = found["exchange_s"] / whole
        hidden = (whole - found["iteration_s"]) / max(found["exchange_s"], 1e-9)
        found["hidden_share"] = min(1.0, max(0.0, hidden))
        return found

    def run(self, share_s=None):
        """Trains, for about so many seconds at most; returns this rank's result, for JSON."""
        until = share_s and time.monotonic() + share_s
        self.tell({"steps": self.spec["epochs"] * self.steps, "data": self.data.about})
        for number in range(self.spec["epochs"]):
            self.epoch(number)
            if until and self.is_late(until):
                break
        edges = self.edges  # of the last real step
        hashes = [None] * self.ranks
        self.way.settle()
        dist.all_gather_object(hashes, digest(self.bare))
        result = {"rank": self.rank, "data": self.data.about, "is_real": self.data.is_real,
                  "epochs": self.epochs, "losses": self.losses, "edges": edges,
                  "rate": rate_of(self.spec, self.ranks), "batch": self.images, "side": self.side,
                  "parameters": sum(p.numel() for p in self.bare.parameters()),
                  "weights_equal": len(set(hashes)) == 1, "weights_sha256": hashes[0]}
        result["profile"] = self.profile()
        self.way.close()
        return result


def in_turn(spec, tell):
    """Trains in each way of `in_turn`, or in the only one; yields this rank's results. All ways
    share `seconds`, which count from the first step on."""
    ways_of, left_s = spec.get("in_turn") or [(spec["way"], spec["over"])], spec.get("seconds")
    for number, (way, over) in enumerate(ways_of):
        if "in_turn" in spec:
            tell({"turn": number})
        trainer, begin = Trainer({**spec, "way": way, "over": over}, tell), time.monotonic()
        if left_s is None:
            yield trainer.run()
        else:
            # A share of 0 would be none.
            yield trainer.run(max(1e-9, SHARE_TO_TRAIN * left_s / (len(ways_of) - number)))
            left_s -= time.monotonic() - begin


def train(spec, tell=lambda _: None):
    """All ranks call it; {"ranks": [each rank's result]} on rank 0, of the last way, else None."""
    torch.set_num_threads(spec["threads"])
    dist.init_process_group("paceline", timeout=timedelta(seconds=TIMEOUT_S))
    is_root, found = dist.get_rank() == 0, [None] * dist.get_world_size()
    tell = tell if is_root else lambda _: None
    try:
        for result in in_turn(spec, tell):
            dist.all_gather_object(found, result)
            if "in_turn" in spec:
                tell({"found": found})
    except BaseException as error:
        # A caller may catch and print it, and yet it ends the program, which without this would
        # leave as if all had gone well: complete its calls first, and wait for lost ranks.
        sys.last_value = error
        raise
    dist.barrier()
    dist.destroy_process_group()
    return {"ranks": found} if is_root else None


def sentence(error, rank):
    """The error in a sentence for a user; None if a trace back says more."""
    if isinstance(error, Error):
        return str(error)
    words = str(error)
    if isinstance(error, MemoryError) or "allocate memory" in words:
        asked = re.search(r"allocate (\d+) bytes", words)
        size = f" for {int(asked[1]) >> 20} MiB more" if asked else ""
        return (f"train: rank {rank}: there is too little memory{size}; take fewer --ranks, a "
                "smaller --batch or --side, or a smaller --model.")
    return None


def main():
    """Reads the specification that the command line names; rank 0 leaves the result beside it."""
    path = Path(sys.argv[1])
    spec = json.loads(path.read_text(encoding="utf-8"))

    def tell(said):
        print(SAID + json.dumps(said), flush=True)

    try:
        found = train(spec, tell)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if isinstance(error, RankLost) and error.is_interrupt:
            sys.exit(130)
        said = sentence(error, os.environ.get("PACELINE_RANK", "?"))
        if said is None:
            raise
        tell({"failed": said, "others": isinstance(error, (RankLost, TimeoutError))})
        sys.exit(1)
    if found:
        path.with_name("found.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
