"""paceline.engine in one process; on several ranks: tests/python/ranks/engine_checks.py."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import launched
import numpy
import pytest
from length import each

import paceline
from paceline.engine import Engine

pytestmark = pytest.mark.ranks


@pytest.fixture
def engine():
    one = Engine(compute=2)
    yield one
    one.close()


def test_tasks_run_in_the_order_of_their_reads_and_writes(engine):
    a, b = numpy.ones(1000), numpy.zeros(1000)
    for _ in range(10):
        engine.push(lambda: numpy.multiply(a, 2, out=a), write=[a])
    engine.copy(a, b)
    engine.push(lambda: a.fill(-1), write=[a])
    total = engine.combine([a, b, b], b, read=[a])
    assert total.wait() is b
    assert (b == 2047).all() and (a == -1).all()
    assert engine.push(lambda: "result").wait() == "result"
    engine.wait()
    assert engine.unfinished == 0


def test_a_failure_reaches_what_depends_on_it_and_the_caller(engine):
    x, y, ran = engine.variable("x"), engine.variable("y"), []

    def fails():
        raise KeyError("no such layer")

    first = engine.push(fails, write=[x])
    last = engine.push(lambda: ran.append(1), read=[x], write=[y])
    with pytest.raises(KeyError, match="no such layer") as caught:
        engine.wait(y)
    assert any(entry.name == "fails" for entry in caught.traceback)  # where it was raised
    with pytest.raises(KeyError):
        last.wait()
    with pytest.raises(KeyError):
        first.wait()
    assert ran == []
    engine.push(lambda: ran.append(2), read=[x], write=[y]).wait()
    assert ran == [2]


def test_what_is_cancelled_does_not_run(engine):
    gate, ran = threading.Event(), []
    x = engine.variable()
    holds = engine.push(gate.wait, write=[x])
    task = engine.push(lambda: ran.append(1), write=[x], name="late")
    after = engine.push(lambda: ran.append(2), read=[x])
    assert task.cancel()
    gate.set()
    with pytest.raises(paceline.UsageError, match="task 'late' was cancelled"):
        after.wait()
    assert holds.wait() and not holds.cancel() and holds.done and ran == []


def test_operands_live_until_the_task_is_complete(engine):
    gate, target = threading.Event(), numpy.zeros(1 << 16)
    x = engine.variable()
    engine.push(gate.wait, write=[x])
    engine.copy(numpy.full(1 << 16, 7.0), target, read=[x])
    junk = [numpy.zeros(1 << 16) for _ in range(20)]
    gate.set()
    engine.wait()
    assert (target == 7).all() and len(junk) == 20


def test_torch_tensors(engine):
    torch = pytest.importorskip("torch")
    a, b = torch.ones(10), torch.zeros(10)
    engine.push(lambda: a.mul_(3), write=[a])
    assert engine.combine([a, a], b).wait() is b
    assert b.tolist() == [6.0] * 10


def refused(action, text):
    with pytest.raises(paceline.UsageError, match=text):
        action()


def test_bad_input_is_refused(engine):
    a = numpy.ones(4)
    refused(lambda: engine.push(7), "takes a function; this is a int")
    refused(lambda: engine.push(int, pool="disk"), "no pool 'disk'")
    refused(lambda: engine.push(int, read=[3]), "a int cannot stand for a variable")
    refused(lambda: engine.push(int, read=[Engine().variable("v")]), "belongs to another engine")
    refused(lambda: engine.copy(a, numpy.ones(5)), "4 float64, the target 5 float64")
    refused(lambda: engine.copy(a, numpy.ones(4, "int64")), "the target 4 int64")
    refused(lambda: engine.combine([], a), "there are no sources")
    refused(lambda: Engine(copy=0), "0 threads for the pool 'copy'")
    inside = engine.push(engine.wait)
    refused(inside.wait, "inside of a task")
    assert engine.unfinished == 0
    closed = Engine()
    closed.close()
    refused(lambda: closed.push(int), "it is closed")


def test_threads_that_cannot_be_made_are_an_error():
    program = (
        "import resource, paceline\nfrom paceline.engine import Engine\nused = "
        "int(open('/proc/self/statm').read().split()[0]) * "
        "resource.getpagesize()\nresource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * "
        "2)\ntry:\n    Engine(compute=1000)\nexcept paceline.ResourceError as error:\n    "
        "print(error)\nEngine().push(lambda: print('goes on')).wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=60)
    assert done.stderr == "" and done.returncode == 0
    assert "threads no other can be made" in done.stdout and "goes on" in done.stdout


def test_ctrl_c_ends_a_wait(engine):
    gate = threading.Event()
    engine.push(gate.wait)
    # A shell that has started the tests in the background lets them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            engine.wait()
    finally:
        gate.set()
        signal.signal(signal.SIGINT, before)


def test_the_end_of_a_program_completes_its_tasks():
    program = (
        "import paceline.engine as e, sys, time\nengine = e.Engine()\nx = engine.variable()\nfor i "
        "in range(5):\n    engine.push(lambda i=i: (time.sleep(.02), print(i, flush=True)), "
        "write=[x])\n"
    )

    def run(text):
        command = [sys.executable, "-c", text]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    whole = run(program)
    assert whole.stdout.split() == list("01234") and whole.stderr == ""
    ended = run(program + "sys.exit(1/0)")
    assert "ZeroDivisionError" in ended.stderr and len(ended.stdout.split()) < 5


def program(text, **keywords):
    command = [sys.executable, "-c", "from paceline.engine import Engine\n" + text]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **keywords)


SLOW_TASKS = """
import sys, threading, time
def slow(engine, word, seconds=.02):
    x = engine.variable()
    for i in range(5):
        engine.push(lambda: (time.sleep(seconds), sys.stdout.write(word + chr(10))), write=[x])
