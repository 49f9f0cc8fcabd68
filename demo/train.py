"""`paceline train`'s trainer under plain DDP. torchrun starts it; run.py starts torchrun.

Only the backend's name differs between two runs: seeds, batches and buckets are the same. Rank 0
prints one JSON object per step on stdout; every rank leaves its measurements in a file. All times
are nanoseconds of the machine's monotonic clock, which the ranks of one machine share.
"""

import argparse
import json
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from paceline_bench.train import data, ways, worker

MODEL = "digits-resnet"
BUCKET_MB = 1.0
PEER_TIMEOUT_S = 120


class BucketClock:
    """A DDP communication hook that averages a bucket as DDP would, and notes when.

    `spans` holds, for the step in progress, one (bucket, bytes, issue, issued, done) per bucket:
    the all-reduce is asked for at `issue`, the caller is free again at `issued`, and the sum is
    complete on this rank at `done` (all ns).
    """

    def __init__(self, ranks: int):
        self.ranks = ranks
        self.spans: list[tuple[int, int, int, int, int]] = []

    def __call__(self, bucket: dist.GradBucket) -> torch.futures.Future:
        gradients = bucket.buffer().div_(self.ranks)
        index, byte_count = bucket.index(), gradients.numel() * gradients.element_size()
        issue = time.monotonic_ns()
        future = dist.all_reduce(gradients, async_op=True).get_future()
        issued = time.monotonic_ns()

        def finish(summed: torch.futures.Future) -> torch.Tensor:
            done = time.monotonic_ns()
            summed.value()  # A failed all-reduce raises here, and so in backward().
            self.spans.append((index, byte_count, issue, max(issued, issue), max(done, issued)))
            return gradients  # The sum is in place whatever form the backend's value has.

        return future.then(finish)


def average(clock: BucketClock, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP asks for a function, annotated so, whose first argument is the hook's state."""
    return clock(bucket)


class Timed(worker.Trainer):
    """The house's trainer under DDP, which notes when each bucket of each step was on its way.

    `edges` of a step are the begin of the forward, backward and optimizer spans and the end (ns).
    """

    def __init__(self, spec, total, tell):
        self.total, self.timed, self.clock = total, [], BucketClock(dist.get_world_size())
        super().__init__(spec, tell)

    def way_of(self):
        way = ways.Ddp(self.bare, self.optimizer_of, "paceline", None, bucket_cap_mb=BUCKET_MB,
                       gradient_as_bucket_view=True)
        way.net.register_comm_hook(self.clock, average)
        return way

    def steps_of(self, number):
        return min(self.steps, self.total - number * self.steps)

    def step(self, inputs, labels, exchanges=True):
        self.clock.spans = []
        loss = super().step(inputs, labels, exchanges)
        edges = [round(1e9 * at) for at in self.edges]
        self.timed.append({"edges": edges, "buckets": self.clock.spans})
        return loss


def say(**event) -> None:
    """Writes one JSON line for run.py; a single write, so that lines never interleave."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def parse_options() -> argparse.Namespace:
    """The command line; run.py fills it in."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", required=True, help="name given to init_process_group")
    parser.add_argument("--out", type=Path, required=True, help="folder for rank<r>.json")
    parser.add_argument("--steps", type=int, help="optimizer steps; overrides --epochs")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32, help="images per rank and step")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def specification(options, train_count: int, ranks: int) -> tuple[dict, int]:
    """The trainer's specification, and the number of steps in all."""
    each = data.Shard(train_count, 0, ranks, options.batch, options.seed).steps
    total = options.steps or options.epochs * each
    spec = {"model": MODEL, "data": "digits", "side": 0, "batch": options.batch, "steps": 0,
            "epochs": -(-total // each), "rate": options.rate, "most_rate": options.rate,
            "validation": 0, "seed": options.seed, "threads": 1}
    return spec, total


def main() -> None:
    """Joins the process group, trains, tests and writes rank<r>.json."""
    options = parse_options()
    torch.set_num_threads(1)
    dist.init_process_group(options.backend, timeout=timedelta(seconds=PEER_TIMEOUT_S))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    spec, total = specification(options, len(data.digits()), ranks)

    def tell(said: dict) -> None:
        if rank == 0 and "step" in said:
            begin, end = trainer.timed[-1]["edges"][0], trainer.timed[-1]["edges"][-1]
            say(event="step", step=said["step"] - 1, loss=said["loss"], ms=(end - begin) / 1e6)

    trainer = Timed(spec, total, tell)
    if rank == 0:
        say(event="start", steps=total, ranks=ranks, global_batch=ranks * options.batch)
    for number in range(spec["epochs"]):
        trainer.epoch(number)
    record = {
        "rank": rank, "losses": [loss for _, loss in trainer.losses], "steps": trainer.timed,
        "backend": options.backend, "ranks": ranks, "batch": options.batch,
        "steps_per_epoch": trainer.steps,
        "parameters": sum(weights.numel() for weights in trainer.bare.parameters()),
        "accuracy": trainer.epochs[-1]["accuracy"],
        "weights_sha256": worker.digest(trainer.bare),
    }
    (options.out / f"rank{rank}.json").write_text(json.dumps(record))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
