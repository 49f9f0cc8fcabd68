"""The dependency engine: tasks that run when what they read and write allows it.

    engine = paceline.engine.Engine()
    a, b = numpy.ones(4), numpy.zeros(4)
    engine.push(lambda: numpy.multiply(a, 2, out=a), write=[a])
    engine.copy(a, b)                                # reads a, writes b: waits for the first
    engine.call(comm, "allreduce", b)                # so does this, on all ranks in one order
    engine.wait()
"""

import contextlib
import os
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from paceline import _core, open_worlds
from paceline.buffers import Buffer
from paceline.communicator import Communicator
from paceline.errors import UsageError

Task = _core.Task
Variable = _core.Variable
Operand = Variable | Buffer

GIVE_UP_MS = 5000  # limit of give_up()'s wait for running tasks, which cannot be ended

_open: "weakref.WeakSet[Engine]" = weakref.WeakSet()
_dropped: "set[Engine]" = set()  # by their holders, before their tasks were complete
_left: "list[Engine]" = []  # given up, with tasks that would not end


class Engine:
    """Runs tasks in threads of its own. The caller that pushes a task does not wait for it.

    A task names what it reads and writes: variables, or arrays, each of which stands for a variable
    of its own (views that share memory do not know of each other: give them one variable()).
    Tasks that only read the same run together; one that writes runs alone; all in an order in which
    they could have been pushed one after the other.

    compute, copy, communication: threads of each pool, at least 1. Python functions share one lock
    between all threads; copies, sums and collectives run without it.

    A task that raises fails. So do the tasks that read or write what it should have written, and
    the next wait() raises the error. Tasks that are pushed after it may use these variables again.
    Tasks may push tasks, but not wait for them (UsageError).
    """

    def __init__(self, compute: int = 1, copy: int = 1, communication: int = 1):
        self._core = _core.Engine(compute, copy, communication)
        self._makes_calls = False
        self._feeders: weakref.WeakSet[Any] = weakref.WeakSet()  # have _flush(), see close()
        self._of_arrays: dict[int, tuple[Any, Variable]] = {}
        self._calls: "weakref.WeakKeyDictionary[Communicator, Any]" = weakref.WeakKeyDictionary()
        _open.add(self)
        _bury()

    def __del__(self) -> None:
        # Pushed tasks go on for an unknown time: the destructor does not wait for them.
        core = getattr(self, "_core", None)
        if core is not None and core.unfinished and _dropped is not None:
            _dropped.add(self)

    def variable(self, name: str = "") -> Variable:
        """Something that tasks read and write; `name` is for error messages."""
        return self._core.variable(name)

    def variable_of(self, x: Operand) -> Variable:
        """The variable that the array `x` stands for as long as it lives."""
        if isinstance(x, Variable):
            return x
        key, of_arrays = id(x), self._of_arrays
        known = of_arrays.get(key)
        if known is not None and known[0]() is x:
            return known[1]
        try:
            reference = weakref.ref(x, lambda _: of_arrays.pop(key, None))
        except TypeError:
            raise UsageError(
                f"engine: a {type(x).__name__} cannot stand for a variable; pass an array, a "
                "tensor, or one of variable()."
            ) from None
        # Another thread may have been here meanwhile: the first one's variable counts.
        return of_arrays.setdefault(key, (reference, self._core.variable("")))[1]

    def push(
        self,
        function: Callable[[], Any],
        read: Iterable[Operand] = (),
        write: Iterable[Operand] = (),
        priority: int = 0,
        pool: str = "compute",
        name: str = "",
    ) -> Task:
        """Runs `function()` when its reads and writes allow it; Task.wait() returns its result.

        Of the tasks of a pool that could run, the one with the highest `priority` runs first.
        `pool` is compute, copy or communication.
        """
        if not callable(function):
            kind = type(function).__name__
            raise UsageError(f"engine: a task calls a function; this is a {kind}.")
        return self._core.push(
            function, self._variables(read), self._variables(write), priority, pool, name
        )

    def copy(
        self,
        source: Buffer,
        target: Buffer,
        read: Iterable[Operand] = (),
        write: Iterable[Operand] = (),
        priority: int = 0,
        name: str = "",
    ) -> Task:
        """Copies `source` (n elements) into `target` (n, of the same type).

        Reads `source` and writes `target`, besides `read` and `write`.
        """
        return self._core.copy(
            source, target, self._variables([source, *read]), self._variables([target, *write]),
            priority, name,
        )  # fmt: skip

    def combine(
        self,
        sources: Sequence[Buffer],
        target: Buffer,
        op: str = "sum",
        read: Iterable[Operand] = (),
        write: Iterable[Operand] = (),
        priority: int = 0,
        name: str = "",
    ) -> Task:
        """target = sources[0] op sources[1] op ...; `target` may be one of the sources.

        All have the same length and type. `op` is one of Communicator.allreduce().
        """
        return self._core.combine(
            list(sources), target, op, self._variables([*sources, *read]),
            self._variables([target, *write]), priority, name,
        )  # fmt: skip

    def call(
        self,
        comm: Communicator,
        collective: str,
        *arguments: Any,
        read: Iterable[Operand] = (),
        write: Iterable[Operand] = (),
        priority: int = 0,
        name: str = "",
        **keywords: Any,
    ) -> Task:
        """Makes the call `collective` of `comm` with these arguments, as Communicator.plan() does.

        All ranks push the same calls of a communicator in the same order, and make no others on it
        until these are complete. Each is made when its operands are ready and those before it have
        been made; several are under way at a time, so the order in which operands become ready may
        differ between ranks. Reads and writes its arrays, besides `read` and `write`. If an operand
        fails on some rank, the communicator is broken on all, and each rank gets the reason. A
        `name` is also the call's tag: ranks whose calls are in different orders get MismatchError.
        `priority` is also the call's, and so equal on all ranks: of calls that are under way the
        most urgent goes first.

        Raises RefusalError if calls go on only while a thread waits (PACELINE_PROGRESS=caller).
        """
        if name:
            keywords.setdefault("tag", name)
        if priority:
            keywords.setdefault("priority", priority)
        prepared, result, settings = comm._prepare(collective, arguments, keywords)
        source, target = prepared[1], prepared[2]
        if source is not None:
            read = [source, *read]
        if target is not None:
            write = [target, *write]
        return self._calls_of(comm).push(
            *prepared, settings, result, self._variables(read), self._variables(write), priority,
            name,
        )  # fmt: skip

    def wait(self, *things: Task | Operand) -> None:
        """Waits for tasks, and for those that write these variables or arrays; or for all.

        Raises the first error among them; for all, the first that no wait has raised.
        """
        if not things:
            self._core.wait()
        for thing in things:
            (thing if isinstance(thing, Task) else self.variable_of(thing)).wait()

    def cancel(self) -> None:
        """Keeps all tasks that have not begun from running. Calls among them break their
        communicators."""
        self._core.cancel()

    @property
    def unfinished(self) -> int:
        """Number of tasks that are not complete."""
        return self._core.unfinished

    def close(self) -> None:
        """Completes what has been pushed and ends the threads. Raises like wait(). Happens at exit
        too. Ctrl-C leaves it open."""
        try:
            self._flush()
        finally:
            self._core.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.give_up(why_ends(error, "ends its tasks"))

    def give_up(self, why: str) -> None:
        """Ends without completing what has been pushed: breaks the communicators of its calls, with
        `why` for all ranks, which may wait for calls that this one will not make, and keeps the
        tasks that have not begun from running. So does a `with` block that an exception ends."""
        self._core.give_up(why)
        if self._core.settles(GIVE_UP_MS):
            with contextlib.suppress(Exception):  # of tasks that were given up
                self._core.close()
            return
        _left.append(self)
        warnings.warn(f"engine: {self.unfinished} tasks have not ended {GIVE_UP_MS / 1000:g} s "
                      "after they were given up; they are left behind, with their threads.",
                      RuntimeWarning, stacklevel=2)

    def _flush(self) -> None:
        """Pushes what feeders hold back until more tasks come: none may come any more."""
        for feeder in list(self._feeders):
            feeder._flush()

    def _variables(self, operands: Iterable[Operand]) -> list[Variable]:
        return [self.variable_of(operand) for operand in operands]

    def _calls_of(self, comm: Communicator) -> Any:
        found = self._calls.get(comm)
        if found is None:
            self._makes_calls = True
            found = self._calls[comm] = self._core.calls(comm._core)
        return found


