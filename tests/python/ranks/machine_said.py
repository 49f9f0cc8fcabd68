"""One rank says what its choices between nodes reckon with, and what it would choose."""

import os

import numpy as np

import paceline


def main():
    comm = paceline.init()
    x = np.ones(1 << 18, dtype="float32")
    total = comm.allreduce(x.copy())
    assert (total == comm.size).all()
    said = f"said: {comm.explain('allreduce', x)} / {comm.explain('broadcast', x)}\n"
    os.write(1, said.encode())   # at once: print() may write each word alone, between other ranks'
    comm.barrier()


if __name__ == "__main__":
    main()
