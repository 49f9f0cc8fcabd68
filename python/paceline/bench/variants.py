"""What is compared: this library, its algorithms one by one, and others, on the same buffers.

Every variant binds a case to a function without arguments: the call as a user writes it in Python,
and nothing else. `paceline` variants are methods of paceline.Communicator on numpy arrays; `torch`
variants are functions of torch.distributed on tensors over the same memory, so that a backend of
ours and gloo are called through the very same lines. `mpi` is the host's own collective, on the
numpy arrays and straight out of the binding.
"""

from dataclasses import dataclass

from paceline import calls

TORCH_OPS = {"sum": "SUM", "average": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX",
             "bit_and": "BAND", "bit_or": "BOR", "bit_xor": "BXOR"}  # fmt: skip


class Unavailable(Exception):
    """This variant cannot do this call, on any rank."""


@dataclass(frozen=True)
class Variant:
    """A row of the result; `library` is paceline (the Communicator), torch:<backend> or mpi."""

    library: str
    algorithm: str = ""
    segments: int = 0
    window: int = 0
    radix: int = 0
    blocks: int = 0

    @property
    def label(self):
        """How tables and records call it."""
        if self.library != "paceline":
            return self.library.replace(":", " ")
        return (self.algorithm or "paceline") + "".join((
            f" x {self.segments}" if self.segments else "",
            f", radix {self.radix}" if self.radix else "",
            f", {self.blocks} blocks" if self.blocks else ""))

    def wish(self):
        """What it asks the choice for; empty and 0: nothing."""
        return {name: getattr(self, name)
                for name in ("algorithm", "segments", "window", "radix", "blocks")}

    def options(self):
        """The keywords of the call."""
        return {name: value for name, value in self.wish().items() if value}


def tensor(array, dtype):
    """A torch tensor over the memory of a numpy array; numpy has no bfloat16 of its own."""
    import torch

    if array is None:
        return None
    if dtype == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


class OfPaceline:
    """Calls through paceline.Communicator."""

    def __init__(self, communicator):
        self.communicator = communicator

    def bind(self, variant, case):
        """The call as a function without arguments."""
        comm, options = self.communicator, variant.options()
        arrays = case.input, case.output
        if case.dtype == "bfloat16":
            arrays = tuple(tensor(array, case.dtype) for array in arrays)
        x, out = arrays
        call = getattr(comm, case.collective)
        if case.collective == "barrier":
            return lambda: call(**options)
        if case.collective == "broadcast":
            return lambda: call(x, case.root, **options)
        if case.collective in ("allreduce", "reduce"):
            more = {} if case.collective == "allreduce" else {"root": case.root}
            return lambda: call(x, op=case.op, **more, **options)
        if case.collective == "reduce_scatter":
            return lambda: call(x, out, case.op, **options)
        if case.collective in ("gather", "scatter"):
            return lambda: call(x, out, case.root, **options)
        return lambda: call(x, out, **options)


class OfTorch:
    """Calls through torch.distributed, in a process group of one backend."""

    def __init__(self, group):
        self.group = group

    def bind(self, variant, case):
        """The call as a function without arguments."""
        import torch.distributed as dist

        if case.op not in TORCH_OPS:
            raise Unavailable(f"torch.distributed has no operation '{case.op}'")
        group, op = self.group, getattr(dist.ReduceOp, TORCH_OPS[case.op])
        x, out = tensor(case.input, case.dtype), tensor(case.output, case.dtype)
        root = case.root
        if case.collective in ("gather", "scatter"):
            return self.bind_rooted(case, x, out)
        return {
            "allreduce": lambda: dist.all_reduce(x, op, group),
            "reduce": lambda: dist.reduce(x, root, op, group),
            "broadcast": lambda: dist.broadcast(x, root, group),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(out, x, op, group),
            "allgather": lambda: dist.all_gather_into_tensor(out, x, group),
            "alltoall": lambda: dist.all_to_all_single(out, x, group=group),
            "barrier": lambda: dist.barrier(group),
        }[case.collective]

    def bind_rooted(self, case, x, out):
        """gather and scatter take a list of the pieces at the root."""
        import torch.distributed as dist

        whole = out if case.collective == "gather" else x
        at_root = case.rank == case.root
        pieces = list(whole.chunk(case.ranks)) if at_root else None
        if case.collective == "gather":
            return lambda: dist.gather(x, pieces, case.root, self.group)
        return lambda: dist.scatter(out, pieces, case.root, self.group)


class OfMpi:
    """Calls of the MPI's own collectives, among all its processes."""

    def __init__(self, world):
        self.world = world

    def bind(self, variant, case):
        """The call as a function without arguments."""
        if case.dtype == "bfloat16":
            raise Unavailable("MPI has no 16-bit floats")
        arguments = {
            "barrier": (), "broadcast": (case.input, case.root),
            "allreduce": (case.input, None, case.op),
            "reduce": (case.input, None, case.op, case.root),
            "reduce_scatter": (case.input, case.output, case.op),
            "gather": (case.input, case.output, case.root),
            "scatter": (case.input, case.output, case.root),
        }.get(case.collective, (case.input, case.output))  # fmt: skip
        (*call, _, _), _ = calls.named(case.collective)(self.world, *arguments)
        run = self.world.run
        return lambda: run(*call)


def start_torch(backends, folder, rank, ranks):
    """One process group per backend; returns {"torch:<backend>": OfTorch}."""
    if not backends:
        return {}
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        backends[0], init_method=f"file://{folder}/torch", rank=rank, world_size=ranks)
    groups = {f"torch:{backends[0]}": OfTorch(dist.group.WORLD)}
    for backend in backends[1:]:
        groups[f"torch:{backend}"] = OfTorch(dist.new_group(backend=backend))
    return groups


