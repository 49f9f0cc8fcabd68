"""Checks of send and recv: which message a receive gets, by source, tag and order."""

import os
import threading
import time
from datetime import timedelta
from pathlib import Path
from unittest import mock

import random_points
import torch
import torch.distributed as dist
from random_points import message
from support import blocks_held, checks_in, raises, run_checks

import paceline
import paceline.torch  # Importing it registers the backend's name.
from paceline.torch import p2p as p2p_module

TIMES = 3 if os.environ.get("PACELINE_LONG") else 1


def check_tags_in_another_order(comm):
    p, me = comm.size, comm.rank
    if p == 1:
        return
    right, left = (me + 1) % p, (me - 1) % p
    sends = [dist.isend(message(tag, 1000), right, tag=tag) for tag in (1, 2, 3)]
    for tag in (3, 1, 2):
        dist.recv(x := torch.empty(1000), left, tag=tag)
        assert torch.equal(x, message(tag, 1000)), (tag, x[:3])
    for work in sends:
        work.wait()


def check_a_thread_for_each_tag(comm):
    p, me = comm.size, comm.rank
    if p == 1:
        return
    right, left, wrong = (me + 1) % p, (me - 1) % p, []

    def exchange(tag):
        for turn in range(50):
            work = dist.isend(message(10 * turn + tag, 100), right, tag=tag)
            dist.recv(x := torch.empty(100), left, tag=tag)
            work.wait()
            if not torch.equal(x, message(10 * turn + tag, 100)):
                wrong.append((tag, turn))

    threads = [threading.Thread(target=exchange, args=(tag,)) for tag in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def check_any_source_in_the_order_of_posts(comm):
    """Not of the waits; and a receive that names its source stands behind."""
    p, me = comm.size, comm.rank
    if p == 1:
        return
    if me == 0:
        outs = [torch.empty(1000) for _ in range(3)]
        first = dist.irecv(outs[0])
        second = dist.irecv(outs[1])
        third = dist.irecv(outs[2], 1)
        dist.barrier()
        for work in (third, second, first):
            work.wait()
        for number, out in enumerate(outs):
            assert torch.equal(out, message(number, 1000)), (number, out[:3])
    else:
        dist.barrier()
        for number in range(3) if me == 1 else ():
            dist.send(message(number, 1000), 0)
    dist.barrier()


def check_any_source_without_a_waiter(comm):
    """A send of 16 MiB comes to its end while the receiver is in a barrier that follows it."""
    p, me = comm.size, comm.rank
    if p == 1:
        return
    x = torch.empty(1 << 22)
    if me == 0:
        work = dist.irecv(x)
    elif me == 1:
        dist.send(message(5, 1 << 22), 0)
    dist.barrier()
    if me == 0:
        work.wait()
        assert torch.equal(x, message(5, 1 << 22)) and work._source_rank() == 1
    dist.barrier()


def check_messages_that_do_not_fit(comm):
    """The receive says so; what comes after is none the worse."""
    p, me = comm.size, comm.rank
    if p == 1:
        return
    for n in (3, 1000, 1 << 16):
        if me == 1:
            dist.send(message(1, n), 0, tag=5)
            dist.send(message(2, n), 0, tag=5)
            dist.send(message(3, n).int(), 0, tag=5)
        elif me == 0:
            words = f"rank 1 sends {4 * n} bytes|expects {4 * n + 4} of|under tag 5"
            for x in (torch.empty(n + 1), None, torch.empty(n)):
                if x is None:
                    dist.recv(x := torch.empty(n), 1, tag=5)
                    assert torch.equal(x, message(2, n))
                else:
                    raises(paceline.MismatchError, words, lambda x=x: dist.recv(x, 1, tag=5))
                words = "torch.int32 under tag 5|of torch.float32"
    dist.barrier()


def check_a_message_that_cannot_be_taken(comm):
    """No memory for it, or no device: both sides hear of it, waited for or not, and other ranks'
    messages come as before."""
    p, me = comm.size, comm.rank
    if p == 1:
        return

    def no_room(self):
        raise RuntimeError("there is no memory.")

    for waits in (True, False):
        group = dist.new_group(timeout=timedelta(seconds=20))
        if me == 0:
            with mock.patch.object(p2p_module.Message, "room", no_room):
                work = dist.irecv(torch.empty(9, dtype=torch.float64), 1, group, tag=7)
                if waits:
                    raises(paceline.ResourceError, "cannot take the 40000000 bytes that rank 1 "
                           "sends under tag 7|there is no memory", work.wait)
                else:
                    end = time.monotonic() + 15
                    while not work.get_future().done() and time.monotonic() < end:
                        time.sleep(0.001)
                    raises(RuntimeError, "cannot take the 40000000 bytes", work.get_future().wait)
            raises(paceline.ResourceError, "It takes no message of rank 1 any more",
                   lambda: dist.recv(torch.empty(1000), 1, group, tag=8))
        elif me == 1:
            raises(paceline.RankLost, "cannot take what rank 1 sends: there is no memory",
                   lambda: dist.send(message(7, 10_000_000), 0, group, tag=7))
        if me == 0:
            for source in range(2, p):
                dist.recv(x := torch.empty(1000), source, group, tag=9)
                assert torch.equal(x, message(9, 1000))
        elif me > 1:
            dist.send(message(9, 1000), 0, group, tag=9)


def check_any_source_that_gave_up_takes_nothing(comm):
    """By the group's time-out: a wait with a limit of its own leaves the receive where it is."""
    p, me = comm.size, comm.rank
    if p == 1:
        return
    group = dist.new_group(timeout=timedelta(milliseconds=200))
    if me == 0:
        nobody = dist.irecv(torch.empty(10), group=group)
        raises(TimeoutError, "it goes on", lambda: nobody.wait(timedelta(milliseconds=50)))
        raises(TimeoutError, "no rank", nobody.wait)
        dist.barrier()
        dist.recv(x := torch.empty(10), 1, group)
        assert torch.equal(x, message(3, 10))
    else:
        dist.barrier()
        if me == 1:
            dist.send(message(3, 10), 0, group)
    dist.barrier()


def check_hundreds_of_tags_take_no_more_than_a_few(comm):
    """Of staging memory; nor does what came before it was asked for stay."""
    p, me = comm.size, comm.rank
    if p == 1:
        return
    group = dist.new_group()
    right, left = (me + 1) % p, (me - 1) % p

    def exchange(tags):
        works = [dist.isend(message(tag, 100_000), right, group, tag) for tag in tags]
        for tag in reversed(tags):
            dist.recv(x := torch.empty(100_000), left, group, tag)
            assert torch.equal(x, message(tag, 100_000)), tag
        for work in works:
            work.wait()

    exchange(range(10))
    dist.barrier()
    before = blocks_held(), rss()
    for tag in range(10, 400, 10):
        exchange(range(tag, tag + 10))
    dist.barrier()
    after = blocks_held(), rss()
    assert after[0] < before[0] + (8 << 20), (before, after)
    assert after[1] < before[1] + (64 << 20), (before, after)  # the messages are 160 MB
    dist.barrier()


def rss():
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


def check_random_programs(comm):
    if comm.size > 1:
        for seed in range(2 * TIMES):
            random_points.play_named(seed)


def check_random_programs_of_any_source(comm):
    if comm.size > 1:
        for seed in range(2 * TIMES):
            random_points.play_any(seed)


def check_random_programs_of_threads(comm):
    if comm.size > 1:
        for seed in range(TIMES):
            random_points.play_threads(seed)


if __name__ == "__main__":
    import point_checks

    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    run_checks(checks_in(point_checks))
    dist.destroy_process_group()
