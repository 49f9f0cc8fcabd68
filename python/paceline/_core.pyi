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
        """Works on what is under way; True once the collective is complete."""

    def wait_for(self, milliseconds: int) -> bool:
        """
        Waits at most so long; True once the collective is complete. Breaks nothing.
        """

    def sleep_for(self, milliseconds: int) -> bool:
        """
        The same beside a program that computes: uses no processor, and returns early where
        another collective is complete.
        """

    def wait(self, timeout_ms: int = 0) -> object:
        """
        Returns the result once the collective is complete. Raises TimeoutError after timeout_ms
        milliseconds (0: the communicator's limit), MismatchError or RankLost.
        """

    def join(self, stream: int) -> None:
        """
        Makes work that is enqueued on the stream (a CUstream) from now on come after a call
        on memory of a CUDA device. The host does not wait.
        """

    @property
    def is_on_device(self) -> bool: ...
    @property
    def result(self) -> object:
        """The array that holds the result after wait(), or None."""

class Plan:
    """A collective that is set up once and started many times."""

    def start(self) -> None:
        """Starts the collective; wait() before the next start."""

    def test(self) -> bool:
        """Works on what is under way; True once this start is complete."""

    def wait(self, timeout_ms: int = 0) -> object:
        """
        Returns the result once this start is complete; raises like Request.wait().
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
    Joins a world: store is a folder, an object with set and get, or None for one rank alone.
    A try that failed may be repeated; name and place say of which world it was.
    mpi_libraries: to start where the ranks are on several nodes, the best first.
    """

def option(name: str) -> Any:
    """The checked value of an option that is in force."""

class MpiWorld:
    """All processes of an MPI, in a communicator of ours."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def wake_peers(self) -> None:
        """Lets MPI go on with what it has yet to send."""

    def allgather(self, mine: str) -> list[str]:
        """Returns what every rank says, by rank. Collective."""

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
        """Initialises it if needed; returns how threads may call it."""

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
    Loads an MPI; an empty path means the one that is in the process already.
    """

def has_mpi() -> bool:
    """True if an MPI is in the process already."""

def finish_mpi() -> None:
    """Finalises the MPI that join() has started, if it has. Collective."""

class Native:
    """Work of the core that is ready, for other extension modules."""

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
    Writes to target what op makes of the sources, element by element; a single one is
    copied. Arrays of one type and length.
    """

class Variable:
    """Value that tasks read and write."""

    @property
    def name(self) -> str: ...
    def wait(self) -> None:
        """
        Returns when every task pushed so far that writes it is complete; raises their error.
        """

class Task:
    """A piece of work of an engine."""

    def wait(self) -> object:
        """
        Returns the task's result once it is complete: what its function returned, or the
        array it wrote. Raises its error, or that of a task it depends on.
        """

    def cancel(self) -> bool:
        """
        Keeps it from running; False if it has begun. Tasks that depend on it fail.
        """

    @property
    def done(self) -> bool:
        """True if it is complete; it may have failed."""

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
    """Arrays by key; a user sees paceline.kvstore."""

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
        """False if something does not fit: nothing has been done then."""

    def pull(self, keys: object | None, arrays: object | None, priority: int) -> bool:
        """False if something does not fit: nothing has been done then."""

    def wait(self, keys: Sequence[object]) -> bool:
        """False, without a wait, if a key is unknown."""

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
        Pushes a bucket of the plan: its keys' buffers hold the values, none is under way.
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
        Returns how slow the link between two devices is, beside others; 0: the fastest.
        """

    def describe(self, device: int) -> dict: ...

class EmulatedDevices(Devices):
    """Devices of the host."""

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
        """As if the device had gone."""

    def spans(self, machine: str) -> list[tuple[float, float]]:
        """
        When what was enqueued since the last time would have run on such a machine, whose
        alpha, beta and gamma are those of copies and sums: (begin, end), in seconds.
        """

def cuda_devices() -> Devices:
    """
    Returns those of CUDA. Raises RefusalError, which says what is missing.
    """

def has_cuda_kernels() -> bool:
    """
    True if the build, or the option cuda_kernels, brings reduce kernels for CUDA devices.
    """

def trouble_with_cuda() -> str:
    """Returns why there are none; empty: there are."""

class DeviceGroup:
    """Devices as the ranks of collectives."""

    def __init__(self, devices: Devices, positions: Sequence[int], machine: str) -> None: ...
    @property
    def size(self) -> int: ...
    def enqueue(self, calls: Sequence[tuple], knobs: object | None) -> None: ...
    def explain(self, calls: Sequence[tuple], knobs: object | None) -> str: ...
    def synchronize(self) -> None: ...

