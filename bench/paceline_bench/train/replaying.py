"""One rank of `paceline train replay`: waits as long as the real step computes, and exchanges.

Started as `python -m paceline_bench.train.replaying SPEC`. Computing is a chain of tasks that
sleep: the layers of a forward pass, each of which reads its own weights, then the backward pass,
which makes one gradient after the other. The result of a key's exchange stands for its new weights.
"""

import contextlib
import functools
import json
import socket
import sys
import time
from pathlib import Path

import numpy as np
import paceline
from paceline import engine, kvstore
from paceline.errors import Error

from paceline_bench.measure import links
from paceline_bench.measure.meeting import Meeting, wait_until
from paceline_bench.train import libraries, pace, perfect

PERIOD = 1021  # a prime: no cut of a buffer falls together with it
CHUNK = PERIOD << 8
SLACK_S = 300e-6  # of a sleep; a layer that begins later has waited for weights
CYCLE_S = 1e-3  # of Horovod
STORES = ("funnel", "concom", "depcha", "auto")


class Keys:
    """The gradients of this rank. Ends of each carry a value of step and rank; the rest is equal
    in all steps, and on all ranks, so that its average is, too."""

    def __init__(self, step, rank, ranks):
        self.rank, self.ranks = rank, ranks
        self.pattern = np.arange(CHUNK, dtype=np.float32) % PERIOD
        self.arrays = [np.empty(nbytes // perfect.ELEMENT_BYTES, np.float32)
                       for nbytes in step.bytes]
        for array in self.arrays:
            for at in range(0, array.size, CHUNK):
                array[at : at + CHUNK] = self.pattern[: len(array[at : at + CHUNK])]
        self.faults = []

    def value(self, number, key, rank):
        """The value at the ends of a key; averages are exact."""
        return float(self.ranks * (8 * number + key % 8 + rank))

    def average(self, number, key):
        """Average of value() over all ranks."""
        return sum(self.value(number, key, rank) for rank in range(self.ranks)) / self.ranks

    def make(self, number, key):
        """The gradient of a step."""
        array, value = self.arrays[key], self.value(number, key, self.rank)
        array[0] = array[-1] = value

    def look(self, number, key):
        """Notes a fault unless the weights are those of that step."""
        array, due = self.arrays[key], self.average(number, key)
        if array[0] != due or array[-1] != due:
            self.faults.append(f"key {key} of rank {self.rank} holds {array[0]} and {array[-1]} "
                               f"where the average of step {number} is {due}")

    def look_all(self, number):
        """The same for every element."""
        for key, array in enumerate(self.arrays):
            self.look(number, key)
            for at in range(0, array.size, CHUNK):
                part = array[at : at + CHUNK]
                first, last = 1 if not at else 0, -1 if at + CHUNK >= array.size else None
                if (part[first:last] != self.pattern[: part.size][first:last]).any():
                    self.faults.append(f"key {key} of rank {self.rank} does not hold the average")
                    break


class Clock:
    """Computing: tasks that begin in time end in time, however inexactly a sleep ends."""

    def __init__(self):
        self.at_ns = time.monotonic_ns()

    def waited(self):
        """Moves the clock to now if the delay is more than a sleep's slack: a task had to wait."""
        now = time.monotonic_ns()
        if now - self.at_ns > SLACK_S * 1e9:
            self.at_ns = now

    def compute(self, seconds):
        """Takes so long from where the last one ended."""
        self.at_ns += int(seconds * 1e9)
        wait_until(self.at_ns, spin=False)


class Stored:
    """A type of KVStore; keys are pushed as numbered, or as their gradients become ready."""

    def __init__(self, communicator, kind, order, step, rank, ranks, paces):
        self.kind, self.step, self.keys = kind, step, Keys(step, rank, ranks)
        self.paces = paces
        self.engine = engine.Engine()
        self.store = kvstore.create(kind, communicator, engine=self.engine, op="average")
        arrays, self.order = self.keys.arrays, step.order(order)
        self.store.init(step.numbered, arrays)
        self.chain, self.clock, self.done = self.engine.variable("computing"), Clock(), 0

    def compute(self):
        """The tasks of a forward and a backward pass."""
        keys, number, clock = self.keys, self.done, self.clock
        step = pace.slowed(self.step, self.paces.factor(keys.rank, number))
        layers = {}
        for key in step.as_needed:
            layers.setdefault(step.needed_s[key], []).append(key)

        def push(function, read=(), write=()):
            self.engine.push(function, read=[keys.arrays[key] for key in read],
                             write=[self.chain, *(keys.arrays[key] for key in write)])

        def layer(own, seconds):
            clock.waited()
            for key in own if number else ():
                keys.look(number - 1, key)
            clock.compute(seconds)

        def gradient(key, seconds):
            clock.compute(seconds)
            keys.make(number, key)

        begins = [*layers, step.forward_s]
        push(functools.partial(layer, [], begins[0]))
        for at, until in zip(begins, begins[1:]):
            own = layers[at]
            push(functools.partial(layer, own, until - at), read=self.reads(own))
        at = 0.0
        for key in step.as_ready:
            push(functools.partial(gradient, key, step.ready_s[key] - at), write=[key])
            at = step.ready_s[key]
        push(functools.partial(clock.compute, step.backward_s - at))

    def reads(self, own):
        """The weights that a layer waits for: its own."""
        return own

    def step_once(self):
        """One step, as the document's loops do it."""
        self.compute()
        arrays = self.keys.arrays
        if self.kind in ("depcha", "auto"):
            for key in self.order:
                self.store.push(key, arrays[key])
            for key in self.order:
                self.store.pull(key, arrays[key])
        else:
            for key in self.order:
                self.store.pushpull(key, arrays[key])
        self.done += 1

    def end(self):
        """Waits for the last weights."""
        self.store.wait()
        self.engine.wait()

    def close(self):
        """Closes all that was opened. Collective."""
        self.store.close()
        self.engine.close()


class Ddp:
    """Buckets as DDP makes them, through one of the libraries; the next forward pass waits for
    all."""

    def __init__(self, library, step, rank, ranks, paces):
        self.library, self.step, self.done, self.paces = library, step, 0, paces
        self.calls = perfect.buckets(step)
        sizes = [sum(step.bytes[key] for key in keys) for keys in self.calls]
        one_each = perfect.Step(tuple(sizes), (0.0,) * len(sizes), (0.0,) * len(sizes), 0, 0)
        self.keys, self.ranks = Keys(one_each, rank, ranks), ranks

    def step_once(self):
        """Forward, and each bucket when it is ready."""
        begin = time.monotonic_ns()
        step = pace.slowed(self.step, self.paces.factor(self.keys.rank, self.done))
        for number, keys in enumerate(self.calls):
            ready_s = step.forward_s + max(step.ready_s[key] for key in keys)
            self.library.wait_until(begin + int(1e9 * ready_s))
            self.keys.make(self.done, number)
            self.library.start(self.keys.arrays[number])
        self.library.wait_until(begin + int(1e9 * step.compute_s))
        self.library.finish()
        for array in self.keys.arrays:
            array /= self.ranks  # DDP averages
        for number in range(len(self.calls)):
            self.keys.look(self.done, number)
        self.done += 1

    def end(self):
        """Does nothing: no call is under way."""

    close = end


class Horovod:
    """Horovod's loop: what is ready on all ranks goes into one blocking sum of at most
    perfect.FUSED_BYTES, and whenever one has ended, at the next turn of CYCLE_S, the ranks look
    again. The next forward pass waits for all."""

    def __init__(self, library, step, rank, ranks, paces):
        self.library, self.step, self.done, self.paces = library, step, 0, paces
        self.keys, self.ranks = Keys(step, rank, ranks), ranks
        room = min(perfect.FUSED_BYTES, sum(step.bytes))
        self.fused = np.empty(room // perfect.ELEMENT_BYTES, np.float32)

    def step_once(self):
        """Forward, and sums until all gradients are there."""
        begin = time.monotonic_ns()
        step = pace.slowed(self.step, self.paces.factor(self.keys.rank, self.done))
        due = {key: begin + int(1e9 * (step.forward_s + at)) for key, at in enumerate(step.ready_s)}
        left = step.as_ready
        while left:
            number = perfect.filled(step, left[:self.ready(left, due, begin)])
            self.sum(left[:number])
            left = left[number:]
        self.library.wait_until(begin + int(1e9 * step.compute_s))
        for key, array in enumerate(self.keys.arrays):
            array /= self.ranks
            self.keys.look(self.done, key)
        self.done += 1

    def ready(self, left, due, begin):
        """Number of keys, from the first one on, that are ready on all ranks; at least one."""
        turn = int(1e9 * CYCLE_S)
        wait = max(time.monotonic_ns(), due[left[0]]) - begin
        self.library.wait_until(begin + -(-wait // turn) * turn)
        now = time.monotonic_ns()
        there = np.array([due[key] <= now for key in left], np.float32)
        self.library.sum_now(there)
        return int(np.argmin([*(there == self.ranks), False]))

    def sum(self, keys):
        """One call for these keys; several go through the buffer that fuses them."""
        arrays = self.keys.arrays
        for key in keys:
            self.keys.make(self.done, key)
        whole = arrays[keys[0]]
        if len(keys) > 1:
            whole = self.fused[:sum(arrays[key].size for key in keys)]
            np.concatenate([arrays[key] for key in keys], out=whole)
        self.library.start(whole)
        self.library.finish()
        at = 0
        for key in keys if len(keys) > 1 else ():
            arrays[key][:] = whole[at : at + arrays[key].size]
            at += arrays[key].size

    def end(self):
        """Does nothing: no call is under way."""

    close = end


class Rank:
    """This rank, with everything that lives for the whole launch."""

    def __init__(self, spec):
        self.spec, folder = spec, Path(spec["folder"])
        self.communicator = paceline.init()
        self.rank, self.ranks = self.communicator.rank, self.communicator.size
        self.meeting = Meeting(folder / "meeting", self.rank, self.ranks)
        self.cluster = links.Cluster(**spec["cluster"]) if spec["cluster"] else None
        self.paces = pace.Pace(tuple(map(tuple, spec["slow"])), spec["jitter"])
        self.world, self.libraries = None, {"paceline": libraries.Ours(self.communicator)}
        wanted = {name.partition(":")[2] for name in spec["ways"]
                  if name.partition(":")[0] in perfect.BY_LIBRARY}
        if "gloo" in wanted:
            interface = self.cluster.interface if self.cluster else ""
            self.libraries["gloo"] = libraries.Gloo(
                libraries.start_gloo(folder / "gloo", self.rank, self.ranks, interface))
        if spec["mpiexec"]:
            from paceline import mpi

            self.world = mpi.load()[0].world()
        if by_mpi := [kind for kind in libraries.OF_MPI if kind.label in wanted]:
            loaded = libraries.start_mpi()
            self.libraries |= {kind.label: kind(loaded) for kind in by_mpi}

    def counters(self):
        """(bytes sent, bytes received) by this node so far; nothing without nodes."""
        return links.counters(self.cluster.interface) if self.cluster else (0, 0)

    def settle(self):
        """Waits for all ranks; between nodes an MPI may have yet to send."""
        if self.world:
            self.meeting.settle(self.world.wake_peers)
        else:
            self.meeting.barrier()

    def made(self, way, step):
        """The object that runs the steps of a way."""
        name, _, rest = way.partition(":")
        ours = step, self.rank, self.ranks, self.paces
        if name in perfect.BY_LIBRARY:
            return (Ddp if name == "ddp" else Horovod)(self.libraries[rest], *ours)
        return Stored(self.communicator, name, rest, *ours)

    def measure(self, way, step):
        """Seconds of a step, bytes (sent, received) of all, and faults."""
        going = self.made(way, step)
        for _ in range(self.spec["warm_up"]):  # auto makes its plan of the first one
            going.step_once()
            going.end()
        self.settle()
        before = self.counters()
        begin = self.meeting.start()
        if isinstance(going, Stored):
            going.clock.at_ns = begin
        for _ in range(self.spec["steps_in_a_row"]):
            going.step_once()
        going.end()
        took = (time.monotonic_ns() - begin) / 1e9 / self.spec["steps_in_a_row"]
        self.settle()
        moved = [after - was for was, after in zip(before, self.counters())]
        going.keys.look_all(going.done - 1)
        self.settle()
        going.close()
        return {"step_s": took, "moved": moved, "fault": "; ".join(going.keys.faults[:3])}

    def run(self):
        """All models and ways, into this rank's file, which is whole after each of them."""
        result = {"node": socket.gethostname(), "models": {}}
        file = Path(self.spec["folder"]) / f"rank{self.rank}.json"
        for name, words in self.spec["models"].items():
            step = perfect.Step(**{key: tuple(value) if isinstance(value, list) else value
                                   for key, value in words.items()})
            found = result["models"][name] = {}
            for way in self.spec["ways"]:
                found[way] = self.measure(way, step)
                part = file.with_suffix(".part")
                part.write_text(json.dumps(result), encoding="utf-8")
                part.replace(file)


def main():
    """Reads the specification that the command line names."""
    rank = Rank(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    try:
        rank.run()
    except Error as error:
        sys.last_value = error  # that the world is left as by a program that failed
        sys.exit(str(error))
    rank.settle()
    with contextlib.suppress(ImportError, ValueError):
        import torch.distributed as dist

        if dist.is_initialized():
            dist.destroy_process_group()
    paceline.finalize()


if __name__ == "__main__":
    main()
