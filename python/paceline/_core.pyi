"""The compiled core of Paceline. Use it through the package `paceline`."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray
from typing_extensions import CapsuleType

REFUSED: str = "(refused)"

class Communicator:
    """Ranks that call collectives together, in the same order."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def broken(self) -> str: ...
    @property
    def timeout_ms(self) -> int: ...
    @timeout_ms.setter
    def timeout_ms(self, arg: int, /) -> None: ...
    @property
    def machine(self) -> str: ...
    def run(
        self,
        collective: str,
        input: object | None,
        output: object | None,
        op: object | None,
        root: object | None,
        counts: object | None,
        received: object | None,
        knobs: object | None,
    ) -> None: ...
    def start(
        self,
        collective: str,
        input: object | None,
        output: object | None,
        op: object | None,
        root: object | None,
        counts: object | None,
        received: object | None,
        knobs: object | None,
        result: object | None,
    ) -> Request: ...
    def plan(
        self,
        collective: str,
        input: object | None,
        output: object | None,
        op: object | None,
        root: object | None,
        counts: object | None,
        received: object | None,
        knobs: object | None,
        result: object | None,
    ) -> Plan: ...
    def explain(
        self,
        collective: str,
        input: object | None,
        output: object | None,
        op: object | None,
        root: object | None,
        counts: object | None,
        received: object | None,
        knobs: object | None,
    ) -> str: ...
    def allocate(
        self, bytes: int
    ) -> tuple[Annotated[NDArray[numpy.uint8], dict(shape=(None,))], bool, str]: ...
    def leave_out_sums(self) -> None: ...
    def split(self, colour: int, key: int) -> Communicator | None: ...
    def subgroup(self, ranks: Sequence[int], tag: int) -> Communicator: ...
    def is_called(self) -> bool: ...
    def record(self, reason: str) -> str: ...
    def write_record(self, reason: str, folder: str) -> bool: ...
    def begin_profile(self, folder: str, bytes: int) -> None: ...
    def end_profile(self) -> None: ...
    def label_calls(self, label: str) -> None: ...
    def abort(self, why: str) -> None: ...
    def complete(self) -> None: ...
    def leave(self, is_interrupted: bool = False) -> None: ...

class Request:
    """A collective under way."""

    def test(self) -> bool:
        """Makes progress. Returns True once the collective is complete."""

    def wait_for(self, milliseconds: int) -> bool:
        """
        Waits for at most `milliseconds`. Returns True once the collective is complete. If it
        is not complete, it goes on.
        """

    def sleep_for(self, milliseconds: int) -> bool:
        """
        Like wait_for(), beside a program that computes: uses no core, and returns early when
        another collective is complete.
        """

    def wait(self, timeout_ms: int = 0) -> object:
        """
        Returns the result once the collective is complete. Raises TimeoutError after timeout_ms
        milliseconds (0: the communicator's time-out), MismatchError or RankLost.
        """

    def join(self, stream: int) -> None:
        """
        For a call on memory of a CUDA device: makes later work on the stream (a CUstream)
        start after the call. The host does not wait.
        """

    @property
    def is_on_device(self) -> bool: ...
    @property
    def result(self) -> object:
        """The array that holds the result after wait(), or None."""

class Plan:
    """A collective that is set up once and started many times."""

    def start(self) -> None:
        """Starts the collective. Call wait() before the next start()."""

    def test(self) -> bool:
        """Makes progress. Returns True once this start is complete."""

    def wait(self, timeout_ms: int = 0) -> object:
        """
        Returns the result once this start is complete. Raises the errors of Request.wait().
        """

def join(
    store: object | None,
    rank: int,
    ranks: int,
    name: str,
    place: str = "",
    timeout_ms: int | None = None,
    start_timeout_ms: int | None = None,
    mpi_libraries: Sequence[str] = [],
) -> Communicator:
    """
    Joins a world. store: a folder, an object with set and get, or None for one rank alone.
    name and place name the world; a failed try may be repeated with the same ones.
    mpi_libraries: libraries to start if the ranks are on several nodes, the best first.
    """

def option(name: str) -> Any:
    """The checked value in force of an option."""

