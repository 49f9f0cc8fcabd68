"""What Intel MPI's buffers are in a world, as the C library has it; or why there is none."""

import ctypes
import sys

import numpy

import paceline

LONG = 5000  # float32: more than one buffer holds


def buffers():
    """The variable as MPI finds it, or the word `unset`."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    return (getenv(b"FI_OFI_RXM_BUFFER_SIZE") or b"unset").decode()


try:
    world = paceline.init()
    for count in (1, LONG, 3 * LONG):
        x = numpy.full(count, world.rank + 1, "float32")
        world.allreduce(x)
        assert (x == sum(range(1, world.size + 1))).all()
    print(f"rank {world.rank}: {buffers()}", flush=True)
except paceline.Error as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    sys.exit(3)
