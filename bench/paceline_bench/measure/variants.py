"""Variants of a benchmark: this library, its algorithms, and others, on the same buffers.

Every variant binds a case to a function without arguments: the call as a user writes it in Python,
and nothing else. `paceline` variants are methods of paceline.Communicator on numpy arrays; `torch`
variants are functions of torch.distributed on tensors over the same memory, so that a backend of
ours and gloo are called through the very same lines. `mpi` is the host's own collective, on the
numpy arrays and straight out of the binding. Natively, `paceline` and `mpi` variants are calls of
the core and of the MPI with no Python between; an MPI can then also be called in other forms, and
ours without arithmetic.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from paceline import _core, calls, mpi

from paceline_bench import _native

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
    shared: bool = False  # in buffers of Communicator.empty()
    segment_bytes: int = 0  # instead of a number of segments: the length of each
    form: str = ""  # of mpi: concurrent, sendrecv_ring; empty: the blocking collective
    combines: bool = True  # else transfers alone: results are wrong, and not checked
    predict: str = ""  # PACELINE_PREDICT of its processes; empty: as this process has it

    @property
    def label(self):
        """The variant's name in tables and records."""
        if self.library == "mpi":
            return "mpi" + self.of_form()
        if self.library != "paceline":
            return self.library.replace(":", " ")
        return (self.algorithm or "paceline") + "".join((
            " shared" if self.shared else "",
            self.pieces(),
            f", radix {self.radix}" if self.radix else "",
            f", {self.blocks} blocks" if self.blocks else "",
            "" if self.combines else ", no reduce",
            f", predict {self.predict}" if self.predict else ""))

    @property
    def learns(self):
        """True if its calls learn which ranks are late: calls that ask for nothing do."""
        return (self.library == "paceline" and self.combines and not self.predict
                and not any(self.wish(1).values()))

    @property
    def environment(self):
        """Variables that its processes need, besides what all have."""
        return {"PACELINE_PREDICT": self.predict} if self.predict else {}

    def pieces(self):
        """The cut of the message, as part of the label."""
        if self.segment_bytes:
            return f" by {_core.human_bytes(self.segment_bytes)}"
        return f" x {self.segments}" if self.segments else ""

    def of_form(self):
        """The form of the MPI's call, as part of the label."""
        if self.form == "concurrent":
            return " non-blocking" if self.segments == 1 else self.pieces()
        return " ring of Sendrecv" if self.form == "sendrecv_ring" else ""

    def count(self, nbytes):
        """Segments of a message; 0: chosen."""
        return -(-nbytes // self.segment_bytes) if self.segment_bytes else self.segments

    def wish(self, nbytes):
        """The wishes that it passes to the choice; empty and 0: none."""
        found = {name: getattr(self, name)
                 for name in ("algorithm", "segments", "window", "radix", "blocks")}
        return {**found, "segments": self.count(nbytes)}

    def options(self, nbytes):
        """The keywords of the call."""
        return {name: value for name, value in self.wish(nbytes).items() if value}

    def without_arithmetic(self):
        """The same with transfers alone."""
        return replace(self, combines=False)


def tensor(array, dtype):
    """A torch tensor over the memory of a numpy array; numpy has no bfloat16 of its own."""
    import torch

    if array is None:
        return None
    if dtype == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def core_call(owner, case):
    """(collective, input, output, op, root) for the core; `owner` has a rank and a size."""
    x, out = case.input, case.output
    if case.dtype == "bfloat16":
        x, out = tensor(x, case.dtype), tensor(out, case.dtype)
        out = x if case.input is case.output else out  # in place is one object
    arguments = {
        "barrier": (), "broadcast": (x, case.root),
        "allreduce": (x, out, case.op),
        "reduce": (x, out, case.op, case.root),
        "reduce_scatter": (x, out, case.op),
        "gather": (x, out, case.root),
        "scatter": (x, out, case.root),
    }.get(case.collective, (x, out))  # fmt: skip
    (*call, _, _), _ = calls.named(case.collective)(owner, *arguments)
    return call


def rewritten(case):
    """The function that writes the input of a case anew, as training does; None if it has none."""
    if case.input is None:
        return None
    return _core.native_combine(case.input, [case.pattern], "max")


class OfPaceline:
    """Calls through paceline.Communicator."""

    def __init__(self, communicator, native=False):
        self.communicator, self.native = communicator, native

    @cached_property
    def without_sums(self):
        """A communicator of the same ranks whose calls only transfer. Collective."""
        made = self.communicator.dup()
        made._core.leave_out_sums()
        return made

    def bind(self, variant, case):
        """The call as a function without arguments."""
        comm, options = self.communicator, variant.options(case.bytes)
        if self.native:
            comm = comm if variant.combines else self.without_sums
            call = _core.native_call(comm._core, *core_call(comm, case), calls.knobs(**options))
            return _native.timed(call, rewritten(case))
        if not variant.combines:
            raise Unavailable("the arithmetic can be left out of native calls alone")
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
            return lambda: call(x, out, op=case.op, **more, **options)
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
    """Calls of the MPI's own collectives, among all its processes; `library` and `found` as
    paceline.mpi.load() returns them."""

    def __init__(self, library, found, native=False):
        self.world, self.native = library.world(), native
        self.peer = _native.Peer(library.abi, mpi.path_of(found), self.world)

    def allreduce(self, x, out):
        """The sum of numpy arrays, by the MPI's own."""
        _native.mpi_call(self.peer, "allreduce", x, out, x.size, x.dtype.name)()

    def bind(self, variant, case):
        """The call as a function without arguments."""
        if case.dtype == "bfloat16":
            raise Unavailable("MPI has no 16-bit floats")
        if variant.form and not self.native:
            raise Unavailable("only its blocking collective can be called through Python")
        return _native.mpi_call(
            self.peer, case.collective, case.input, case.output, case.unit, case.dtype, case.op,
            case.root, variant.form or "blocking", variant.count(case.bytes) or 1, rewritten(case))


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


