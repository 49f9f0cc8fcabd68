"""One rank says what its choices between nodes reckon with, and what it would choose."""

import numpy as np

import paceline


def main():
    comm = paceline.init()
    x = np.ones(1 << 18, dtype="float32")
    total = comm.allreduce(x.copy())
    assert (total == comm.size).all()
    print("said:", comm.explain("allreduce", x), "/", comm.explain("broadcast", x), flush=True)
    comm.barrier()


if __name__ == "__main__":
    main()
