"""Ways of exchanging gradients: DDP, types of KVStore, BSP-SGD, overlap; and their libraries.

A way has `net` (the module of the forward pass), `finish()` (the work after the backward pass:
the rest of the exchange, and the update), `exchange()` (the collectives of a step alone), and
`quiet()` (a context in which backward passes exchange nothing).
"""

import contextlib
import queue
import threading

import torch
import torch.distributed as dist
from paceline import _core, kvstore
from paceline.errors import UsageError
from torch.nn.parallel import DistributedDataParallel

STORES = ("funnel", "concom", "depcha", "auto")
NAMES = ("ddp", *STORES, "bsp1", "bsp2", "bsp3", "bsp3-overlap", "overlap", "overlap-updates")
OVERS = ("paceline", "gloo", "mpi")
BOTH = ("ddp", "funnel", "bsp2", "bsp3")  # what gloo and an MPI can do, too
COLLECTIVES = {"lp": "linear_pipeline", "mst": "minimum_spanning_tree",
               "be": "bidirectional_exchange"}
BUCKET_BYTES = 25 << 20  # of DDP
EVERY = 5


def check(name, over, collectives):
    """Raises UsageError for unknown names."""
    for word, words, what in ((name, NAMES, "way"), (over, OVERS, "library")):
        if word not in words:
            raise UsageError(f"train: there is no {what} {word!r}; there are {', '.join(words)}.")
    if over != "paceline" and name not in BOTH:
        raise UsageError(f"train: {name} over {over}: it needs several calls under way, which only "
                         f"Paceline has. Over {over} there are {', '.join(BOTH)}.")
    if collectives and (over != "paceline" or not name.startswith("bsp")):
        raise UsageError("train: --collectives is for bsp1, bsp2 and bsp3 over paceline.")
    if collectives:
        method_of(collectives, name)


def method_of(collectives, name):
    """BSP's `method`: of lp, mst, be, or an algorithm's name, for each of the calls that it has and
    that this way makes. Raises UsageError."""
    if collectives in COLLECTIVES:
        return COLLECTIVES[collectives]
    calls = ("allreduce", "broadcast") if name.startswith("bsp3") else ("reduce", "broadcast")
    found = {row["collective"]: collectives for row in _core.algorithms()
             if row["name"] == collectives and row["collective"] in calls}
    if not found:
        raise UsageError(f"train: --collectives {collectives}: neither {', '.join(COLLECTIVES)} "
                         f"nor an algorithm for {' or '.join(calls)}; `paceline explain "
                         f"{calls[0]}` lists them.")
    return found


def make(name, over, net, optimizer_of, collectives=None):
    """The way of that name. Collective. `optimizer_of(parameters)`."""
    check(name, over, collectives)
    carrier = None if over == "paceline" else CARRIERS[over]()
    if name == "ddp":
        return Ddp(net, optimizer_of, over, carrier)
    if over != "paceline":
        return OverCarrier(net, optimizer_of, name, carrier)
    if name in STORES:
        return Stored(net, optimizer_of, name)
    if name == "overlap":
        return Overlapped(net, optimizer_of)
    if name == "overlap-updates":
        return Updated(net, optimizer_of)
    return Bsp(net, optimizer_of, name, collectives)


class Way:
    """Base of all ways; the module's comment describes the methods."""

    def __init__(self, net, optimizer_of):
        self.net, self.optimizer = net, optimizer_of(net.parameters())

    def quiet(self):
        """Most ways exchange in finish()."""
        return contextlib.nullcontext()

    def gradients(self):
        """All, in the order in which the backward pass makes them, roughly."""
        return [p.grad for p in reversed(list(self.net.parameters())) if p.grad is not None]

    def finish(self):
        """The exchange and the update."""
        self.exchange()
        self.optimizer.step()

    def settle(self):
        """Returns when the weights are those of the last step. Collective."""

    def close(self):
        """Leaves what it has opened. Collective."""


# --- other libraries ------------------------------------------------------------------------------