"""


def test_at_exit_each_engine_is_completed_whatever_another_raises():
    run = program(SLOW_TASKS + "engines = [Engine() for _ in range(6)]\n"
                  "for i, engine in enumerate(engines):\n"
                  "    if i % 2: engine.push(lambda: 1 / 0)\n"
                  "    else: slow(engine, f'engine{i}', .2)\n")  # fmt: skip
    assert sorted(run.stdout.split()) == sorted(["engine0", "engine2", "engine4"] * 5)
    assert "ZeroDivisionError" in run.stderr and "Fatal" not in run.stderr


def test_ctrl_c_in_close_leaves_the_engine_to_the_end_of_the_program():
    run = program(SLOW_TASKS + "import os, signal\nsignal.signal(signal.SIGINT, "
                               "signal.default_int_handler)\ngate, engine = threading.Event(), "
                               "Engine()\nengine.push(gate.wait)\nslow(engine, "
                               "'ran')\nthreading.Timer(.2, os.kill, (os.getpid(), "
                               "signal.SIGINT)).start()\ntry: engine.close()\nexcept "
                               "KeyboardInterrupt: print('handled')\ngate.set()\n")  # fmt: skip
    assert run.stdout.count("ran") == 5 and "handled" in run.stdout and run.stderr == ""


def test_errors_of_an_interactive_session_do_not_end_it():
    run = program(SLOW_TASKS + "sys.ps1, sys.last_value = '>>> ', ValueError('long ago')\nengine = "
                               "Engine()\nslow(engine, 'ran')\n")  # fmt: skip
    assert run.stdout.count("ran") == 5 and run.stderr == ""


def test_a_program_that_fails_ends_beside_a_task_that_does_not():
    run = program("import threading\nengine, began = Engine(), "
                  "threading.Event()\nengine.push(lambda: (began.set(), "
                  "threading.Event().wait()))\nbegan.wait()\nraise ValueError('out of "
                  "data')\n")  # fmt: skip
    assert run.returncode == 1 and "out of data" in run.stderr
    assert "1 tasks still run" in run.stderr and "Fatal" not in run.stderr


def test_what_a_dropped_engine_has_been_given_goes_on():
    gate, ran = threading.Event(), []
    for i in range(10):
        engine = Engine()
        engine.variable_of(numpy.ones(3))
        engine.push(lambda: gate.wait(60))
        last = engine.push(lambda i=i: ran.append(i))
        del engine
        gc.collect()
    assert ran == []  # nobody has waited for them
    gate.set()
    last.wait()
    deadline = time.monotonic() + 60
    while sorted(ran) != list(range(10)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(ran) == list(range(10))


def test_an_engine_that_its_own_task_drops_ends():
    def threads():
        Engine().close()  # which ends those of engines that are complete
        return len(os.listdir("/proc/self/task"))

    before = threads()
    for _ in range(10):
        engine = Engine()
        engine.push(lambda held=engine: time.sleep(0.01))
        del engine
    deadline = time.monotonic() + 60
    while threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threads() <= before


class NoLayer(KeyError):
    def __init__(self, name):
        super().__init__(f"there is no layer {name!r}")
        self.name = name


@pytest.mark.parametrize("make", [
    lambda: NoLayer("fc1"), lambda: KeyError("a", 2), lambda: OSError(2, "none", "file"),
    lambda: UnicodeDecodeError("utf-8", b"ab", 0, 1, "no"), lambda: ImportError("no", name="it"),
    lambda: ValueError(), lambda: SyntaxError("no", ("file", 1, 2, "text")),
])  # fmt: skip
def test_what_a_task_raises_is_raised_as_it_is(engine, make):
    raised = make()
    raised.extra = [7]

    def fails():
        try:
            raise LookupError("before")
        except LookupError:
            raise raised  # noqa: B904

    task = engine.push(fails)
    for _ in range(2):
        with pytest.raises(type(raised)) as caught:
            task.wait()
        assert str(caught.value) == str(raised) and repr(caught.value) == repr(raised)
        assert vars(caught.value) == vars(raised) and caught.value.args == raised.args
        assert str(caught.value.__context__) == "before"


def test_an_array_stands_for_one_variable_in_all_threads(engine):
    interval, count = sys.getswitchinterval(), 5000
    arrays, found = [numpy.ones(1) for _ in range(count)], [[], [], []]
    sys.setswitchinterval(1e-6)
    try:
        starts = threading.Barrier(3)

        def ask(mine):
            starts.wait()
            mine += [engine.variable_of(x) for x in arrays]

        threads = [threading.Thread(target=ask, args=[mine]) for mine in found]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert all(a is b is c for a, b, c in zip(*found, strict=True))


def test_memory_stays_flat(engine):
    """Not each burst leaves something: what an allocator keeps for itself, it takes but once."""
    calls = 3000

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    def burst():
        a, x = numpy.ones(4), engine.variable()
        for _ in range(calls):
            engine.push(int, read=[a, x])
            engine.copy(a, a.copy(), write=[x])
        engine.wait()

    for _ in range(3):
        burst()
    looks = [resident()]
    for _ in range(4):
        burst()
        looks.append(resident())
    growth = [after - before for before, after in itertools.pairwise(looks)]
    assert min(growth) < 32 * calls, growth


@pytest.mark.parametrize("name", [*launched.names("engine_checks"), "end"])
@each("ranks", [3], [1, 2, 5])
def test_calls_as_tasks(name, ranks):
    launched.expect("engine_checks", name, ranks)


def test_calls_need_a_thread_that_makes_progress(monkeypatch, tmp_path):
    monkeypatch.setenv("PACELINE_PROGRESS", "caller")
    alone = paceline.init(0, 1, str(tmp_path))
    try:
        with Engine() as engine, pytest.raises(paceline.RefusalError, match="PACELINE_PROGRESS"):
            engine.call(alone, "barrier")
    finally:
        paceline.finalize()
