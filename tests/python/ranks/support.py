"""What the checks on ranks share: data that shows every mix-up, arrays, a runner."""

import array
import json
import os
import signal
import stat
import sys
import traceback
from pathlib import Path

import numpy

import paceline
from paceline import _core

INTEGERS = [f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")]
NUMPY_TYPES = ["float64", "float32", "float16", "bool", *INTEGERS]
TYPES = [*NUMPY_TYPES, "bfloat16"]
MOST = {"int8": 127, "uint8": 255, "bfloat16": 256, "float16": 2048, "bool": 1}
SEED = 20_000
CHECK_S = 30 * float(os.environ.get("TESTS_SLOWNESS", 1))


def blocks_held():
    """Bytes of memory behind this process's files without a name."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.stat(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the listing's own
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
            found += 512 * status.st_blocks
    return found


class DLPackOnly:
    """An array of a library that we have never heard of: it speaks DLPack and nothing else."""

    def __init__(self, inner):
        self.inner = inner
        self.shape, self.dtype = inner.shape, inner.dtype

    def __dlpack__(self, **keywords):
        return self.inner.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()


def data(rank, count, type="float32"):
    """`count` whole numbers of a rank, as float64: no two alike among all ranks and places.

    In small types the numbers stay so small that sums over the ranks are exact, which leaves
    room for a few only: they repeat, but neighbours and ranks differ.
    """
    values = 1 + rank * SEED + numpy.arange(count, dtype="float64")
    if type in MOST:
        values = 1 + (7 * rank + numpy.arange(count)) % max(1, MOST[type] // 9)
        return numpy.minimum(values, MOST[type]).astype("float64")
    return values % 32_000 if type.endswith("int16") else values


def make(library, values, type):
    """An array or tensor of `library` with these values; None if it has no such type."""
    if library == "torch":
        import torch

        return torch.tensor(values, dtype=torch.float64).to(getattr(torch, type))
    if type == "bfloat16":
        return None
    x = numpy.asarray(values, dtype="float64").astype(type)
    if library == "numpy":
        return x
    if library == "dlpack":
        return DLPackOnly(x)
    if library == "memoryview":
        return memoryview(x)
    if library == "array":
        codes = {"float64": "d", "float32": "f", "int32": "i", "uint8": "B", "int64": "q"}
        return array.array(codes[type], x.tolist()) if type in codes else None
    raise ValueError(library)


def values_of(x):
    """The numbers in an array or tensor of any library, as float64."""
    if isinstance(x, DLPackOnly):
        x = x.inner
    if type(x).__module__.startswith("torch"):
        return x.detach().to("cpu").double().numpy()
    return numpy.asarray(x).astype("float64")


def same(x, expected, what=""):
    """Fails unless the array holds these numbers exactly."""
    numpy.testing.assert_array_equal(values_of(x).reshape(-1), expected, err_msg=str(what))


def libraries():
    """Those to test with; torch only where the run asks for it, since it takes seconds to load."""
    every = ["numpy", "dlpack", "memoryview", "array"]
    return [*every, "torch"] if os.environ.get("WITH_TORCH") else every


def counts_for(ranks):
    """Awkward lengths: nothing, fewer than ranks, not divisible, primes, many segments."""
    return sorted({0, 1, ranks - 1, ranks, ranks + 1, 2 * ranks + 1, 13, 101, 1009})


def raises(kind, words, function):
    """Fails unless `function` raises `kind` with a message that holds all `words`."""
    try:
        function()
    except kind as error:
        for word in words.split("|"):
            assert word in str(error), f"'{word}' is not in: {error}"
        return error
    raise AssertionError(f"no {kind}")


def end_check(*_):
    raise TimeoutError(f"the check has not ended within {CHECK_S:g} s")


def run_checks(checks, comm=None, leaks=True):
    """Runs every check on a communicator of its own; writes what failed to $RESULTS/<rank>.json.

    One that does not end in time has failed, and the others go on.

    leaks: complain at exit about objects of the core that are still alive.
    """
    comm = comm or paceline.init()
    failures = {}
    path = Path(os.environ["RESULTS"]) / f"{comm.rank}.json"
    signal.signal(signal.SIGALRM, end_check)
    for name, check in checks.items():
        failures[name] = "this check, or one before it, did not come to its end"
        path.write_text(json.dumps(failures))
        own = comm.dup()
        try:
            signal.setitimer(signal.ITIMER_REAL, CHECK_S)
            check(own)
            failures[name] = ""
        except BaseException:
            failures[name] = traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if failures[name]:
            print(f"rank {comm.rank}, {name}:\n{failures[name]}", file=sys.stderr, flush=True)
        del own
        comm.barrier()
        path.write_text(json.dumps(failures))
    if leaks:
        _core.warn_of_leaks()


def checks_in(module):
    """The functions of a module whose names begin with check_, by the rest of the name."""
    return {
        name.removeprefix("check_"): value
        for name, value in vars(module).items() if name.startswith("check_")
    }  # fmt: skip
