"""The dependency engine: runs tasks in the order that their reads and writes allow.

    engine = paceline.engine.Engine()
    a, b = numpy.ones(4), numpy.zeros(4)
    engine.push(lambda: numpy.multiply(a, 2, out=a), write=[a])
    engine.copy(a, b)                                # reads a, writes b: waits for the task above
    engine.call(comm, "allreduce", b)                # waits for the copy
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
    """Runs tasks in threads of its own; push() and its like return at once.

    A task names the variables that it reads and writes. An array stands for a variable of its own.
    Views of one array count as different variables: pass one variable() for all of them. Tasks that
    only read a variable may run at the same time. A task that writes it waits for the tasks pushed
    before that use it, and those pushed later wait for the writer.

    compute, copy, communication: number of threads in each pool, at least 1. Python functions hold
    the interpreter lock; copies, sums and collectives run without it.

    A task whose function raises has failed. Tasks that use the variables that it writes fail,
    too, and the next wait() raises the error. Tasks pushed after that may use the variables again.
    A task may push tasks, but may not wait for them (UsageError).
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
        """Makes a variable, which tasks can read and write. Error messages show its `name`."""
        return self._core.variable(name)

    def variable_of(self, x: Operand) -> Variable:
        """The variable that stands for the array `x` as long as `x` lives."""
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
                "tensor, or a variable()."
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
        """Runs `function()` when its reads and writes allow it. Task.wait() returns its result.

        `pool` is compute, copy or communication. The ready task of a pool with the highest
        `priority` runs first.
        """
        if not callable(function):
            kind = type(function).__name__
            raise UsageError(f"engine: push() takes a function; this is a {kind}.")
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

        The task reads `source` and writes `target`, in addition to `read` and `write`.
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
        """Computes target = sources[0] op sources[1] op ...; `target` may be one of the sources.

        All arrays have the same length and type. `op` is an operation of Communicator.allreduce().
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

        All ranks push the same calls of a communicator in the same order, and make no other calls
        on it until these are complete. The engine makes a call when its operands are ready and the
        calls before it have been made. Several calls are under way at a time; operands may become
        ready in a different order on each rank. The task reads and writes the arrays of the call,
        in addition to `read` and `write`.

        `name` is also the tag of the call: ranks whose calls differ in order get MismatchError.
        `priority` is also that of the call, and equal on all ranks. If an operand fails on one
        rank, the communicator is broken on all ranks, and the error says why.

        Raises RefusalError with PACELINE_PROGRESS=caller: then calls progress only in a waiting
        thread.
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
        """Waits for these tasks, and for the tasks that write these variables or arrays.

        Without arguments waits for all tasks. Raises the first error of the tasks; without
        arguments the first one that no wait() has raised yet.
        """
        if not things:
            self._core.wait()
        for thing in things:
            (thing if isinstance(thing, Task) else self.variable_of(thing)).wait()

    def cancel(self) -> None:
        """Cancels all tasks that have not begun. Cancelled calls break their communicators."""
        self._core.cancel()

    @property
    def unfinished(self) -> int:
        """Number of tasks that are not complete."""
        return self._core.unfinished

    def close(self) -> None:
        """Completes all tasks, and ends the threads. Raises like wait(). Happens at exit, too.

        After Ctrl-C the engine is still open.
        """
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
        """Ends the engine without completing its tasks. A `with` block that raises does the same.

        Cancels the tasks that have not begun. Breaks the communicators of its calls, since other
        ranks may wait for calls that this rank does not make; their errors have the reason `why`.
        """
        self._core.give_up(why)
        if self._core.settles(GIVE_UP_MS):
            with contextlib.suppress(Exception):  # of tasks that were given up
                self._core.close()
            return
        _left.append(self)
        warnings.warn(f"engine: {self.unfinished} tasks still run {GIVE_UP_MS / 1000:g} s after "
                      "they were given up; the engine leaves them and their threads behind.",
                      RuntimeWarning, stacklevel=2)

    def _flush(self) -> None:
        """Has feeders push the tasks that they hold back: no more may come."""
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
    """At exit: completes all tasks, or gives them up if an error ends the program."""
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
    """The reason for other ranks. paceline.errors.RankLost recognises that of Ctrl-C."""
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
    """Returns a copy of the exception. Calls only constructors of Python's own types, since the
    arguments of other constructors are unknown."""
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