class Gloo:
    """torch.distributed over gloo, call by call."""

    def __init__(self):
        self.group = dist.new_group(backend="gloo")

    def allreduce(self, x):
        """The average, in place."""
        dist.all_reduce(x, group=self.group)
        x.div_(dist.get_world_size())

    def reduce(self, x):
        """The average, on rank 0."""
        dist.reduce(x, 0, group=self.group)
        x.div_(dist.get_world_size())

    def broadcast(self, x):
        """Broadcasts `x` from rank 0."""
        dist.broadcast(x, 0, group=self.group)


class HostMpi:
    """The MPI of the host, through mpi4py; for DDP in a thread beside the one that computes, as
    Horovod calls it."""

    group = None

    def __init__(self):
        import os

        from paceline import mpi

        os.environ["MPI4PY_LIBMPI"] = mpi.path_of(mpi.load()[1])
        try:
            from mpi4py import MPI
        except ImportError as error:  # its wheels look for some MPIs by a name which they lack
            raise UsageError(f"train: --over mpi needs mpi4py, which does not load ({error}); pip "
                             "install mpi4py, or name another MPI by PACELINE_MPI.") from None
        self.mpi, self.world = MPI, MPI.COMM_WORLD
        if self.world.size != dist.get_world_size():
            raise UsageError(f"train: --over mpi: the MPI has {self.world.size} ranks, and there "
                             f"are {dist.get_world_size()}; start them by its mpiexec.")
        self.buckets = queue.SimpleQueue()
        threading.Thread(target=self.work, name="mpi", daemon=True).start()

    def allreduce(self, x):
        """The average, in place."""
        self.world.Allreduce(self.mpi.IN_PLACE, x.numpy())
        x.div_(self.world.size)

    def reduce(self, x):
        """The average, on rank 0."""
        mine = self.mpi.IN_PLACE if self.world.rank == 0 else x.numpy()
        self.world.Reduce(mine, x.numpy() if self.world.rank == 0 else None)
        x.div_(self.world.size)

    def broadcast(self, x):
        """Rank 0's."""
        self.world.Bcast(x.numpy())

    def average(self, _, bucket):
        """DDP's communication hook: a future of the bucket's average."""
        future = torch.futures.Future()
        self.buckets.put((bucket.buffer(), future))
        return future

    def work(self):
        """The thread; the process ends with it at work."""
        while True:
            buffer, future = self.buckets.get()
            try:
                self.allreduce(buffer)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(buffer)


CARRIERS = {"gloo": Gloo, "mpi": HostMpi}


class OverCarrier(Way):
    """funnel, bsp2 and bsp3: one call after the other when the backward pass is over."""

    def __init__(self, net, optimizer_of, name, carrier):
        super().__init__(net, optimizer_of)
        self.name, self.carrier, self.steps = name, carrier, 0
        with torch.no_grad():
            for tensor in net.state_dict().values():
                self.carrier.broadcast(tensor)

    def exchange(self):
        """Each gradient; for bsp2 the weights, too."""
        each = self.carrier.reduce if self.name == "bsp2" else self.carrier.allreduce
        for gradient in self.gradients():
            each(gradient)
        if self.name == "bsp2":
            self.spread()

    def spread(self):
        """Rank 0's weights."""
        for parameter in self.net.parameters():
            self.carrier.broadcast(parameter.detach())

    def finish(self):
        """The update stands between the reduce and the broadcast of bsp2."""
        self.steps += 1
        if self.name == "bsp2":
            for gradient in self.gradients():
                self.carrier.reduce(gradient)
            if dist.get_rank() == 0:
                self.optimizer.step()
            self.spread()
            return
        super().finish()
        if self.name == "bsp3" and self.steps % EVERY == 0:
            self.spread()


# --- torch's own ----------------------------------------------------------------------------------


