"""Bad input: an error of the right class, before anything is sent, that says what to do."""

import types

import launched
import numpy
import pytest
from support import DLPackOnly

import paceline
from paceline import _core, calls

pytestmark = pytest.mark.ranks

ones = numpy.ones


@pytest.fixture(scope="module")
def comm():
    """The only rank of a world: what is wrong with arguments shows without any other."""
    yield paceline.init()
    paceline.finalize()


def read_only(x):
    x.flags.writeable = False
    return x


def strided_torch():
    torch = pytest.importorskip("torch")
    return torch.ones(4, 4).t()


class OnDevice:
    """A tensor that says through DLPack that it lives on a GPU."""

    def __dlpack__(self, **keywords):
        return ones(3).__dlpack__()

    def __dlpack_device__(self):
        return (2, 0)


CASES = {
    # what is no buffer, or has the wrong elements
    "list": (lambda c: c.allreduce([1, 2]), "allreduce: x is a list|numpy array"),
    "none": (lambda c: c.allreduce(None), "x is None"),
    "number": (lambda c: c.broadcast(3), "broadcast: x is a int"),
    "complex": (lambda c: c.allreduce(ones(3, "complex64")), "complex64|bfloat16"),
    "strings": (lambda c: c.allreduce(numpy.array(["a"])), "<U1"),
    "objects": (lambda c: c.broadcast(numpy.array([None])), "object"),
    "dates": (lambda c: c.broadcast(numpy.zeros(2, "M8[D]")), "datetime64"),
    "records": (lambda c: c.broadcast(numpy.zeros(2, "i4,f8")), "f0"),
    "other byte order": (lambda c: c.allreduce(ones(3, ">f8")), ">f8"),
    "long double": (lambda c: c.allreduce(ones(3, "longdouble")), "float128|longdouble"),
    # how it lies in memory
    "strided": (lambda c: c.allreduce(ones(6)[::2]), "not contiguous|ascontiguousarray"),
    "columns": (lambda c: c.allreduce(ones((3, 3)).T), "not contiguous"),
    "backwards": (lambda c: c.allreduce(ones(3)[::-1]), "not contiguous"),
    "strided torch": (lambda c: c.allreduce(strided_torch()), "not contiguous|x.contiguous()"),
    "read-only": (lambda c: c.allreduce(read_only(ones(3))), "x is read-only|writable"),
    "read-only out": (lambda c: c.allreduce(ones(3), read_only(ones(3))), "out is read-only"),
    "read-only DLPack": (lambda c: c.allreduce(DLPackOnly(read_only(ones(3)))), "read-only"),
    "bytes": (lambda c: c.allreduce(b"abc", op="max"), "read-only"),
    "overlap": (lambda c: overlapping(c), "overlap"),
    # lengths
    "out too small": (lambda c: c.allreduce(ones(3), ones(2)), "out has 2 elements|must have 3"),
    "out too large": (lambda c: c.allgather(ones(3), ones(5)), "out has 5|1 rank x 3"),
    "piece": (lambda c: c.reduce_scatter(ones(3), ones(2)), "out has 2|must have 3"),
    "other type": (lambda c: c.allreduce(ones(3), ones(3, "f4")), "float64|float32|equal"),
    "few counts": (lambda c: c.allgather(ones(3), counts=[]), "counts has 0|1 rank"),
    "many counts": (lambda c: c.allgather(ones(3), counts=[1, 2]), "counts has 2|1 rank"),
    "counts of what": (lambda c: c.allgather(ones(3), counts=5), "sequence"),
    "negative count": (lambda c: c.allgather(ones(3), counts=[-1]), "counts[0] is -1|negative"),
    "count is 1.5": (lambda c: c.allgather(ones(3), counts=[1.5]), "1.5|whole number"),
    "huge count": (lambda c: c.allgather(ones(3), counts=[1 << 62]), "counts|memory"),
    "larger than any": (lambda c: c.allgather(ones(3), counts=[1 << 80]), "counts[0]|memory"),
    "wrong count": (lambda c: c.allgather(ones(3), counts=[2]), "x has 3 elements|must have 2"),
    "counts and sum": (lambda c: c.reduce_scatter(ones(3), counts=[2]), "sum of counts"),
    "no counts": (lambda c: c.gatherv(ones(3)), "gatherv|counts"),
    "counts received": (lambda c: c.alltoallv(ones(3), [3], [2], ones(3)), "counts_received"),
    "no out": (lambda c: c.scatter(), "x is None|out is None"),
    # roots, operations, options
    "root too large": (lambda c: c.broadcast(ones(3), root=1), "root is 1|from 0 to 0"),
    "root negative": (lambda c: c.reduce(ones(3), root=-1), "root is -1"),
    "operation": (lambda c: c.allreduce(ones(3), op="plus"), "'plus'|sum, product"),
    "algorithm": (lambda c: c.allreduce(ones(3), algorithm="bogus"), "'bogus'|ring|auto"),
    "algorithm is 3": (lambda c: c.allreduce(ones(3), algorithm=3), "algorithm is 3"),
    "segments": (lambda c: c.allreduce(ones(3), segments=-2), "segments is -2|like '4MiB'"),
    "segments of x": (lambda c: c.allreduce(ones(3), segments="4Mi"), "is '4Mi'|such as 4MiB"),
    "segments of 0": (lambda c: c.allreduce(ones(3), segments="0KiB"), "is '0KiB'|such as 4MiB"),
    "window": (lambda c: c.allreduce(ones(3), window="x"), "window is 'x'"),
    "radix": (lambda c: c.allreduce(ones(3), algorithm="circulant", radix=1), "radix is 1|2 to 16"),
    "radix of what": (lambda c: c.allreduce(ones(3), radix=3), "radix is 3|circulant"),
    "no radix": (lambda c: c.allreduce(ones(3), algorithm="ring", radix=3), "no radix|circulant"),
    "blocks": (lambda c: c.broadcast(ones(3), algorithm="circulant", blocks=4097), "1 to 4096"),
    "blocks is x": (lambda c: c.reduce(ones(3), blocks="x"), "blocks is 'x'"),
    "radix of gather": (lambda c: c.gather(ones(3), algorithm="linear", radix=2), "no gather has"),
    "plan and radix": (lambda c: c.plan("allreduce", ones(3), radix=3), "radix is 3|circulant"),
    "timeout": (lambda c: c.barrier(timeout_ms=-5), "timeout_ms is -5"),
    "own timeout": (lambda c: setattr(c, "timeout_ms", 0), "timeout_ms is 0|at least 1"),
    "collective": (lambda c: c.plan("allsum", ones(3)), "'allsum'|allreduce"),
    "plan arguments": (lambda c: c.plan("allreduce", ones(3), bogus=1), "bogus"),
    "not a member": (lambda c: c.subgroup([], 1), "subgroup"),
    "no such rank": (lambda c: c.subgroup([0, 7], 1), "7"),
    "another world": (lambda c: paceline.init(0, 2, "/nowhere"), "rank 0 of 1|finalize"),
}  # fmt: skip


