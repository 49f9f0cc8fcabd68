"""One of two ranks that join a world again and again until they meet. argv: rank, way, folder.

Rank 1 is late: it comes after rank 0 has given up three times. Both have loaded everything by then,
however long that takes."""

import pathlib
import sys
import time

import numpy as np

import paceline

rank, way, folder = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
TRIES = 12
LIMIT_MS = 2500


if way != "folder":
    from datetime import timedelta

    import torch.distributed as dist

    from paceline.torchrun import TorchStore

    store = dist.FileStore(str(folder / "torch"))


def join():
    if way == "folder":
        return paceline.init(rank, 2, str(folder), start_timeout_ms=LIMIT_MS)
    if way == "store":
        return paceline.init(rank, 2, TorchStore(store, "here"), start_timeout_ms=LIMIT_MS)
    dist.init_process_group("paceline", rank=rank, world_size=2, store=store,
                            timeout=timedelta(milliseconds=LIMIT_MS))  # fmt: skip
    return paceline.init()


(folder / f"loaded.{rank}").touch()
awaited = folder / ("failed.0.3" if rank == 1 else "loaded.1")
while not awaited.exists():
    time.sleep(0.02)
for tries in range(1, TRIES + 1):
    try:
        comm = join()
        break
    except paceline.TimeoutError:
        (folder / f"failed.{rank}.{tries}").touch()
else:
    sys.exit(f"rank {rank} has not met the other in {TRIES} tries")
print(comm.allreduce(np.ones(1))[0])
