"""Checks of paceline.device on several ranks: through the host, and between devices."""

import os
import time

import numpy
from support import checks_in, data, raises, run_checks

import paceline
from paceline import device, kvstore

KIND = os.environ.get("DEVICES", "emulated")


def devices_of(comm):
    return device.cuda() if KIND == "cuda" else device.emulated(2, threads=True, seed=comm.rank)


def on_device(devices, number, values):
    """An array on a device with these values, and how to read it."""
    if KIND == "cuda":
        array = device.Array(devices, number, values.size, values.dtype)
        return array.put(values)
    array = device.empty(devices, number, values.size, values.dtype)
    array[:] = values
    return array


def values_of(array):
    return array.get() if KIND == "cuda" else array


def all_of(comm, count, type):
    return [data(rank, count, type).astype(type) for rank in range(comm.size)]


def check_all_collectives(comm):
    """Of every way, against sums on the host."""
    devices, n = devices_of(comm), 30 * comm.size
    number = comm.rank % devices.count
    for one in (device.Link(comm, devices, number), device.Peers(comm, devices, number)):
        for type in ("float32", "int64", "float16"):
            every = all_of(comm, n, type)
            mine = every[comm.rank]
            total = sum(array.astype("float64") for array in every).astype(type)
            summed = one.allreduce(on_device(devices, number, mine))
            copied = one.broadcast(on_device(devices, number, mine), root=comm.size - 1)
            reduced = one.reduce(on_device(devices, number, mine), root=0)
            x = on_device(devices, number, mine)
            out = {name: on_device(devices, number, numpy.zeros(count, type)) for name, count in
                   (("reduce_scatter", 30), ("allgather", comm.size * n), ("alltoall", n))}
            for name, array in out.items():
                getattr(one, name)(x, array)
            one.synchronize()
            assert (values_of(summed) == total).all()
            assert (values_of(copied) == every[-1]).all()
            assert reduced is None if comm.rank else (values_of(reduced) == total).all()
            pieces = [array.reshape(comm.size, 30)[comm.rank] for array in every]
            wanted = {"reduce_scatter": total.reshape(comm.size, 30)[comm.rank],
                      "allgather": numpy.concatenate(every), "alltoall": numpy.concatenate(pieces)}
            for name, array in out.items():
                assert (values_of(array) == wanted[name]).all(), (one, name, type)


def check_stages(comm):
    """Every stage is at work; memory is registered by the first call, and not by later ones."""
    devices = devices_of(comm)
    link = device.Link(comm, devices)
    x = on_device(devices, 0, data(comm.rank, 20000).astype("float32"))
    for turn in range(4):
        link.allreduce(x, algorithm="ring", segments=4, window=2)
        link.synchronize()
        stages = link.stages()
        assert stages["calls"] == turn + 1
        if turn == 0:
            first = stages
    if comm.size == 1:
        return
    busy = stages["seconds"]
    assert all(busy[name] > 0 for name in ("register", "copy out", "send", "receive", "copy in"))
    assert busy["reduce"] > 0 and stages["calls_s"] > first["calls_s"]
    # How many blocks are under way at a time is the machine's affair, but bounded by the window.
    assert stages["pinned_bytes"] <= 4 * max(first["pinned_bytes"], 80000)
    said = link.explain("allreduce", x, algorithm="ring", segments=4, window=2)
    assert "ring, 4 segments" in said


