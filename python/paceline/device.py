"""Collectives on the memory of devices: CUDA's, or emulated ones for programs without a GPU.

Group: one process drives several devices. Peers: one process for each device of a node, which reach
each other's memory. Link: one process for each device anywhere, whose messages go through pinned
memory of the host, in a pipeline. paceline.Communicator takes arrays on CUDA devices as well, and
goes the way of Link.

    devices = paceline.device.emulated(4)
    group = paceline.device.Group(devices)
    arrays = [numpy.full(1000, position, "float32") for position in range(group.size)]
    group.allreduce(arrays)        # enqueued; the host goes on
    group.synchronize()            # now the sums are there

A group has positions from 0 to size - 1, each on a device. Every method takes one array for each
position, and enqueues the call for all of them: nothing is polled, and no rank is waited for. Calls
of a group follow each other. On emulated devices arrays are those of the host.
"""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy

from paceline import _core, calls, topology
from paceline.buffers import Buffer
from paceline.communicator import Communicator
from paceline.errors import UsageError

# The model by which algorithms are chosen for devices without measurements.
USUAL = "alpha_us=8,gbit_per_s=200,reduce_gbyte_per_s=400"


def emulated(
    count: int, threads: bool = False, seed: int = 1, memory_bytes: int = 1 << 40
) -> _core.EmulatedDevices:
    """`count` devices of the host, for programs and tests without a GPU.

    threads: one for each stream; else synchronize() does the work, in an order that `seed` draws
    from all that are allowed. memory_bytes: of each device. Raises UsageError.
    """
    return _core.EmulatedDevices(count, threads, seed, memory_bytes)


def cuda() -> _core.Devices:
    """The CUDA devices of this machine. Raises RefusalError, which says what is missing."""
    return _core.cuda_devices()


def near_order(devices: Any) -> list[int]:
    """The devices in an order whose neighbours are near, by links, switches and sockets: for
    algorithms that hand on to neighbours, Group(devices, near_order(devices))."""
    return topology.near_order(devices)


class Array:
    """A flat array in the memory of a device, which other libraries can take: on CUDA devices it
    has __cuda_array_interface__."""

    def __init__(self, devices: Any, device: int, count: int, dtype: Any = "float32"):
        self.dtype = numpy.dtype(dtype)
        self.shape = (int(count),)
        self.device = device
        self._devices = devices
        self._memory = _core.DeviceMemory(devices, device, self.nbytes)
        if devices.kind == "cuda":
            self.__cuda_array_interface__ = {
                "shape": self.shape, "typestr": self.dtype.str, "version": 3, "strides": None,
                "data": (self._memory.address, False), "stream": None,
            }  # fmt: skip

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.dtype.itemsize

    def new_empty(self, shape: Sequence[int]) -> "Array":
        """One on the same device with the same type, for results."""
        return Array(self._devices, self.device, math.prod(shape), self.dtype)

    def put(self, values: Any) -> "Array":
        """Copies `values`, as many as it has, into it. Returns it."""
        array = numpy.ascontiguousarray(values, self.dtype)
        self._memory.write(array.reshape(-1).view("uint8"))
        return self

    def get(self) -> numpy.ndarray:
        """A copy on the host."""
        array = numpy.empty(self.shape, self.dtype)
        self._memory.read(array.view("uint8"))
        return array


def empty(devices: Any, device: int, count: int, dtype: Any = "float32") -> Any:
    """An array of `count` elements on a device, which Peers can open in other processes.

    A numpy array on emulated devices, an Array on CUDA. Raises ResourceError, UsageError.
    """
    if devices.kind == "cuda":
        return Array(devices, device, count, dtype)
    kind = numpy.dtype(dtype)
    return _core.emulated_empty(devices, device, count * kind.itemsize).view(kind)


def timed(count: int, moves: bool = True) -> _core.EmulatedDevices:
    """Emulated devices that keep account of what is enqueued: spans() says when it would run.

    moves: False leaves all data where it is, for sizes that would take long.
    """
    return _core.EmulatedDevices(count, keeps_work=True, moves=moves)


class _Calls:
    """The collectives. `x` and `out` are arrays; of a Group an array for each position."""

    def allreduce(self, x: Any, out: Any = None, op: str = "sum", **options: Any) -> Any:
        """Combines `x` (n) of all into `out` (n; None: `x`) of all. Returns it."""
        return self._do("allreduce", options, x, out, op)

    def reduce(
        self, x: Any, out: Any = None, op: str = "sum", root: int = 0, **options: Any
    ) -> Any:
        """Combines `x` (n) of all into `out` at `root` (n; None: `x`)."""
        return self._do("reduce", options, x, out, op, root)

    def broadcast(self, x: Any, root: int = 0, **options: Any) -> Any:
        """Copies `x` (n) of `root` into that of all others. Returns `x`."""
        return self._do("broadcast", options, x, root)

    def reduce_scatter(self, x: Any, out: Any = None, op: str = "sum", **options: Any) -> Any:
        """Combines `x` (size * n), of which each gets its n into `out`."""
        return self._do("reduce_scatter", options, x, out, op)

    def allgather(self, x: Any, out: Any = None, **options: Any) -> Any:
        """Puts `x` (n) of all one behind the other into `out` (size * n)."""
        return self._do("allgather", options, x, out)

    def alltoall(self, x: Any, out: Any = None, **options: Any) -> Any:
        """Piece q of `x` (size * n) of r becomes piece r of `out` of q."""
        return self._do("alltoall", options, x, out)

    def _do(self, collective: str, options: Any, *arguments: Any) -> Any:
        raise NotImplementedError


