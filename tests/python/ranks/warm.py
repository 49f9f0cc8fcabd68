"""How many pages each call of the world has to fetch: its staging buffers are there from the start,
and are the same for all collectives and types. Last, the first call of another communicator, whose
buffers are not."""

import json
import resource

import numpy

import paceline

BYTES = 1 << 19

comm = paceline.init()
p = comm.size
types = ["float32", "float64", "int32", "uint8"]
x = {name: numpy.ones(BYTES // numpy.dtype(name).itemsize, name) for name in types}
whole = {name: numpy.ones(p * x[name].size, name) for name in types}
into = numpy.ones_like(whole["float32"])
calls = {
    "allreduce float32": lambda: comm.allreduce(x["float32"]),
    "allreduce float64": lambda: comm.allreduce(x["float64"]),
    "broadcast int32": lambda: comm.broadcast(x["int32"]),
    "reduce float64": lambda: comm.reduce(x["float64"]),
    "allgather uint8": lambda: comm.allgather(x["uint8"], out=whole["uint8"]),
    "reduce_scatter int32": lambda: comm.reduce_scatter(whole["int32"], out=x["int32"]),
    "alltoall float32": lambda: comm.alltoall(whole["float32"], out=into),
}
other = comm.dup()
calls["another communicator"] = lambda: other.allreduce(x["float32"])


def pages(call):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


print(json.dumps({name: pages(call) for name, call in calls.items()}))
