"""Trains the ResNet data-parallel with plain DDP. torchrun starts it; run.py starts torchrun.

Only the backend's name differs between two runs: seeds, batches and buckets are the same. Rank 0
prints one JSON object per step on stdout; every rank leaves its measurements in a file. All times
are nanoseconds of the machine's monotonic clock, which the ranks of one machine share.
"""

import argparse
import hashlib
import json
import sys
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import data
from model import DigitResNet

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
        issue = time.perf_counter_ns()
        future = dist.all_reduce(gradients, async_op=True).get_future()
        issued = time.perf_counter_ns()

        def finish(summed: torch.futures.Future) -> torch.Tensor:
            done = time.perf_counter_ns()
            summed.value()  # A failed all-reduce raises here, and so in backward().
            self.spans.append((index, byte_count, issue, max(issued, issue), max(done, issued)))
            return gradients  # The sum is in place whatever form the backend's value has.

        return future.then(finish)


def average(clock: BucketClock, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP asks for a function, annotated so, whose first argument is the hook's state."""
    return clock(bucket)


def train(net: DistributedDataParallel, clock: BucketClock, shard: data.Shard, options) -> dict:
    """Runs options.steps steps; returns this rank's losses and the edges of its spans (ns).

    `edges` of a step are the begin of the forward, backward and optimizer spans and the end.
    """
    optimizer = torch.optim.SGD(net.parameters(), options.rate, momentum=0.9, weight_decay=1e-4)
    losses, steps = [], []
    for step in range(options.steps):
        clock.spans = []
        begin = time.perf_counter_ns()
        images, labels = shard.batch(step)
        loss = cross_entropy(net(images), labels)
        forward_end = time.perf_counter_ns()
        loss.backward()
        backward_end = time.perf_counter_ns()
        optimizer.step()
        optimizer.zero_grad()
        end = time.perf_counter_ns()
        losses.append(loss.item())
        steps.append({"edges": [begin, forward_end, backward_end, end], "buckets": clock.spans})
        if shard.rank == 0:
            say(event="step", step=step, loss=losses[-1], ms=(end - begin) / 1e6)
    return {"rank": shard.rank, "losses": losses, "steps": steps}


def accuracy(net: DistributedDataParallel, digits: data.Digits, rank: int, ranks: int) -> float:
    """Share of test pictures named rightly, 0..1; every rank tests its part of them."""
    images, labels = digits.images[rank::ranks], digits.labels[rank::ranks]
    with torch.no_grad():
        right = (net.module(images).argmax(1) == labels).sum().to(torch.int64)
    dist.all_reduce(right)
    return right.item() / len(digits)


def digest(net: torch.nn.Module) -> str:
    """SHA-256 of all weights' bytes: equal digests mean equal models, bit for bit."""
    sha = hashlib.sha256()
    for weights in net.state_dict().values():
        sha.update(weights.contiguous().numpy().tobytes())
    return sha.hexdigest()


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


def main() -> None:
    """Joins the process group, trains, tests and writes rank<r>.json."""
    options = parse_options()
    if options.backend == "paceline":
        import paceline.torch  # noqa: F401  Importing it registers the backend's name.

    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    dist.init_process_group(options.backend, timeout=timedelta(seconds=PEER_TIMEOUT_S))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    train_set, test_set = data.load()
    shard = data.Shard(train_set, rank, ranks, options.batch, options.seed)
    options.steps = options.steps or options.epochs * shard.steps_per_epoch
    clock = BucketClock(ranks)
    net = DistributedDataParallel(
        DigitResNet(), bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True
    )
    net.register_comm_hook(clock, average)
    if rank == 0:
        say(event="start", steps=options.steps, ranks=ranks, global_batch=ranks * options.batch)

    record = train(net, clock, shard, options)
    record.update(
        backend=options.backend,
        ranks=ranks,
        batch=options.batch,
        steps_per_epoch=shard.steps_per_epoch,
        parameters=sum(weights.numel() for weights in net.parameters()),
        accuracy=accuracy(net, test_set, rank, ranks),
        weights_sha256=digest(net.module),
    )
    (options.out / f"rank{rank}.json").write_text(json.dumps(record))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
