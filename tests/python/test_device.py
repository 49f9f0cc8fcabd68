"""paceline.device: collectives between the emulated devices of one process."""

import numpy
import pytest
from length import each

import paceline
from paceline import _core, device


def group_of(size, **options):
    return device.Group(device.emulated(size, **options))


def data(size, count=100, dtype="float32"):
    """Unique for each position and index; sums of them are exact."""
    return [numpy.arange(count).astype(dtype) * (position + 1) for position in range(size)]


@each("threads", [False, True], [])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_all_collectives(size, threads):
    group, x = group_of(size, threads=threads, seed=size), data(size, 20 * size)
    total = sum(array.copy() for array in x)
    out = group.allreduce(x, [numpy.empty_like(array) for array in x])
    summed = group.reduce([array.copy() for array in x], root=size - 1)
    copied = group.broadcast([array.copy() for array in x], root=size - 1)
    parts, whole, swapped = group.reduce_scatter(x), group.allgather(x), group.alltoall(x)
    group.synchronize()
    for position in range(size):
        assert (out[position] == total).all() and (copied[position] == x[size - 1]).all()
        assert (parts[position] == total.reshape(size, 20)[position]).all()
        assert (whole[position] == numpy.concatenate(x)).all()
        pieces = [array.reshape(size, 20)[position] for array in x]
        assert (swapped[position] == numpy.concatenate(pieces)).all()
    assert (summed[size - 1] == total).all() and summed[:-1] == [None] * (size - 1)


@pytest.mark.parametrize("algorithm", ["chain", "ring", "rabenseifner", "binomial", "staged"])
def test_algorithms_and_segments(algorithm):
    known = [row["name"] for row in _core.algorithms() if row["collective"] == "allreduce"]
    if algorithm not in known:
        algorithm = next(name for name in known if name == "one_shot")
    group, x = group_of(4), data(4, 1000)
    total = sum(array.copy() for array in x)
    straight = algorithm == "one_shot"
    options = {} if straight else {"segments": 4}
    assert algorithm in group.explain("allreduce", x, algorithm=algorithm, **options)
    group.allreduce(x, algorithm=algorithm, **options)
    group.synchronize()
    assert all((array == total).all() for array in x)


def test_a_device_at_several_positions():
    group, x = device.Group(device.emulated(1), [0, 0, 0]), data(3)
    total = sum(array.copy() for array in x)
    group.allreduce(x)
    group.synchronize()
    assert all((array == total).all() for array in x)


@pytest.mark.parametrize("threads", [False, True])
def test_a_plan_reads_its_arrays_anew(threads):
    group, x = group_of(3, threads=threads), data(3, 50)
    plan = group.plan("allreduce", x, algorithm="ring")
    for turn in range(3):
        for position, array in enumerate(x):
            array[:] = 10 * turn + position
        plan.start()
        group.synchronize()
        assert all((array == 30 * turn + 3).all() for array in x)


def test_arrays_live_until_the_call_is_done():
    group = group_of(2)
    out = group.allreduce(data(2, 1 << 16), [numpy.zeros(1 << 16, "float32") for _ in range(2)])
    del out
    group.synchronize()
    group.allreduce(data(2))  # and one that nobody waits for


def test_bad_input_is_refused_before_anything_is_enqueued():
    group, x = group_of(2), data(2)
    refused = [
        (paceline.UsageError, "an array for each of 2 positions; there are 3", (data(3),), {}),
        (paceline.UsageError, "all positions make the same call", (
            [x[0], x[1].astype("float64")],), {}),
        (paceline.UsageError, "all positions make the same call", ([x[0], x[1][:50]],), {}),
        (paceline.UsageError, "tag is of calls between processes", (x,), {"tag": 1}),
        (paceline.UsageError, "no algorithm|nothing", (x,), {"algorithm": "nothing"}),
        (paceline.RefusalError, "bit_and", (x, None, "bit_and"), {}),
        (paceline.UsageError, "complex64", ([array.astype("complex64") for array in x],), {}),
    ]
    for kind, words, arguments, options in refused:
        with pytest.raises(kind, match=words):
            group.allreduce(*arguments, **options)
    with pytest.raises(paceline.UsageError, match="there is no device 2; there are 0 to 1"):
        device.Group(device.emulated(2), [0, 2])
    with pytest.raises(paceline.UsageError, match="0 emulated devices"):
        device.emulated(0)
    group.allreduce(x)
    group.synchronize()
    assert (x[0] == data(2)[0] + data(2)[1]).all()


def test_memory_of_another_device_is_refused():
    devices = device.emulated(2)
    group = device.Group(devices)
    x = [device.empty(devices, position, 100) for position in range(2)]
    with pytest.raises(paceline.UsageError, match="array is on device 1 and must be on device 0"):
        group.allreduce(x[::-1])
    inside = [device.empty(devices, 0, 100)[20:40], numpy.ones(20, "float32")]
    with pytest.raises(paceline.UsageError, match="array is on device 0 and must be on device 1"):
        group.allgather(inside[::-1])
    for position in range(2):
        x[position][:] = position + 1
    group.allreduce(x)
    group.synchronize()
    assert (x[0] == 3).all() and (x[1] == 3).all()


def test_too_little_memory_names_the_device():
    group, x = group_of(2, memory_bytes=1000), data(2, 1000)
    for _ in range(3):
        with pytest.raises(paceline.ResourceError, match="on device 0, which has 1000 left of 100"):
            group.allreduce(x, algorithm="ring", segments=1)
    assert (x[0] == data(2, 1000)[0]).all()  # nothing was enqueued, and nothing is kept
    y = data(2)
    group.allreduce(y, algorithm="ring", segments=1)
    group.synchronize()
    assert (y[1] == data(2)[0] + data(2)[1]).all()


def test_a_device_that_goes_is_named_and_the_others_go_on():
    devices = device.emulated(3)
    group, x = device.Group(devices), data(3)
    devices.lose(1)
    group.allreduce(x)
    with pytest.raises(paceline.RankLost, match="device 1 has gone"):
        group.synchronize()
    others, y = device.Group(devices, [0, 2]), data(2)
    others.allreduce(y)
    others.synchronize()
    assert (y[0] == data(2)[0] + data(2)[1]).all()


def test_when_it_would_run():
    """4 blocks on 3 devices: 9 steps of a linear pipeline were published. The last device sends 8
    blocks, four of its own and four results, so nothing takes fewer."""
    devices, block = device.timed(3), 1 << 10
    group, x = device.Group(devices), data(3, block)
    group.allreduce(x, algorithm="chain", segments=4, window=4)
    group.synchronize()
    machine = f"0,{1 / block},0"  # alpha, beta, gamma: a second for each of the 4 blocks
    spans = devices.spans(machine)
    assert max(end for _, end in spans) == 8
    assert devices.spans(machine) == []