class Ddp(Way):
    """DistributedDataParallel: its backward pass exchanges."""

    def __init__(self, net, optimizer_of, over, carrier, **options):
        group = carrier.group if carrier else None
        # Heads that no loss reaches in a pass do not occur: every parameter has its gradient.
        wrapped = DistributedDataParallel(net, process_group=group, **options)
        if over == "mpi":
            wrapped.register_comm_hook(None, carrier.average)
        super().__init__(wrapped, optimizer_of)
        self.carrier, self.group = carrier, group

    def quiet(self):
        return self.net.no_sync()

    def finish(self):
        """Updates: the backward pass has exchanged."""
        self.optimizer.step()

    def exchange(self):
        """Buckets of DDP's length, all under way."""
        flat, works = torch.cat([g.reshape(-1) for g in self.gradients()]), []
        for part in flat.split(BUCKET_BYTES // flat.element_size()):
            if isinstance(self.carrier, HostMpi):
                self.carrier.allreduce(part)
            else:
                works.append(dist.all_reduce(part, group=self.group, async_op=True))
        for work in works:
            work.wait()


# --- ours -----------------------------------------------------------------------------------------


class Stored(Way):
    """Algorithm of the documents: for each key push and pull, then update. Keys are numbered from
    the first layer on; depcha and auto push all and then pull all."""

    def __init__(self, net, optimizer_of, kind):
        from paceline.torch.backward import spread_from_root
        from paceline.torch.memory import group_of

        super().__init__(net, optimizer_of)
        comm = group_of(None, "train")._comm.dup()
        spread_from_root(comm, net)
        self.kind = kind
        self.store = kvstore.create(kind, comm, op="average")
        self.parameters = list(net.parameters())
        self.keys = list(range(len(self.parameters)))
        self.store.init(self.keys, [p.detach().clone() for p in self.parameters])

    def exchange(self):
        """Every gradient's average."""
        gradients = [p.grad for p in self.parameters]
        if self.kind in ("depcha", "auto"):
            self.store.push(self.keys, gradients)
            self.store.pull(self.keys, gradients)
        else:
            for key, gradient in zip(self.keys, gradients):
                self.store.pushpull(key, gradient)
        self.store.wait()

    def close(self):
        self.store.close()


class Overlapped(Way):
    """paceline.torch.overlap."""

    def __init__(self, net, optimizer_of):
        import paceline.torch

        super().__init__(net, optimizer_of)
        self.overlap = paceline.torch.overlap(net)

    def quiet(self):
        return self.overlap.no_sync()

    def finish(self):
        """The backward pass has exchanged."""
        self.optimizer.step()

    def exchange(self):
        """Exchanges through the same store, all at once."""
        count = len(list(self.net.parameters()))
        for i in range(count):
            self.overlap._push(i)
        self.overlap._pull([True] * count)

    def close(self):
        self.overlap.remove()


class Updated(Overlapped):
    """... whose layers are updated in the background, while the next forward pass begins."""

    def __init__(self, net, optimizer_of):
        import paceline.torch

        Way.__init__(self, net, optimizer_of)
        self.overlap = paceline.torch.overlap(net, optimizer=self.optimizer)

    def finish(self):
        """The rest goes on under the next forward pass."""

    def exchange(self):
        """The same without updates, on zeros: there are no gradients after a step."""
        parameters = list(self.net.named_parameters())
        for i, (_, parameter) in enumerate(parameters):
            parameter.grad = torch.zeros_like(parameter)
            self.overlap._push(i)
        store = self.overlap.store
        store.pull([name for name, _ in parameters], [p.grad for _, p in parameters])
        store.wait()
        self.net.zero_grad()

    def settle(self):
        self.overlap.wait()


class Bsp(Way):
    """paceline.torch.bsp."""

    def __init__(self, net, optimizer_of, name, collectives):
        from paceline.torch.bsp import BSP

        super().__init__(net, optimizer_of)
        method = method_of(collectives, name) if collectives else None
        self.algorithm = int(name[3])
        self.bsp = BSP(net, self.optimizer, self.algorithm, method, EVERY,
                       overlap=name.endswith("-overlap"))

    def quiet(self):
        return self.bsp.no_sync()

    def finish(self):
        self.bsp.step()

    def exchange(self):
        """The calls of a step, one after the other."""
        self.bsp.exchange()

    def settle(self):
        if self.algorithm == 1:  # weights travel with the next forward pass
            self.bsp.synchronise()

    close = settle
