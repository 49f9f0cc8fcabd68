"""Steps of every type of KVStore, while each rank looks at what it holds.

    steady_store.py STEPS [LEAK]     LEAK: each step has arrays of its own, and keeps them
"""

import json
import sys

import numpy
from steady import LOOKS, held

import paceline
from paceline import kvstore

KEYS = 20


def main():
    comm = paceline.init()
    steps, kept = int(sys.argv[1]), []
    keys, looks = list(range(KEYS)), []
    grads = [numpy.zeros(256, "float32") for _ in keys]
    stores = [kvstore.create(kind, comm) for kind in kvstore.TYPES]
    for store in stores:
        store.init(keys, grads)
    for step in range(1, steps + 1):
        if len(sys.argv) > 2:
            grads = [numpy.zeros(256, "float32") for _ in keys]
            kept.append(grads)
        for store in stores:
            for key, grad in zip(keys, grads, strict=True):
                grad.fill(comm.rank + key)
            if step % 2:
                store.pushpull(keys, grads)
            else:
                for key in keys:
                    store.pushpull(key, grads[key])
            store.wait()
            sums = [comm.size * key + comm.size * (comm.size - 1) // 2 for key in keys]
            assert [grad[-1] for grad in grads] == sums
        if step % (steps // LOOKS) == 0:
            looks.append(held(comm))
    for store in stores:
        store.close()
    print(json.dumps(looks))


if __name__ == "__main__":
    main()