class MpiWorld:
    """All processes of an MPI, in a communicator of Paceline's own."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def wake_peers(self) -> None:
        """Lets MPI send the messages that it still holds."""

    def allgather(self, mine: str) -> list[str]:
        """Returns the texts of all ranks, by rank. Collective."""

    @property
    def communicator(self) -> int:
        """
        The address of its MPI_Comm, a duplicate; valid as long as this object is.
        """

class Mpi:
    """An MPI that has been loaded into this process."""

    @property
    def abi(self) -> str:
        """Its binary interface: mpich, openmpi, or standard (MPI 5)."""

    @property
    def version(self) -> str: ...
    @property
    def is_initialized(self) -> bool: ...
    @property
    def is_finalized(self) -> bool: ...
    def init(self) -> str:
        """Initialises it if needed. Returns its thread level."""

    def finalize(self) -> None:
        """Finalises it if init() initialised it. Collective."""

    def world(self) -> MpiWorld:
        """All its processes. Collective."""

    def join(
        self,
        communicator: int | None = None,
        timeout_ms: int | None = None,
        start_timeout_ms: int | None = None,
    ) -> Communicator:
        """
        Joins the world of the processes of an MPI communicator, given by its address; None:
        of all processes. Initialises MPI if needed. Collective.
        """

def load_mpi(path: str) -> Mpi:
    """
    Loads an MPI. An empty path stands for the MPI that the process has loaded already.
    """

def has_mpi() -> bool:
    """True if the process has loaded an MPI already."""

def finish_mpi() -> None:
    """Finalises MPI if join() has started it. Collective."""

class Native:
    """A prepared call of the core, for other extension modules."""

    def __call__(self) -> None: ...
    @property
    def capsule(self) -> CapsuleType:
        """
        Entry point for such a module, without Python: python/binding/native.hpp.
        """

def native_call(
    communicator: Communicator,
    collective: str,
    input: object | None,
    output: object | None,
    op: str,
    root: int,
    knobs: object | None,
) -> Native:
    """A call of Communicator.run with these arguments."""

def native_combine(target: object, sources: list[object], op: str) -> Native:
    """
    Combines the sources by `op` into target, element by element. A single source is copied.
    All arrays have the same type and length.
    """

class Variable:
    """A value that tasks read and write."""

    @property
    def name(self) -> str: ...
    def wait(self) -> None:
        """
        Returns when all tasks pushed so far that write it are complete. Raises their error.
        """

class Task:
    """A piece of work of an engine."""

    def wait(self) -> object:
        """
        Returns the task's result once it is complete: the return value of its function, or
        the array that it wrote. Raises its error, or that of a task on which it depends.
        """

    def cancel(self) -> bool:
        """
        Cancels the task. Returns False if it has begun. Tasks that depend on it fail.
        """

    @property
    def done(self) -> bool:
        """True if the task is complete; it may have failed."""

def check_array(array: object, call: str, is_written: bool) -> None: ...

class Engine:
    """Runs tasks in the order that their reads and writes allow."""

    def __init__(self, compute: int, copy: int, communication: int) -> None: ...
    def variable(self, name: str) -> Variable: ...
    def push(
        self,
        function: object,
        read: Sequence[Variable],
        write: Sequence[Variable],
        priority: int,
        pool: str,
        name: str,
    ) -> Task: ...
    def copy(
        self,
        source: object,
        target: object,
        read: Sequence[Variable],
        write: Sequence[Variable],
        priority: int,
        name: str,
    ) -> Task: ...
    def combine(
        self,
        sources: Sequence[object],
        target: object,
        op: str,
        read: Sequence[Variable],
        write: Sequence[Variable],
        priority: int,
        name: str,
    ) -> Task: ...
    def calls(self, communicator: Communicator) -> Calls: ...
    def wait(self) -> None: ...
    def cancel(self) -> None: ...
    def give_up(self, why: str) -> None: ...
    def settles(self, milliseconds: int) -> bool: ...
    def close(self) -> None: ...
    @property
    def is_here(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    @property
    def unfinished(self) -> int: ...

class Calls:
    """The calls of a communicator in an engine."""

    def push(
        self,
        collective: str,
        input: object | None,
        output: object | None,
        op: object | None,
        root: object | None,
        counts: object | None,
        received: object | None,
        knobs: object | None,
        result: object | None,
        read: Sequence[Variable],
        write: Sequence[Variable],
        priority: int,
        name: str,
    ) -> Task: ...

class Store:
    """Arrays by key, for paceline.kvstore."""

    def __init__(
        self,
        engine: Engine,
        arrays: object,
        communicator: Communicator,
        others: Sequence[Communicator],
        type: str,
        op: str,
        outstanding: int,
        plan: object | None,
    ) -> None: ...
    def add(self, key: object, name: str, array: object, shape: object) -> None: ...
    def variable(self, number: int) -> Variable: ...
    def push(self, keys: object | None, values: object | None, priority: int) -> bool:
        """Returns False, and does nothing, if an argument does not fit."""

    def pull(self, keys: object | None, arrays: object | None, priority: int) -> bool:
        """Returns False, and does nothing, if an argument does not fit."""

    def wait(self, keys: Sequence[object]) -> bool:
        """Returns False, without waiting, if a key is unknown."""

    def wait_for_all(self) -> None: ...
    def barrier(self) -> None: ...
    def flush(self) -> None: ...
    def seen(self) -> list[tuple[int, float]]: ...
    def set_plan(
        self,
        buckets: Sequence[tuple[Sequence[int], object, Sequence[object], int]],
        order: Sequence[int],
    ) -> None: ...
    def begin_round(self) -> None: ...
    def push_bucket(self, number: int) -> None:
        """
        Pushes a bucket of the plan. Its values lie in its keys' buffers; none is under way.
        """

class Devices:
    """Devices, for paceline.device."""

    @property
    def count(self) -> int: ...
    @property
    def kind(self) -> str: ...
    def reaches(self, device: int, peer: int) -> bool: ...
    def link(self, device: int, peer: int) -> int:
        """
        Returns the place of the link between two devices by speed; 0: the fastest.
        """

    def describe(self, device: int) -> dict: ...

class EmulatedDevices(Devices):
    """Devices that the host emulates."""

    def __init__(
        self,
        devices: int,
        threads: bool = False,
        seed: int = 1,
        memory_bytes: int = 1099511627776,
        keeps_work: bool = False,
        moves: bool = True,
    ) -> None: ...
    def lose(self, device: int) -> None:
        """Emulates the loss of the device."""

    def spans(self, machine: str) -> list[tuple[float, float]]:
        """
        Returns the model times of the work enqueued since the last call: (begin, end) in
        seconds. alpha, beta and gamma of the machine are those of copies and sums.
        """

def cuda_devices() -> Devices:
    """
    Returns the CUDA devices. Raises RefusalError, which names the cause, if there are none.
    """

def has_cuda_kernels() -> bool:
    """
    True if the build, or the option cuda_kernels, has reduce kernels for CUDA devices.
    """

def trouble_with_cuda() -> str:
    """Returns the reason why there are no CUDA devices; empty if there are."""

class DeviceGroup:
    """Devices as the ranks of collectives."""

    def __init__(self, devices: Devices, positions: Sequence[int], machine: str) -> None: ...
    @property
    def size(self) -> int: ...
    def enqueue(self, calls: Sequence[tuple], knobs: object | None) -> None: ...
    def explain(self, calls: Sequence[tuple], knobs: object | None) -> str: ...
    def synchronize(self) -> None: ...

class DevicePlan:
    """A call of a group that can be started many times."""

    def __init__(
        self, group: DeviceGroup, calls: Sequence[tuple], knobs: object | None
    ) -> None: ...
    def start(self) -> None: ...

class DeviceMemory:
    """Memory of a device."""

    def __init__(self, devices: Devices, device: int, bytes: int) -> None: ...
    @property
    def address(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def write(
        self, array: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")]
    ) -> None: ...
    def read(
        self, array: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu")]
    ) -> None: ...

def emulated_empty(
    devices: EmulatedDevices, device: int, bytes: int
) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]: ...

class DeviceLink:
    """A device whose messages go through the host."""

    def __init__(self, comm: Communicator, devices: Devices, device: int) -> None: ...
    def enqueue(self, call: tuple, knobs: object | None) -> None: ...
    def explain(self, call: tuple, knobs: object | None) -> str: ...
    def synchronize(self) -> None: ...
    def stages(self) -> dict: ...

class DevicePeers:
    """A device that reaches those of the other ranks."""

    def __init__(self, comm: Communicator, devices: Devices, device: int, machine: str) -> None: ...
    def enqueue(self, call: tuple, knobs: object | None) -> None: ...
    def explain(self, call: tuple, knobs: object | None) -> str: ...
    def synchronize(self) -> None: ...
    @property
    def broken(self) -> str: ...

def collectives() -> list: ...
def ops() -> list: ...
def types() -> dict:
    """Element types: name -> bytes."""

def is_defined(op: str, type: str) -> bool: ...
def has_root(arg: str, /) -> bool: ...
def has_op(arg: str, /) -> bool: ...
def kernel_targets() -> list:
    """
    Instruction sets that this processor runs; the last is the best, and in use.
    """

def algorithms(ranks: int = 4, ranks_per_node: int = 1) -> list:
    """
    Every algorithm with its cost; volume and reduced are multiples of the message, near_...
    are inside nodes. access: how a rank gets at its peers' data; nodes: by messages between
    several nodes, some with several ranks.
    """

def options() -> list:
    """
    Every option as a dict: its definition, its value in force, and the value's origin.
    """

def checked_option(name: str, value: str, where: str) -> object:
    """
    Checks a value that is not from the environment; `where` names it in errors.
    """

def did_you_mean(word: str, names: str) -> str:
    """
    " Did you mean ring?" for a word that is near one of "ring, chain"; else empty.
    """

def unknown_variables() -> list[str]:
    """PACELINE_* variables that name no option."""

def parse_bytes(size: str) -> int: ...
def imbalance(arrivals: Sequence[float]) -> tuple[float, float]:
    """
    Worst and average imbalance time of the arrivals of one call, in their unit: the last
    minus the first, and the mean distance from their mean.
    """

def human_bytes(bytes: float) -> str: ...

class Predictor:
    """Predicts late ranks from their earlier arrivals."""

    def __init__(self, ranks: int, bytes: int, machine: str) -> None:
        """For allreduces of `bytes` bytes, one rank a node."""

    def next(self) -> list[int]:
        """
        Returns the ranks predicted to be late in the next call, the latest last. Counts the call.
        """

    def learn(self, waits: Sequence[tuple[int, int]], taken: Sequence[int]) -> None:
        """
        Learns from one call. `waits`: for each rank its ns in the call before and after the
        last rank entered. `taken`: the ranks that were predicted to be late.
        """

def choose(
    collective: str,
    ranks: int,
    bytes: int,
    algorithm: str = "",
    segments: object = 0,
    window: int = 0,
    radix: int = 0,
    blocks: int = 0,
    machine: str = "shm",
    attach: bool = True,
    late: Sequence[int] = [],
    nodes: Sequence[int] = [],
    numbers: str = "",
) -> dict:
    """
    The choice for a message of `bytes` bytes on a machine, and the reason.
    `attach`: True if the system copies between the memory of ranks. one_node: True if all
    ranks are on one node. `late`: ranks predicted to be late, the latest last. `nodes`:
    the node of each rank; empty: as the machine says. `numbers`: empty: as
    PACELINE_NUMBERS says.
    """

def machines() -> list:
    """Known machine models: (name, description)."""

def machine(machine: str) -> str:
    """Checks a machine model and describes it."""

def machine_settings(machine: str) -> str:
    """All settings of a machine model: alpha_us=1.5,gbit_per_s=100,..."""

def assumed_machine() -> str:
    """
    The machine that choices between nodes assume before a measurement, and the reason.
    """

def machine_file() -> dict:
    """
    The file of measured figures: path, trouble (empty: none), machines, newest first.
    """

def bound_s(collective: str, ranks: int, bytes: float, machine: str) -> float:
    """
    A lower bound for every algorithm on this machine, in seconds; 0: unknown.
    """

def trouble_with_huge_pages(folder: str) -> str:
    """
    Returns the reason why shared memory in `folder` gets no huge pages; empty if it does.
    """

class Event:
    """An activity of one rank, from begin_s to end_s."""

    @property
    def rank(self) -> int: ...
    @property
    def activity(self) -> str: ...
    @property
    def peer(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def segment(self) -> int: ...
    @property
    def begin_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...
    @property
    def bytes(self) -> int: ...

class Trace:
    """The activities of all ranks, simulated or measured."""

    @property
    def title(self) -> str: ...
    @property
    def provenance(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def arrival_s(self) -> list[float]: ...
    @property
    def exit_s(self) -> list[float]: ...
    @property
    def events(self) -> list[Event]: ...
    @property
    def span_s(self) -> float: ...
    def to_json(self) -> str: ...

def start_trace(communicator: Communicator) -> None:
    """Records every step of every collective of this process from now on."""

def take_trace(communicator: Communicator) -> Trace:
    """
    Ends the recording. Returns this rank's events, in seconds of CLOCK_MONOTONIC.
    """

class Moved:
    """Bytes that steps read and write."""

    @property
    def read(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def again(self) -> int:
        """The part of `read` that the same rank wrote in earlier steps."""

    @property
    def total(self) -> int: ...

class Traffic:
    """Bytes that steps move, by kind; empty kinds are left out."""

    @property
    def passes(self) -> dict: ...
    @property
    def homes(self) -> dict: ...
    @property
    def total(self) -> Moved: ...
    @property
    def signals(self) -> int: ...
    @property
    def syncs(self) -> int: ...

class World:
    """
    An algorithm on a number of ranks; a knob (radix, blocks) of 0 is left open.
    """

    def __init__(
        self,
        collective: str,
        algorithm: str,
        ranks: int,
        root: int = 0,
        in_place: bool = False,
        fused: bool = False,
        segments: int = 1,
        window: int = 1,
        ordered: bool = False,
        uneven: bool = False,
        radix: int = 0,
        blocks: int = 0,
        in_step: bool = False,
        whole_tail: bool = False,
        group: int = 0,
        scattered: bool = False,
        canonical: bool = False,
        nodes: Sequence[int] = [],
        no_staging: bool = False,
        arrivals: Sequence[float] = [],
        late: Sequence[int] = [],
    ) -> None: ...
    def rejects(self) -> str:
        """
        Returns the reason why the algorithm cannot serve this world; empty if it can.
        """

    def verify(self) -> str:
        """Returns the fault; empty if the world is proven."""

    def shake(self, seed: int) -> str:
        """Like verify(), after one run in an order drawn from the seed."""

    def print(self, rank: int = 0) -> str:
        """Returns one rank's schedule as text."""

    def simulate(
        self, count: int, element_bytes: int, machine: str, arrivals: Sequence[float] = []
    ) -> Trace: ...
    @property
    def collective(self) -> str: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def root(self) -> int: ...
    @property
    def in_place(self) -> bool: ...
    @property
    def segments(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def radix(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def late(self) -> list[int]:
        """Ranks predicted to be late, of those that the algorithm considers."""

    @property
    def line(self) -> str:
        """The arguments of `paceline verify` that name this world."""

    @property
    def is_load_store(self) -> bool:
        """
        True if ranks share memory and send nothing, so that traffic is counted.
        """

    def traffic(self, count: int, element_bytes: int) -> Traffic:
        """Bytes that the steps of all ranks read and write together."""

    def traffic_by_rank(self, count: int, element_bytes: int) -> list[Traffic]:
        """Like traffic(), for each rank."""

    def traffic_by_step(self, count: int, element_bytes: int) -> list[list[Traffic]]:
        """Like traffic(), for each step of each rank."""

    def traffic_after(self, late: int, count: int, element_bytes: int) -> list[Traffic]:
        """
        Like traffic_by_rank(), after the entry of rank `late`, for which all others waited.
        """

class Outcome:
    @property
    def proven(self) -> int: ...
    @property
    def rejected(self) -> dict[str, int]: ...
    @property
    def faults(self) -> list[tuple[str, str]]: ...

class Sweep:
    """
    Every small world of the named algorithms; an empty name stands for all.
    """

    def __init__(self, collective: str, algorithm: str, max_ranks: int) -> None: ...
    def __len__(self) -> int: ...
    def ranks(self, world: int) -> int: ...
    def run(self, first: int, count: int) -> Outcome: ...

def warn_of_leaks() -> None: ...
