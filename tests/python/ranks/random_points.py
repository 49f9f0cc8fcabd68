"""Random programs of send and recv, against queues: which message each receive must get.

Started on ranks as `random_points.py SEED PROGRAMS`: what `./dev fuzz --on points` plays.
"""

import random
import sys
import threading
import time
from collections import defaultdict

import torch
import torch.distributed as dist

import paceline.torch  # Importing it registers the backend's name.

SIZES = (0, 1, 7, 1000, 1 << 14, 1 << 18, 1 << 22)  # of float32: 0 B to 16 MiB
TAGS = 3


def message(number, n):
    period = torch.arange(1000.0) + 1000 * number
    return period.repeat(n // 1000 + 1)[:n]


def program(seed, ranks):
    """Messages (source, target, tag, n, number) in the order in which they are sent."""
    draw = random.Random(seed)
    out = []
    for number in range(24):
        source, target = draw.sample(range(ranks), 2)
        out.append((source, target, draw.randrange(TAGS), draw.choice(SIZES), number))
    return out


def expected(messages, me):
    """The slow reference: queues of what `me` gets, by source and tag, in order."""
    queues = defaultdict(list)
    for source, target, tag, n, number in messages:
        if target == me:
            queues[source, tag].append((n, number))
    return queues


def posts(messages, me, draw):
    """Sends and receives of `me`, in an order of its own; alike ones stay in order."""
    kinds = [("send", target, tag) for source, target, tag, _, _ in messages if source == me]
    kinds += [("recv", source, tag) for source, target, tag, _, _ in messages if target == me]
    draw.shuffle(kinds)
    return kinds


def play_named(seed):
    """Receives name their source; some calls come in batches."""
    p, me = dist.get_world_size(), dist.get_rank()
    messages, draw = program(seed, p), random.Random(100 * seed + me)
    to_get = expected(messages, me)
    to_send = defaultdict(list)
    for source, target, tag, n, number in messages:
        if source == me:
            to_send[target, tag].append(message(number, n))
    works, got, batch = [], [], []
    for kind, peer, tag in posts(messages, me, draw):
        if kind == "send":
            call, x = dist.isend, to_send[peer, tag].pop(0)
        else:
            n, number = to_get[peer, tag].pop(0)
            call, x = dist.irecv, torch.full((n,), -1.0)
            got.append((x, message(number, n)))
        batch.append(dist.P2POp(call, x, peer, tag=tag))
        if draw.random() < 0.4:
            works += dist.batch_isend_irecv(batch)
            batch = []
        if draw.random() < 0.1:
            time.sleep(0.01)
    works += dist.batch_isend_irecv(batch) if batch else []
    draw.shuffle(works)
    for work in works:
        work.wait()
    for x, right in got:
        assert torch.equal(x, right), (seed, x[:3], right[:3])


def play_any(seed):
    """Each receive gets the next message of the source that it names afterwards."""
    p, me = dist.get_world_size(), dist.get_rank()
    draw = random.Random(seed)
    # Of one tag all are as long: whoever receives does not know from whom.
    lengths = [draw.choice(SIZES) for _ in range(TAGS)]
    messages = [(s, t, tag, lengths[tag], k) for s, t, tag, _, k in program(50 + seed, p)]
    queues = expected(messages, me)
    sends = [dist.isend(message(k, n), t, tag=tag) for s, t, tag, n, k in messages if s == me]
    mine = [(tag, n) for _, target, tag, n, _ in messages if target == me]
    outs = [(tag, x := torch.full((n,), -1.0), dist.irecv(x, tag=tag)) for tag, n in mine]
    dist.barrier()
    for _, _, work in reversed(outs):
        work.wait()
    for tag, x, work in outs:
        n, number = queues[work._source_rank(), tag].pop(0)
        assert torch.equal(x, message(number, n)), (seed, tag, work._source_rank())
    for work in sends:
        work.wait()
    dist.barrier()


def play_threads(seed):
    """A thread for each tag, which sends and receives in turn, blocking."""
    p, me = dist.get_world_size(), dist.get_rank()
    messages, wrong = program(seed, p), []

    def exchange(tag):
        try:
            for source, target, at, n, number in messages:
                if at == tag and me == source:
                    dist.send(message(number, n), target, tag=tag)
                elif at == tag and me == target:
                    dist.recv(x := torch.full((n,), -1.0), source, tag=tag)
                    if not torch.equal(x, message(number, n)):
                        wrong.append((seed, tag, number, x[:3]))
        except Exception as error:
            wrong.append((seed, tag, error))

    threads = [threading.Thread(target=exchange, args=(tag,)) for tag in range(TAGS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [], wrong


PLAYS = (play_named, play_any, play_threads)


def main(seed, programs):
    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    for each in range(seed, seed + programs):
        try:
            PLAYS[each % len(PLAYS)](each)
        except BaseException:
            print(f"seed {each} fails on rank {dist.get_rank()}", flush=True)
            raise
    dist.barrier()
    if dist.get_rank() == 0:
        print(f"{programs} programs from seed {seed} on end rightly on "
              f"{dist.get_world_size()} ranks", flush=True)  # fmt: skip
    dist.destroy_process_group()


if __name__ == "__main__":
    assert paceline.torch
    main(*map(int, sys.argv[1:]))
