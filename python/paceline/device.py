"""Collectives on the memory of devices: CUDA's, or emulated ones for programs without a GPU.

Three classes connect devices:
- Group: one process drives several devices.
- Peers: each process drives one device, and reaches the memory of the other devices of its node.
- Link: each process drives one device, on any node; messages go through pinned host memory.

paceline.Communicator takes arrays on CUDA devices as well, and works like Link.

    devices = paceline.device.emulated(4)
    group = paceline.device.Group(devices)
    arrays = [numpy.full(1000, position, "float32") for position in range(group.size)]
    group.allreduce(arrays)        # enqueues the call and returns
    group.synchronize()            # waits for the sums

A group has positions from 0 to size - 1, each on a device. Every method takes one array for each
position, and enqueues the call for all of them, without waiting. The devices execute the calls of a
group one after the other. Arrays of emulated devices are numpy arrays.
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
    """Makes `count` devices that the host emulates, for programs and tests without a GPU.

    threads: True runs each stream in a thread. False runs all work in synchronize(), in a random
    order that `seed` draws from the allowed ones. memory_bytes: memory of each device, in bytes.

    Raises UsageError for a count below 1.
    """
    return _core.EmulatedDevices(count, threads, seed, memory_bytes)


def cuda() -> _core.Devices:
    """Returns the CUDA devices of this machine. Raises RefusalError, which names the cause, if
    there are none."""
    return _core.cuda_devices()


def near_order(devices: Any) -> list[int]:
    """Returns the numbers of the devices in an order in which neighbours have fast links.

    Algorithms that send to neighbours are faster on Group(devices, near_order(devices)).
    """
    return topology.near_order(devices)


class Array:
    """A flat array in the memory of a device. On CUDA devices it has __cuda_array_interface__,
    through which other libraries use it."""

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
        """Makes an array of `shape` on the same device with the same type."""
        return Array(self._devices, self.device, math.prod(shape), self.dtype)

    def put(self, values: Any) -> "Array":
        """Copies `values`, which has the same length, into the array. Returns the array."""
        array = numpy.ascontiguousarray(values, self.dtype)
        self._memory.write(array.reshape(-1).view("uint8"))
        return self

    def get(self) -> numpy.ndarray:
        """Returns a copy as a numpy array."""
        array = numpy.empty(self.shape, self.dtype)
        self._memory.read(array.view("uint8"))
        return array


def empty(devices: Any, device: int, count: int, dtype: Any = "float32") -> Any:
    """Makes an array of `count` elements on a device, which Peers can open in other processes.

    Returns a numpy array on emulated devices, and an Array on CUDA devices. Raises UsageError for a
    wrong argument, and ResourceError if the device has no memory left.
    """
    if devices.kind == "cuda":
        return Array(devices, device, count, dtype)
    kind = numpy.dtype(dtype)
    return _core.emulated_empty(devices, device, count * kind.itemsize).view(kind)


def timed(count: int, moves: bool = True) -> _core.EmulatedDevices:
    """Makes emulated devices that record the enqueued work; spans() returns its model times.

    moves: False moves no data, which saves time with long messages.
    """
    return _core.EmulatedDevices(count, keeps_work=True, moves=moves)


class _Calls:
    """The collectives. `x` and `out` are arrays; a Group takes a list with one for each
    position."""

    def allreduce(self, x: Any, out: Any = None, op: str = "sum", **options: Any) -> Any:
        """Combines `x` (n) of all ranks into `out` (n; None: `x`) on every rank. Returns `out`."""
        return self._do("allreduce", options, x, out, op)

    def reduce(
        self, x: Any, out: Any = None, op: str = "sum", root: int = 0, **options: Any
    ) -> Any:
        """Combines `x` (n) of all ranks into `out` (n; None: `x`) on `root`."""
        return self._do("reduce", options, x, out, op, root)

    def broadcast(self, x: Any, root: int = 0, **options: Any) -> Any:
        """Copies `x` (n) of `root` into `x` of all other ranks. Returns `x`."""
        return self._do("broadcast", options, x, root)

    def reduce_scatter(self, x: Any, out: Any = None, op: str = "sum", **options: Any) -> Any:
        """Combines `x` (size * n), and puts the r-th piece (n) into `out` of rank r."""
        return self._do("reduce_scatter", options, x, out, op)

    def allgather(self, x: Any, out: Any = None, **options: Any) -> Any:
        """Concatenates `x` (n) of all ranks into `out` (size * n) on every rank."""
        return self._do("allgather", options, x, out)

    def alltoall(self, x: Any, out: Any = None, **options: Any) -> Any:
        """Sends the r-th piece of `x` (size * n) to rank r; `out` has the pieces in rank order."""
        return self._do("alltoall", options, x, out)

    def _do(self, collective: str, options: Any, *arguments: Any) -> Any:
        raise NotImplementedError


class _OfRank(_Calls):
    """The methods of a rank with one device."""

    def __init__(self, comm: Communicator, core: Any):
        self._core = core
        self.rank, self.size = comm.rank, comm.size

    def _do(self, collective: str, options: Any, *arguments: Any) -> Any:
        call, result = calls.named(collective)(self, *arguments)
        self._core.enqueue(call, calls.knobs(**options) if options else None)
        return result

    def explain(self, collective: str, *arguments: Any, **options: Any) -> str:
        """Returns a text: what such a call would do, and why. Collective in Peers."""
        call, _ = calls.named(collective)(self, *arguments)
        return self._core.explain(call, calls.knobs(**options) if options else None)

    def synchronize(self) -> None:
        """Returns when all enqueued work is done. Raises its error."""
        self._core.synchronize()


class Link(_OfRank):
    """One device of this rank, on any node; messages go through pinned host memory.

    comm: each of its ranks makes a Link. devices: from cuda() or emulated(). device: the number of
    this rank's device; arrays are on it (numpy arrays on emulated devices).

    Methods enqueue the call and return. Block by block, the host copies out, sends, receives and
    copies in, while the device combines. All ranks begin the calls on a device in the same order,
    also those of several communicators; otherwise calls may time out.

        link = paceline.device.Link(paceline.init(), paceline.device.cuda(), device=0)
        link.allreduce(x)
        link.synchronize()
    """

    def __init__(self, comm: Communicator, devices: Any, device: int = 0):
        super().__init__(comm, _core.DeviceLink(comm._core, devices, device))

    def stages(self) -> dict[str, Any]:
        """Returns the time that the stages of the pipeline have worked so far, as a dict.

        seconds: by stage, the seconds with at least one block in it. The stage register pins
        memory, which a pool keeps for later calls. calls_s: seconds with a call under way. Stages
        overlap, so their seconds may add up to more than calls_s.
        """
        return self._core.stages()


class Peers(_OfRank):
    """One device of this rank, which reaches the devices of the other ranks of its node.

    Collective over `comm`. Data goes from device to device, and not through the host. Arrays lie in
    memory that other processes can open: from empty(), or from cudaMalloc. Methods return when all
    ranks have made the call; the devices may still be working.
    """

    def __init__(
        self, comm: Communicator, devices: Any, device: int = 0, machine: str = USUAL
    ):
        super().__init__(comm, _core.DevicePeers(comm._core, devices, device, machine))

    @property
    def broken(self) -> str:
        """The error that broke the group, as text; empty if it works."""
        return self._core.broken


class Group(_Calls):
    """Several devices of one process, which take part in collectives as positions.

    devices: from cuda() or emulated(). positions: the device of each position; None: each device
    once. A device may have several positions. machine: machine model for the choice of algorithms,
    by name or settings as `paceline explain --machine` takes it; it holds the start-up and the rate
    of copies and sums. paceline.device_rates.measured() measures it.

    All methods enqueue the call and return; they raise UsageError and RefusalError before they
    enqueue anything. They take the keywords algorithm, segments, window, radix and blocks of
    Communicator. synchronize() raises the errors of devices.
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
        """Returns when all enqueued work is done. Raises RankLost if a device is lost."""
        self._core.synchronize()

    def explain(self, collective: str, *arguments: Any, **options: Any) -> str:
        """Returns a text: what such a call would enqueue, and why."""
        prepared, _ = self._prepare(collective, *arguments)
        return self._core.explain(prepared, self._knobs(options))

    def plan(self, collective: str, *arguments: Any, **options: Any) -> "Plan":
        """Sets up a call once, to be started many times on the same arrays. Returns a Plan."""
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
    """A call of a Group that can be started many times. Each start reads the arrays anew."""

    def __init__(self, core: _core.DevicePlan, results: Sequence[Buffer]):
        self._core = core
        self.results = results

    def start(self) -> None:
        """Enqueues the call once more, after all work enqueued before."""
        self._core.start()