def _bury() -> None:
    """Ends the threads of dropped engines whose tasks are complete by now."""
    for engine in list(_dropped):
        if not engine.unfinished:
            _dropped.discard(engine)


def _end_all() -> None:
    """At exit: completes what has been pushed, or gives it up if an error ends the program."""
    error = open_worlds.fatal_error()
    engines = [engine for engine in {*_open, *_dropped} if not engine._core.is_closed]
    steps = [*(engine._flush for engine in engines), *(engine.close for engine in engines)]
    first = None
    for step in steps if error is None else ():
        try:
            step()
        except Exception as raised:  # of a task: the other engines have theirs to complete
            first = first or raised
        except BaseException as raised:  # Ctrl-C: whatever is left is given up
            error = first = raised
            break
    if error is not None:
        for engine in engines:
            if not engine._core.is_closed:
                engine.give_up(why_ends(error))
    if first is not None:
        raise first


def why_ends(error: BaseException, ends: str = "ends") -> str:
    """The reason for peers; paceline.errors.RankLost knows the first by its words."""
    if isinstance(error, KeyboardInterrupt):
        return "was interrupted by Ctrl-C"
    return f"{ends} because of {type(error).__name__}: {error}"


def _settle() -> None:
    """Before a world is left: returns when the engines that make calls have completed what they
    have been given. Errors are raised by the engines' own waits."""
    engines = [engine for engine in {*_open, *_dropped} if engine._makes_calls]
    for engine in engines:
        engine._flush()
    for engine in engines:
        while not engine._core.settles(1000):
            pass


def _forget() -> None:
    """In a child of fork(): the engines are its parent's, and so are their threads."""
    global _open, _dropped, _left
    _open, _dropped, _left = weakref.WeakSet(), set(), []


def _copy_of(error: BaseException) -> BaseException:
    """Returns another exception that says the same. Calls constructors of Python's own types only:
    the arguments of the program's constructors are unknown."""
    kind, (_, arguments, *state) = type(error), error.__reduce__()
    try:
        made = kind.__new__(kind, *arguments)
        base = next(base for base in kind.__mro__
                    if "__init__" in vars(base) and not isinstance(vars(base)["__init__"],
                                                                   types.FunctionType))
        base.__init__(made, *arguments)
        if state and state[0]:
            made.__setstate__(state[0])
        alike = isinstance(made, kind) and str(made) == str(error)
    except Exception:
        alike = False
    if not alike:
        return error
    for name in ("__traceback__", "__context__", "__cause__", "__suppress_context__"):
        setattr(made, name, getattr(error, name))
    return made


open_worlds.before_leaving(_end_all, _settle)
os.register_at_fork(after_in_child=_forget)
