"""Ranks that fork in the middle of their work, as data loaders do; each rank prints what it saw."""

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
import time

import numpy

import paceline


def refused(call):
    """The sentence with which `call` is refused before anything is sent."""
    try:
        call()
    except paceline.UsageError as error:
        return str(error)
    return "nothing"


def in_child(body, ends):
    """Runs body in a child; how it ended (0: well). `ends`: as a script does, or at once."""
    child = os.fork()
    if child == 0:
        try:
            body()
        except BaseException as error:
            sys.stderr.write(f"child: {error!r}\n")
            os._exit(1)
        if ends == "at once":
            os._exit(0)
        sys.exit(0)  # with all that an interpreter does at its end
    return child


def status_of(child, limit_s=20):
    """How it ended; -1 if it did not."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -1


def work(comm, times=200):
    """Whether so many sums are right."""
    return all(comm.allreduce(numpy.full(7, comm.rank + 1.0))[0] == sum(range(comm.size + 1))
               for _ in range(times))


def children(comm):
    """Children compute, are refused, clean up and end, while their parents go on."""
    part = comm.split(0, comm.rank)
    shared = comm.empty(1000)
    pending = comm.iallreduce(numpy.ones(100_000)) if comm.rank else None

    def body():
        assert (numpy.ones((50, 50)) @ numpy.ones((50, 50)))[0, 0] == 50
        said = [refused(call) for call in (
            lambda: comm.allreduce(numpy.ones(3)), lambda: part.barrier(),
            lambda: comm.iallreduce(numpy.ones(3)), lambda: comm.plan("barrier"),
            lambda: comm.split(0, 0), lambda: comm.empty(10), lambda: comm.flight_record(),
            lambda: pending.wait() if pending else paceline.init(), paceline.init)]
        assert all("fork" in one for one in said), said
        assert "is a fork of rank" in comm.broken and "is a fork" in repr(part)
        shared[:] = shared + 0  # stays where it is
        paceline.finalize()
        assert not paceline.is_initialized()

    started = [in_child(body, ends) for ends in ("at once", "as a script") for _ in range(3)]
    pending = pending or comm.iallreduce(numpy.ones(100_000))
    right = pending.wait()[0] == comm.size and work(comm) and work(part)
    print("children", [status_of(child) for child in started], right, work(comm))


def threads(comm):
    """Forks while other threads are inside calls: whatever they hold is held in the child."""
    done = threading.Event()
    parts = [comm.split(0, comm.rank) for _ in range(2)]

    def busy(part):
        while part.allreduce(numpy.array([0.0 if done.is_set() else 1.0]))[0] == part.size:
            pass

    running = [threading.Thread(target=busy, args=(part,)) for part in parts]
    for thread in running:
        thread.start()

    def body():
        global kept
        kept = refused(lambda: comm.barrier()), [refused(parts[i].barrier) for i in range(2)]
        parts.clear()

    found = [status_of(in_child(body, "as a script")) for _ in range(10)]
    done.set()
    for thread in running:
        thread.join()
    print("threads", sum(map(abs, found)), work(comm))


def pool(comm):
    """What multiprocessing forks: workers that compute, and go before and after a finalize()."""
    with multiprocessing.get_context("fork").Pool(2) as workers:
        squares = workers.map(square, range(50))
        right = work(comm)
    print("pool", squares == [n * n for n in range(50)], right and work(comm))


def square(n):
    return int(numpy.square(n))


def another_world(comm):
    """A child may join a world of its own."""
    def body():
        assert paceline.init(0, 1).allreduce(numpy.ones(2)).tolist() == [1, 1]
        paceline.finalize()

    print("world", status_of(in_child(body, "as a script")), work(comm))


def another_world_with_records(comm):
    """A signal makes the child's world, and then the parent's, write its record; what else handles
    the signal, and calls the handler that it has found, still does."""
    above, below = [os.path.join(os.environ["PACELINE_RECORD_DIR"], f"{name}-{comm.rank}")
                    for name in ("chained", "child")]
    chained = open(above, "w+")
    faulthandler.register(signal.SIGUSR2, file=chained, chain=True)

    def is_written(path):
        os.kill(os.getpid(), signal.SIGUSR2)
        until = time.monotonic() + 20
        while not os.path.exists(path) and time.monotonic() < until:
            time.sleep(0.01)
        return os.path.exists(path)

    def body():
        os.kill(os.getpid(), signal.SIGUSR2)  # before it has a world
        os.environ["PACELINE_RECORD_DIR"] = below
        paceline.init(0, 1)
        assert is_written(f"{below}/rank-0.json")
        paceline.finalize()

    os.mkdir(below)
    found = status_of(in_child(body, "as a script"))
    right = is_written(os.path.join(os.environ["PACELINE_RECORD_DIR"], f"rank-{comm.rank}.json"))
    chained.seek(0)
    print("records", found, right, chained.read().count("most recent call first") >= 3)


def loader(comm):
    """A training whose data comes from forked workers: the losses of one without them."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, TensorDataset

    paceline.finalize()
    torch.set_num_threads(1)
    dist.init_process_group("paceline")
    generator = torch.Generator().manual_seed(comm.rank)
    data = TensorDataset(torch.randn(96, 8, generator=generator),
                         torch.randn(96, 1, generator=generator))

    def losses(workers):
        torch.manual_seed(1)
        model = DistributedDataParallel(torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        kind = {"multiprocessing_context": "fork", "worker_init_fn": worker} if workers else {}
        for _ in range(3):
            for x, y in DataLoader(data, 16, num_workers=workers, **kind):
                optimizer.zero_grad()
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                dist.all_reduce(loss.detach())
                yield loss.item()

    same = list(losses(0)) == list(losses(2))
    dist.destroy_process_group()
    print("loader", same)


def worker(number):
    """In a worker of the data loader."""
    import torch
    import torch.distributed as dist

    assert "fork" in refused(lambda: dist.all_reduce(torch.ones(3)))
    assert "fork" in refused(paceline.init)


def killed_parent(comm):
    """A child outlives its rank; the others hear of the rank all the same, while the child lives:
    they end it."""
    child = os.fork() if comm.rank == 0 else 0
    if comm.rank == 0 and child == 0:
        time.sleep(30)
        os._exit(0)
    number = int(comm.broadcast(numpy.array([child]))[0])
    if comm.rank == 0:
        os.kill(os.getpid(), 9)
    begin = time.monotonic()
    try:
        comm.barrier()
    except paceline.RankLost:
        print(f"lost {time.monotonic() - begin < 10}")
    finally:
        os.kill(number, 9)


if __name__ == "__main__":
    globals()[sys.argv[1]](paceline.init())
