"""Which libfabric a rank's MPI uses, and where the C library says that its providers are."""

import ctypes

import numpy

import paceline

world = paceline.init()
x = numpy.full(5000, world.rank + 1, "float32")
world.allreduce(x)
assert (x == sum(range(1, world.size + 1))).all()
with open("/proc/self/maps", encoding="utf-8") as maps:
    paths = {line.split()[-1] for line in maps if "/libfabric.so" in line}
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print(f"rank {world.rank}:", *sorted(paths), (getenv(b"FI_PROVIDER_PATH") or b"unset").decode(),
      flush=True)  # fmt: skip
