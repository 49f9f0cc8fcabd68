"""The base of all types of KVStore: keys, their arrays, and the copies of values."""

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy

from paceline import _core
from paceline import engine as engines
from paceline.buffers import Buffer, host_like, shape_of
from paceline.communicator import Communicator
from paceline.errors import MismatchError, UsageError

Key = int | str


class Entry:
    """A key with its communication buffer, which holds its value on this rank."""

    def __init__(self, key: Key, number: int, value: Buffer):
        self.key = key
        self.number = number  # in the order of init()
        self.shape = shape_of(value)
        self.dtype = _dtype_of(value)
        self.buffer = host_like(value, self.shape, "kvstore: init")

    @property
    def count(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.buffer.nbytes

    @property
    def name(self) -> str:
        return f"key {self.key!r}"

    def description(self) -> list[Any]:
        return [repr(self.key), list(self.shape), self.dtype]


class KVStore:
    """Arrays by key on every rank of a communicator. See create().

    A key is an int or a str. Methods that take keys and values take one of each, or two lists of
    equal length. A value is a contiguous numpy array or torch tensor, on the CPU or a CUDA device.
    It may also be a list of arrays, one for each local device: the store sums these first. Copies
    to and from devices are tasks of the engine.

    push() and pull() return at once, unless the type says otherwise. Leave the values alone until
    wait(). All ranks make the same calls with the same keys in the same order.

    Raises UsageError before anything is sent, and MismatchError if ranks make different calls.
    wait() raises the errors of background work.
    """

    type = ""

    def __init__(
        self, comm: Communicator | None = None, engine: engines.Engine | None = None,
        op: str = "sum", communicators: int = 0, outstanding: int = 1, plan: Any = None,
    ):  # fmt: skip
        if comm is None:
            from paceline.world import init

            comm = init()
        self._comm = comm.dup()
        self._owns_engine = engine is None
        self._engine = engine or engines.Engine()
        self._engine._makes_calls |= self.type != "funnel"
        self._entries: dict[Key, Entry] = {}
        others = [self._comm.dup()._core for _ in range(communicators)]
        self._core = _core.Store(
            self._engine._core, self._engine, self._comm._core, others, self.type, op, outstanding,
            plan,
        )  # fmt: skip
        self._engine._feeders.add(self)

    def __del__(self) -> None:
        # Values that it still holds back are exchanged without it, like those it has pushed.
        core, engine = getattr(self, "_core", None), getattr(self, "_engine", None)
        if core is not None and engine._core.is_here and not engine._core.is_closed:
            core.flush()

    @property
    def rank(self) -> int:
        """This worker's number, from 0 to num_workers - 1."""
        return self._comm.rank

    @property
    def num_workers(self) -> int:
        """Number of ranks that share the store."""
        return self._comm.size

    def init(self, keys: Key | Sequence[Key], values: Any) -> None:
        """Makes keys, and gives them rank 0's values on every rank; writes these to `values`, too.

        Collective. Waits for earlier pushes and pulls, and raises the errors of wait(). Raises
        UsageError for a key that exists, and MismatchError if keys, shapes or types differ between
        ranks.
        """
        pairs = _pairs("init", keys, values)
        for key, arrays in pairs:
            if not isinstance(key, int | str) or isinstance(key, bool):
                raise UsageError(f"kvstore: init: key {key!r} is a {type(key).__name__}; a key is "
                                 "an int or a str.")
            if key in self._entries:
                raise UsageError(f"kvstore: init: key {key!r} exists already; make a new one.")
            if not arrays:
                raise UsageError(f"kvstore: init: key {key!r} has no value.")
        if len({key for key, _ in pairs}) < len(pairs):
            raise UsageError(f"kvstore: init: a key occurs twice in {keys!r}.")
        made = [Entry(key, len(self._entries) + i, arrays[0])
                for i, (key, arrays) in enumerate(pairs)]
        for entry, (_, arrays) in zip(made, pairs, strict=True):
            self._check(entry, "init", arrays)
        self.wait()  # for calls of tasks, which must not meet those that this makes
        self._agree([entry.description() for entry in made])
        for entry, (_, arrays) in zip(made, pairs, strict=True):
            self._engine.wait(*arrays)
            self._engine.copy(arrays[0], entry.buffer).wait()
            self._comm.broadcast(entry.buffer, tag=entry.name)
            for array in arrays:
                self._engine.copy(entry.buffer, array).wait()
            self._entries[entry.key] = entry
            self._core.add(entry.key, entry.name, entry.buffer, entry.shape)

    def push(self, keys: Key | Sequence[Key], values: Any, priority: int = 0) -> None:
        """Sets the keys to the sum of the values of all ranks, or to their combination by `op`.

        Values of a key that is passed twice are summed first, like those of several devices. The
        sum with the highest `priority` under way uses the links and the summing thread first.
        Priorities are from -1048576 to 1048576, and equal on all ranks. A bucket of auto has the
        highest priority of its keys.
        """
        if not self._core.push(keys, values, priority):
            self._refuse("push", keys, values)

    def pull(self, keys: Key | Sequence[Key], out: Any, priority: int = 0) -> None:
        """Copies the values of the keys into `out`, after the earlier pushes."""
        if not self._core.pull(keys, out, priority):
            self._refuse("pull", keys, out)

    def pushpull(
        self, keys: Key | Sequence[Key], values: Any, out: Any = None, priority: int = 0
    ) -> None:
        """push(), then pull() into `out` (None: into the values)."""
        self.push(keys, values, priority)
        self.pull(keys, values if out is None else out, priority)

    def buffer(self, key: Key) -> Buffer:
        """Returns the array in which the store combines the ranks' values of the key.

        It holds the value after wait(), until the next push. push() of this array copies nothing.
        A store of type auto replaces it when it makes its plan. Raises UsageError for an unknown
        key.
        """
        return self._entry("buffer", key).buffer

    def barrier(self) -> None:
        """Returns when this rank's pushes and pulls are complete, and all ranks have called it."""
        self._core.barrier()

    def wait(self, keys: Key | Sequence[Key] | None = None) -> None:
        """Returns when the pushes and pulls of `keys` (None: of all keys) so far are complete.

        Raises their errors.
        """
        if keys is None:
            self._core.wait_for_all()
            return
        wanted = _keys("wait", keys)
        if not self._core.wait(wanted):
            for key in wanted:
                self._entry("wait", key)

    def close(self) -> None:
        """Completes the pushes and pulls under way. Happens at exit, too."""
        try:
            self.wait()
        finally:
            if self._owns_engine:
                self._engine.close()

    def _begin_round(self) -> list[list[int]]:
        """Buckets whose keys may be pushed together; none, unless the type has buckets."""
        return []

    def _note_ready(self, ready_s: dict[Key, float]) -> None:
        """Takes the times at which the last round's values were made, on the caller's clock, from
        a caller that pushes them later. The next plan uses them."""

    def _variable(self, key: Key) -> engines.Variable:
        """The variable of tasks that read or write the key's buffer(): they come after the calls so
        far, and the next push comes after them."""
        return self._core.variable(self._entry("variable", key).number)

    def _flush(self) -> None:
        """Exchanges what has been pushed, without waiting for more to come."""
        self._core.flush()

    def _refuse(self, call: str, keys: Any, values: Any) -> NoReturn:
        """Raises the error for arguments that the core has refused."""
        for key, arrays in _pairs(call, keys, values):
            entry = self._entry(call, key)
            if not arrays or any(array is None for array in arrays):
                raise UsageError(f"kvstore: {call}: {entry.name} has no value but "
                                 f"{arrays or None!r}; pass an array, or a list of them.")
            self._check(entry, call, arrays)
        raise AssertionError(f"kvstore: {call}: {keys!r} was refused, and nothing is wrong with it")

    def _entry(self, call: str, key: Key) -> Entry:
        if key not in self._entries:
            raise UsageError(
                f"kvstore: {call}: key {key!r} is not known; init() makes keys. "
                f"There are {len(self._entries)}: {_list(self._entries)}."
            )
        return self._entries[key]

    def _check(self, entry: Entry, call: str, arrays: list[Buffer]) -> None:
        for array in arrays:
            if shape_of(array) != entry.shape or _dtype_of(array) != entry.dtype:
                raise UsageError(
                    f"kvstore: {call}: {entry.name} has shape {entry.shape} and type "
                    f"{entry.dtype}; this value has {shape_of(array)} and {_dtype_of(array)}."
                )
            _core.check_array(array, f"kvstore: {call}: {entry.name}", call != "push")

    def _agree(self, mine: list[list[Any]]) -> None:
        """Raises MismatchError, which names the first difference, unless all ranks make the same
        keys."""
        text = json.dumps(mine).encode()
        digest = hashlib.blake2b(text, digest_size=32).digest()
        sent = numpy.frombuffer(digest, "uint8")
        digests = self._comm.allgather(sent).reshape(self.num_workers, -1)
        if (digests == digests[0]).all():
            return
        lengths = self._comm.allgather(numpy.array([len(text)]))
        texts = self._comm.allgather(numpy.frombuffer(text, "uint8"), counts=lengths.tolist())
        ends = numpy.cumsum(lengths)
        all_keys = [json.loads(texts[end - n : end].tobytes())
                    for n, end in zip(lengths, ends, strict=True)]
        raise MismatchError(f"kvstore: init: {_difference(all_keys)}; all ranks must make the same "
                            "keys, in the same order, of the same shapes and types.")


def _keys(call: str, keys: Any) -> Sequence[Key]:
    if isinstance(keys, int | str):
        return [keys]
    if not isinstance(keys, list | tuple):
        raise UsageError(f"kvstore: {call}: keys are a {type(keys).__name__}; pass an int, a str, "
                         "or a list of them.")
    return keys


def _pairs(call: str, keys: Any, values: Any) -> list[tuple[Key, list[Buffer]]]:
    """Key by key the arrays of its value."""
    if isinstance(keys, int | str):
        values = [values]
    keys = _keys(call, keys)
    if not isinstance(values, list | tuple) or len(values) != len(keys):
        count = len(values) if isinstance(values, list | tuple) else "no list of"
        raise UsageError(f"kvstore: {call}: {len(keys)} keys with {count} values; pass one value, "
                         "or list of values, for each key.")
    return [(key, list(value) if isinstance(value, list | tuple) else [value])
            for key, value in zip(keys, values, strict=True)]


def _dtype_of(x: Buffer) -> str:
    dtype = getattr(x, "dtype", None)
    return str(numpy.asarray(x).dtype if dtype is None else dtype).removeprefix("torch.")


def _list(keys: Any, most: int = 8) -> str:
    shown = [repr(key) for key in list(keys)[:most]]
    return ", ".join(shown) + (", ..." if len(keys) > most else "") if shown else "none"


def _difference(ranks: list[list[list[Any]]]) -> str:
    """The first difference of any rank's keys from rank 0's."""
    first = ranks[0]
    other = next(rank for rank, keys in enumerate(ranks) if keys != first)
    theirs = ranks[other]
    for a, b in zip(first, theirs, strict=False):
        if a[0] != b[0]:
            return f"rank 0 makes key {a[0]}, rank {other} key {b[0]} in its place"
        if a != b:
            return (f"key {a[0]} has shape {tuple(a[1])} and type {a[2]} on rank 0, "
                    f"{tuple(b[1])} and {b[2]} on rank {other}")
    return f"rank 0 makes {len(first)} keys, rank {other} makes {len(theirs)}"