def check_bad_input(comm):
    """Refused before anything is sent, by every rank; the next call is well."""
    devices = devices_of(comm)
    link = device.Link(comm, devices)
    x = on_device(devices, 0, data(comm.rank, 100).astype("float32"))
    raises(paceline.UsageError, "there is no device 7", lambda: device.Link(comm, devices, 7))
    raises(paceline.UsageError, "nothing", lambda: link.allreduce(x, algorithm="nothing"))
    raises(paceline.RefusalError, "bit_and", lambda: link.allreduce(x, op="bit_and"))
    raises(paceline.UsageError, "complex", lambda: link.allreduce(numpy.zeros(4, "complex64")))
    if KIND == "emulated":
        other = on_device(devices, 1, numpy.zeros(100, "float32"))
        raises(paceline.UsageError, "on device 1 and must be on device 0",
               lambda: link.allreduce(other))
    if KIND == "cuda":
        host = numpy.zeros(100, "float32")
        raises(paceline.UsageError, "on the host and must be on device 0",
               lambda: link.allreduce(host))
        raises(paceline.UsageError, "x is in memory of a device and out of the host",
               lambda: comm.allreduce(x, host))
        if devices.count > 1:
            other = on_device(devices, 1, host)
            raises(paceline.UsageError, "x is on device 0 and out on device 1",
                   lambda: comm.allreduce(x, other))
            raises(paceline.UsageError, "on device 1 and must be on device 0",
                   lambda: link.allreduce(other))
        x.__cuda_array_interface__ = {**x.__cuda_array_interface__, "typestr": "<c8"}
        raises(paceline.UsageError, "<c8", lambda: comm.allreduce(x))
        x.__cuda_array_interface__ = {**x.__cuda_array_interface__, "typestr": 4}
        raises(paceline.UsageError, "not one", lambda: comm.allreduce(x))
        x.__cuda_array_interface__ = {**x.__cuda_array_interface__, "typestr": "<f4",
                                      "strides": (8,)}
        raises(paceline.UsageError, "not contiguous", lambda: comm.allreduce(x))
    y = on_device(devices, 0, numpy.ones(100, "float32"))
    link.allreduce(y)
    link.synchronize()
    assert (values_of(y) == comm.size).all()


def check_communicator(comm):
    """A communicator takes arrays on CUDA devices as they are."""
    if KIND != "cuda":
        return
    devices = device.cuda()
    every = all_of(comm, 1000, "float32")
    total = sum(every)
    x = on_device(devices, comm.rank % devices.count, every[comm.rank])
    out = on_device(devices, comm.rank % devices.count, numpy.zeros(1000, "float32"))
    assert comm.allreduce(x, out) is out
    assert (out.get() == total).all() and (x.get() == every[comm.rank]).all()
    request = comm.iallreduce(x)
    request.join(0)  # the default stream follows, and the host need not wait
    request.wait()
    assert (x.get() == total).all()
    whole = comm.allgather(x)
    assert isinstance(whole, device.Array) and whole.shape == (1000 * comm.size,)
    assert (whole.get() == numpy.tile(total, comm.size)).all()
    plan = comm.plan("broadcast", x, root=0)
    x.put(every[comm.rank])
    plan.start()
    plan.wait()
    assert (x.get() == every[0]).all()


def check_kvstore(comm):
    """Values on devices, two of them local ones; copies are tasks of the engine."""
    if KIND != "cuda":
        return
    devices, every = device.cuda(), all_of(comm, 500, "float32")
    for kind in kvstore.TYPES:
        store = kvstore.create(kind, comm)
        x = on_device(devices, comm.rank % devices.count, every[comm.rank])
        store.init("w", x)
        assert (x.get() == every[0]).all()
        x.put(every[comm.rank])
        y = on_device(devices, devices.count - 1, every[comm.rank])
        out = on_device(devices, 0, numpy.zeros(500, "float32"))
        store.push("w", [x, y])
        store.pull("w", [out, y])
        store.wait()
        assert (out.get() == 2 * sum(every)).all() and (y.get() == out.get()).all(), kind
        store.close()


def check_memory_is_freed_while_a_call_waits(comm):
    """To free is to wait for every stream of the device, and so for ranks that are late."""
    devices = devices_of(comm)
    number = comm.rank % devices.count
    link = device.Link(comm, devices, number)
    x = on_device(devices, number, numpy.ones(3000, "float32"))
    for turn in range(3):
        spare = on_device(devices, number, numpy.zeros(1000, "float32"))
        if turn % comm.size == comm.rank:
            time.sleep(0.2)
        link.allreduce(x)
        link.broadcast(x, root=comm.size - 1)
        del spare
    link.synchronize()
    assert (values_of(x) == comm.size**3).all()


def check_mixed_with_the_host(comm):
    """Calls on memory of the host and of a device by turns."""
    devices = devices_of(comm)
    link = device.Link(comm, devices)
    host = numpy.full(5000, comm.rank + 1.0, "float32")
    x = on_device(devices, 0, host)
    for _ in range(3):
        link.allreduce(x, op="max")
        comm.allreduce(host, op="max")
    link.synchronize()
    assert (values_of(x) == comm.size).all() and (host == comm.size).all()


if __name__ == "__main__":
    import device_checks

    run_checks(checks_in(device_checks), leaks=False)