def overlapping(comm):
    x = ones(10)
    return comm.allreduce(x[:6], x[2:8])


@pytest.mark.parametrize("name", CASES)
def test_usage(comm, name):
    call, words = CASES[name]
    with pytest.raises(paceline.UsageError) as caught:
        call(comm)
    assert isinstance(caught.value, ValueError)
    message = str(caught.value)
    if name in ("long double", "no out"):
        assert any(word in message for word in words.split("|")), message
    else:
        assert [word for word in words.split("|") if word not in message] == [], message
    assert comm.allreduce(ones(2)).tolist() == [1, 1]  # nothing was sent, nothing is broken


REFUSED = {
    "bits of floats": (lambda c: c.allreduce(ones(3), op="bit_and"), "bit_and|float64"),
    "average of bools": (lambda c: c.allreduce(ones(3, bool), op="average"), "average|bool"),
    "another device": (lambda c: c.allreduce(OnDevice()), "device"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusal(comm, name):
    call, words = REFUSED[name]
    with pytest.raises(paceline.RefusalError) as caught:
        call(comm)
    message = str(caught.value)
    assert [word for word in words.split("|") if word not in message] == [], message


def test_cuda_tensor_is_refused(comm):
    torch = pytest.importorskip("torch")
    with pytest.raises(paceline.RefusalError, match="tensor on meta.*x.cpu()"):
        comm.allreduce(torch.ones(3, device="meta"))  # as near to a GPU as this machine gets


def test_unknown_keyword_is_a_type_error(comm):
    with pytest.raises(TypeError, match="algorythm"):
        comm.allreduce(ones(3), algorythm="ring")


def test_result_without_memory():
    with pytest.raises(paceline.ResourceError, match="allgather"):
        calls.allgather(types.SimpleNamespace(size=1 << 50, rank=0), ones(1 << 10))


def test_errors_are_a_family():
    for name in dir(paceline):
        kind = getattr(paceline, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(kind, paceline.Error)
    assert issubclass(paceline.TimeoutError, TimeoutError)
    assert issubclass(paceline.UsageError, ValueError)


def test_init_arguments():
    with pytest.raises(paceline.UsageError, match="belong together"):
        launched_alone("paceline.init(rank=0)")
    with pytest.raises(paceline.UsageError, match="store"):
        launched_alone("paceline.init(0, 2)")
    with pytest.raises(paceline.UsageError, match="rank 3 of 2"):
        launched_alone("paceline.init(3, 2, '/tmp')")
    with pytest.raises(paceline.UsageError, match="PACELINE_TIMEOUT_MS"):
        launched_alone("paceline.init()", PACELINE_TIMEOUT_MS="soon")


def launched_alone(code, **environment):
    """Runs `code` in a process without a world, and raises here what it raised there."""
    run = launched.start("one.py", 1, code, env={"PACELINE_TIMEOUT_MS": "", **environment})
    kind, _, message = run.text(0, "stdout").partition(": ")
    raise getattr(paceline, kind)(message)


@pytest.mark.parametrize("name", [*launched.names("mismatch_checks"), "end"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_mismatch(name, ranks):
    launched.expect("mismatch_checks", name, ranks)


def test_the_core_names_its_parts():
    assert "allreduce" in _core.collectives() and "sum" in _core.ops()