class DevicePlan:
    """A call of a group that is made again and again."""

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
    """Instruction sets that this processor runs, the best and used one last."""

def algorithms(ranks: int = 4, ranks_per_node: int = 1) -> list:
    """
    Every algorithm with its cost; volume and reduced are multiples of the message, near_...
    are inside nodes. access: how a rank gets at its peers' data; nodes: by messages between
    several nodes, some with several ranks.
    """

def options() -> list:
    """
    Every option as a dict: what it is, what is in force, and where that comes from.
    """

def checked_option(name: str, value: str, where: str) -> object:
    """
    A value from elsewhere than the environment, checked; `where` names it in the error.
    """

def did_you_mean(word: str, names: str) -> str:
    """
    " Did you mean ring?" for a word that is near to one of "ring, chain", or nothing.
    """

def unknown_variables() -> list[str]:
    """PACELINE_* variables that no option reads."""

def parse_bytes(size: str) -> int: ...
def imbalance(arrivals: Sequence[float]) -> tuple[float, float]:
    """
    Worst and average imbalance time of the arrivals of one call, in their unit: the last
    minus the first, and the mean distance from their mean.
    """

def human_bytes(bytes: float) -> str: ...

class Predictor:
    """
    Predicts which ranks a call takes for late, from their earlier arrivals.
    """

    def __init__(self, ranks: int, bytes: int, machine: str) -> None:
        """For allreduces of `bytes` bytes, one rank a node."""

    def next(self) -> list[int]:
        """
        Returns the ranks that the next call takes for late, latest last; counts that call.
        """

    def learn(self, waits: Sequence[tuple[int, int]], taken: Sequence[int]) -> None:
        """
        Learns from one call. `waits`: each rank's ns until the last one entered, and after;
        `taken`: the ranks that the call took for late.
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
    The choice for a message of `bytes` on a machine, and why.
    `attach`: the system copies between their memory. one_node: all ranks are on one node.
    `late`: ranks predicted to enter last, the latest one last. `nodes`: of each rank; none:
    as the machine says. `numbers`, empty: as PACELINE_NUMBERS says.
    """

def machines() -> list:
    """Known machine models: (name, description)."""

def machine(machine: str) -> str:
    """Checks a machine model and describes it."""

def machine_settings(machine: str) -> str:
    """All settings of a machine model: alpha_us=1.5,gbit_per_s=100,..."""

def assumed_machine() -> str:
    """
    The machine that choices between nodes assume before measurements, and why.
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
    Returns why shared memory in `folder` gets no huge pages; empty: it gets them.
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
    """Ends the recording; this rank's events, in seconds of CLOCK_MONOTONIC."""

class Moved:
    """Bytes that steps read and write."""

    @property
    def read(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def again(self) -> int:
        """Part of those read: made by the same rank in earlier steps."""

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
    An algorithm among so many ranks; a knob (radix, blocks) of 0 is left open.
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
        """Why the algorithm cannot serve this world; empty: it can."""

    def verify(self) -> str:
        """Returns the fault; empty: proven."""

    def shake(self, seed: int) -> str:
        """The same after one run in an order drawn from the seed."""

    def print(self, rank: int = 0) -> str:
        """One rank's schedule as text."""

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
        """Ranks predicted to enter last, as far as the algorithm looks at them."""

    @property
    def line(self) -> str:
        """The arguments of `paceline verify` that mean this world."""

    @property
    def is_load_store(self) -> bool:
        """True if ranks share memory and send nothing: then traffic is counted."""

    def traffic(self, count: int, element_bytes: int) -> Traffic:
        """Bytes that the steps of all ranks together read and write."""

    def traffic_by_rank(self, count: int, element_bytes: int) -> list[Traffic]:
        """The same for each rank."""

    def traffic_by_step(self, count: int, element_bytes: int) -> list[list[Traffic]]:
        """The same for each step of each rank."""

    def traffic_after(self, late: int, count: int, element_bytes: int) -> list[Traffic]:
        """
        The same for each rank after a rank has come that all have long been waiting for.
        """

class Outcome:
    @property
    def proven(self) -> int: ...
    @property
    def rejected(self) -> dict[str, int]: ...
    @property
    def faults(self) -> list[tuple[str, str]]: ...

class Sweep:
    """Every small world of the named algorithms; empty names: of all."""

    def __init__(self, collective: str, algorithm: str, max_ranks: int) -> None: ...
    def __len__(self) -> int: ...
    def ranks(self, world: int) -> int: ...
    def run(self, first: int, count: int) -> Outcome: ...

def warn_of_leaks() -> None: ...
