"""Sums that depend on their order, held against those in rank order, bit for bit.

Arguments: paceline, torch or mpi4py, by which of them to call; prints a digest of all results.
"""

import hashlib
import sys

import numpy as np

COUNTS = (1, 100, 3001, 70001)
TYPES = ("float64", "float32", "float16")


def numbers(rank, count, dtype):
    """Numbers that round and cancel, with infinities, NaN, zeros of both signs and denormals."""
    random = np.random.default_rng([rank, count])
    x = random.standard_normal(count) * 2.0 ** random.integers(-12, 12, count)
    size = np.finfo(dtype).max / 4
    cancels = np.arange(count) % 5 == 2
    x[cancels] = (size, 1.0, -size, 0.25)[rank % 4]
    odd = [np.inf, -np.inf, np.nan, 0.0, -0.0, np.finfo(dtype).smallest_subnormal]
    some = random.random(count) < 0.02
    x[some] = random.choice(odd, some.sum())
    x[7::50] = -0.0
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def in_rank_order(ranks, count, dtype):
    """Added from left to right, 16-bit numbers in float32, rounded once."""
    wide = np.float32 if dtype == "float16" else dtype
    with np.errstate(all="ignore"):
        total = numbers(0, count, dtype).astype(wide)
        for rank in range(1, ranks):
            total = total + numbers(rank, count, dtype).astype(wide)
        total = total.astype(dtype)
    total[np.isnan(total)] = np.nan
    return total


class Paceline:
    def __init__(self):
        import paceline

        self.comm = paceline.init()
        self.rank, self.size = self.comm.rank, self.comm.size

    def allreduce(self, x):
        return self.comm.allreduce(x.copy())

    def reduce(self, x, root):
        out = np.empty_like(x) if self.rank == root else None
        self.comm.reduce(x, out, root=root)
        return out

    def reduce_scatter(self, x, out):
        return self.comm.reduce_scatter(x, out)


class Torch:
    def __init__(self):
        import torch
        import torch.distributed as dist

        import paceline.torch  # noqa: F401

        dist.init_process_group("paceline")
        self.torch, self.dist = torch, dist
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def allreduce(self, x):
        out = self.torch.tensor(x)
        self.dist.all_reduce(out)
        return out.numpy()

    def reduce(self, x, root):
        out = self.torch.tensor(x)
        self.dist.reduce(out, root)
        return out.numpy() if self.rank == root else None

    def reduce_scatter(self, x, out):
        target = self.torch.from_numpy(out)
        self.dist.reduce_scatter_tensor(target, self.torch.tensor(x))
        return target.numpy()


class Mpi4py:
    types = ("float64", "float32")

    def __init__(self):
        from mpi4py import MPI

        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size

    def allreduce(self, x):
        out = np.empty_like(x)
        self.comm.Allreduce(x, out)
        return out

    def reduce(self, x, root):
        out = np.empty_like(x) if self.rank == root else None
        self.comm.Reduce(x, out, root=root)
        return out

    def reduce_scatter(self, x, out):
        self.comm.Reduce_scatter_block(x, out)
        return out


def compare(what, got, wanted):
    bits = {8: np.uint64, 4: np.uint32, 2: np.uint16}[wanted.itemsize]
    differ = np.flatnonzero(np.asarray(got).view(bits) != wanted.view(bits))
    if differ.size:
        i = differ[0]
        sys.exit(f"{what}: {differ.size} of {wanted.size} are not as in rank order, the first at "
                 f"{i}: {got[i]!r} instead of {wanted[i]!r}")


def main(way):
    ways = {"paceline": Paceline, "torch": Torch, "mpi4py": Mpi4py}
    through = ways[way]()
    rank, p, digest = through.rank, through.size, hashlib.sha256()
    for dtype in getattr(through, "types", TYPES):
        for count in COUNTS:
            what = f"{way} of {count} {dtype} on {p}"
            wanted = in_rank_order(p, count, dtype)
            compare(f"allreduce by {what}", through.allreduce(numbers(rank, count, dtype)), wanted)
            got = through.reduce(numbers(rank, count, dtype), p - 1)
            if rank == p - 1:
                compare(f"reduce by {what}", got, wanted)
            wanted = in_rank_order(p, p * count, dtype)[rank * count:][:count]
            got = through.reduce_scatter(numbers(rank, p * count, dtype), np.empty(count, dtype))
            compare(f"reduce_scatter by {what}", got, wanted)
            digest.update(wanted.tobytes())
    sys.stdout.write(f"digest {digest.hexdigest()}\n")  # at once: ranks share it


if __name__ == "__main__":
    main(sys.argv[1])