class _OfRank(_Calls):
    """The methods of a rank with one device, however it reaches the others."""

    def __init__(self, comm: Communicator, core: Any):
        self._core = core
        self.rank, self.size = comm.rank, comm.size

    def _do(self, collective: str, options: Any, *arguments: Any) -> Any:
        call, result = calls.named(collective)(self, *arguments)
        self._core.enqueue(call, calls.knobs(**options) if options else None)
        return result

    def explain(self, collective: str, *arguments: Any, **options: Any) -> str:
        """Says what such a call would do, and why. With Peers: collective."""
        call, _ = calls.named(collective)(self, *arguments)
        return self._core.explain(call, calls.knobs(**options) if options else None)

    def synchronize(self) -> None:
        """Returns when all that was enqueued is done; raises what went wrong."""
        self._core.synchronize()


class Link(_OfRank):
    """A rank's device, whose messages go through pinned memory of the host, anywhere.

    comm: each of its ranks makes one. devices: of cuda() or emulated(); arrays are on `device`
    (of emulated devices: numpy arrays). Methods enqueue and return at once; the host copies out,
    sends, receives and copies in while the device combines, block by block. Calls on one device
    begin in the same order on all ranks, also those of several communicators; else they may time
    out.

        link = paceline.device.Link(paceline.init(), paceline.device.cuda(), device=0)
        link.allreduce(x)
        link.synchronize()
    """

    def __init__(self, comm: Communicator, devices: Any, device: int = 0):
        super().__init__(comm, _core.DeviceLink(comm._core, devices, device))

    def stages(self) -> dict[str, Any]:
        """Seconds that each stage of the pipeline has been at work so far.

        seconds: by stage, with at least one block in it; register: pinning memory, which later
        calls find in the pool. calls_s: with a call under way. Stages overlap: the seconds may be
        more together.
        """
        return self._core.stages()


class Peers(_OfRank):
    """A rank's device, which reaches those of the other ranks of the node: nothing goes through the
    host.

    Collective over `comm`. Arrays lie in memory that other processes can open: of empty(), or
    cudaMalloc'ed. Methods return when all ranks have made the call; the devices follow.
    """

    def __init__(
        self, comm: Communicator, devices: Any, device: int = 0, machine: str = USUAL
    ):
        super().__init__(comm, _core.DevicePeers(comm._core, devices, device, machine))

    @property
    def broken(self) -> str:
        """Empty, or why the group cannot be used any more."""
        return self._core.broken


class Group(_Calls):
    """Devices as the positions of collectives.

    devices: of emulated(). positions: for each position its device; None: each device once. A
    device may stand at several positions. machine: start-up and rate of copies and sums, for the
    choice of algorithms, in the words of --machine; paceline.device_rates.measured() finds it.

    All methods enqueue and return at once, and raise UsageError and RefusalError before that. They
    take the keywords algorithm, segments, window, radix and blocks of Communicator. synchronize()
    raises what has become of a device.
    """

    def __init__(
        self, devices: Any, positions: Sequence[int] | None = None, machine: str = USUAL
    ):
        self.devices = devices
        where = list(range(devices.count)) if positions is None else list(positions)
        self._core = _core.DeviceGroup(devices, where, machine)
        self.size: int = self._core.size

    def __repr__(self) -> str:
        return f"<paceline.device.Group of {self.size}>"

    def synchronize(self) -> None:
        """Returns when all that was enqueued is done. Raises RankLost if a device has gone."""
        self._core.synchronize()

    def explain(self, collective: str, *arguments: Any, **options: Any) -> str:
        """Says what such a call would enqueue, and why."""
        prepared, _ = self._prepare(collective, *arguments)
        return self._core.explain(prepared, self._knobs(options))

    def plan(self, collective: str, *arguments: Any, **options: Any) -> "Plan":
        """The call, captured to be started again and again on the same arrays."""
        prepared, results = self._prepare(collective, *arguments)
        return Plan(_core.DevicePlan(self._core, prepared, self._knobs(options)), results)

    def _do(self, collective: str, options: Any, *arguments: Any) -> Sequence[Buffer]:
        prepared, results = self._prepare(collective, *arguments)
        self._core.enqueue(prepared, self._knobs(options))
        return results

    def _knobs(self, options: dict[str, Any]) -> Any:
        for name in ("timeout_ms", "tag", "priority"):
            if name in options:
                raise UsageError(f"device: {name} is of calls between processes; leave it out.")
        return calls.knobs(**options) if options else None

    def _prepare(self, collective: str, *arguments: Any) -> tuple[list[Any], list[Any]]:
        """Arguments of the core for each position, and results of the call."""
        function = calls.named(collective)
        prepared, results = [], []
        for position in range(self.size):
            mine = [self._of(position, argument, collective) for argument in arguments]
            call, result = function(SimpleNamespace(rank=position, size=self.size), *mine)
            prepared.append(call)
            results.append(result)
        return prepared, results

    def _of(self, position: int, argument: Any, collective: str) -> Any:
        if argument is None or isinstance(argument, (str, int)):
            return argument
        if len(argument) != self.size:
            raise UsageError(
                f"device: {collective} takes an array for each of {self.size} positions; there are "
                f"{len(argument)}."
            )
        return argument[position]


class Plan:
    """A call of a Group that is started again and again; arrays are read anew by each start."""

    def __init__(self, core: _core.DevicePlan, results: Sequence[Buffer]):
        self._core = core
        self.results = results

    def start(self) -> None:
        """Enqueues the call once more, after all that was enqueued before."""
        self._core.start()
