"""One rank of a benchmark: runs all variants in turn, size by size, and writes its times to a file.

Started by paceline_bench.measure.launching as `python -m paceline_bench.measure.worker SPEC`.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

import paceline
from paceline.on_ranks import AT

from paceline_bench import _native
from paceline_bench.measure import arrivals, ceiling, links, messages, variants
from paceline_bench.measure.cases import Case
from paceline_bench.measure.counted import Counted
from paceline_bench.measure.meeting import Meeting

WARM_UP = 2
TRIALS = 5  # to find the time of a call
# Repetitions by size: enough for a steady median, few enough to end soon.
REPEATS = ((64 << 10, 100), (1 << 20, 50), (16 << 20, 20), (1 << 62, 10))
# The same natively: there a start takes microseconds.
NATIVE_REPEATS = ((4 << 10, 500), (64 << 10, 300), (1 << 20, 100), (16 << 20, 30), (1 << 62, 10))
# Calls of a batch, by size: a start and two looks at the clock cost some 80 ns, too much for single
# short ones. If ranks take turns on the cores the cost is the time to wake up.
BATCHES = ((1 << 10, 8), (1 << 62, 1))
CROWDED_BATCHES = ((4 << 10, 256), (64 << 10, 64), (1 << 20, 16), (1 << 62, 1))
LONGEST_S = 0.02  # of a batch
# In these no rank can get ahead of the others by more than one call; in a broadcast the root could,
# and a batch would measure how fast it does. If ranks take turns, batches are used all the same: a
# single call would say even less.
IN_STEP = ("allreduce", "reduce_scatter", "allgather", "alltoall", "barrier")
BUDGET_S = 10  # for a size: repetitions after that are left out
LINKS_BUDGET_S, LEAST_REPEATS = 30, 3  # between nodes a long call takes seconds


def of_size(table, nbytes):
    """The entry of a table by size."""
    return next(count for limit, count in table if nbytes <= limit)


def repeats_for(nbytes, wanted, native, oversubscribed):
    """Number of repetitions of each variant in one launch."""
    return wanted or of_size(NATIVE_REPEATS if native and not oversubscribed else REPEATS, nbytes)


def most_in_batch(collective, nbytes, oversubscribed):
    """Largest number of calls in a batch."""
    if oversubscribed:
        return of_size(CROWDED_BATCHES, nbytes)
    return of_size(BATCHES, nbytes) if collective in IN_STEP else 1


def pin(rank, ranks):
    """Binds each rank to a core, if there are enough: two on one would measure the scheduler.

    Called last: threads that libraries have started by then, gloo's among them, stay free to move.
    """
    cores = sorted(os.sched_getaffinity(0))
    if ranks <= len(cores):
        os.sched_setaffinity(0, {cores[rank]})


class Worker:
    """This rank, with everything that lives for the whole launch."""

    def __init__(self, spec):
        self.spec = spec
        self.folder = Path(spec["folder"])
        self.communicator = paceline.init()
        self.rank, self.ranks = self.communicator.rank, self.communicator.size
        self.meeting = Meeting(self.folder / "meeting", self.rank, self.ranks)
        self.variants = [variants.Variant(**row) for row in spec["variants"]]
        backends = [v.library[6:] for v in self.variants if v.library.startswith("torch:")]
        native = spec["native"]
        self.libraries = {"paceline": variants.OfPaceline(self.communicator, native)}
        self.libraries |= variants.start_torch(backends, self.folder, self.rank, self.ranks)
        self.cluster = links.Cluster(**spec["cluster"]) if spec["cluster"] else None
        self.world = None  # of MPI
        if spec["mpiexec"]:
            from paceline import mpi

            self.libraries["mpi"] = variants.OfMpi(*mpi.load(), native)
            self.world = self.libraries["mpi"].world
        if spec["pin"]:
            pin(self.rank, self.ranks)

    def cases(self, nbytes):
        """The buffers for a size, by label: the same for all, and shared ones."""
        names = ("collective", "dtype", "op", "root", "separate")
        case = Case(nbytes=nbytes, ranks=self.ranks, rank=self.rank,
                    **{name: self.spec[name] for name in names})
        shared = None
        if any(variant.shared for variant in self.variants):
            shared = case.elsewhere(self.communicator.empty)
        return {v.label: shared if v.shared else case for v in self.variants}

    def checked(self, cases):
        """{label: call} of the variants that can do it, each checked once against exact values."""
        calls, notes = {}, {}
        for variant in self.variants:
            case = cases[variant.label]
            try:
                call = self.libraries[variant.library].bind(variant, case)
                case.rewrite()
                case.spoil()
                self.meeting.barrier()
                call()
                self.settle()
            except (variants.Unavailable, paceline.RefusalError, paceline.UsageError,
                    RuntimeError, ValueError) as error:
                notes[variant.label] = f"{type(error).__name__}: {error}".splitlines()[0]
                continue
            fault = case.fault() if variant.combines else ""
            if fault:
                notes[variant.label] = f"wrong result: {fault}"
            else:
                calls[variant.label] = call
        # All ranks leave out a variant that one rank leaves out.
        for label in self.meeting.agreed({v.label: v.label in calls for v in self.variants}):
            calls.pop(label, None)
            notes.setdefault(label, "failed on another rank")
        return calls, notes

    def measure(self, nbytes):
        """The durations of all variants at one size (s), and further facts about it."""
        cases = self.cases(nbytes)
        calls, notes = self.checked(cases)
        size = next(iter(cases.values())).bytes
        repeats = repeats_for(size, self.spec["repeats"], self.spec["native"],
                              self.meeting.oversubscribed)
        found = {"bytes": size, "notes": notes}
        if self.spec["arrival"]:
            timed, why = arrivals.timed(self, calls, cases, size, repeats)
            return {**found, "batches": {}, "times": {}, **timed, "notes": {**notes, **why}}
        if self.cluster:
            tap = messages.Tap(self.cluster.interface) if size < messages.BELOW else None
            return {**found, "batches": {}, **self.counted(calls, cases, repeats, tap)}
        if not self.spec["native"]:
            return {**found, "batches": {}, "times": self.timed(calls, cases, repeats)}
        wanted = self.spec["batch"]
        batches = {label: wanted for label in calls} if wanted else self.batches_for(calls, size)
        return {**found, "batches": batches, "times": self.timed_natively(calls, repeats, batches)}

    def timed(self, calls, cases, repeats):
        """Times calls through Python, one at a time."""
        times = {label: [] for label in calls}
        turn = list(calls.items())
        for repetition in range(WARM_UP + repeats):
            for label, call in turn:
                cases[label].rewrite()
                self.meeting.start()
                begin = time.perf_counter_ns()
                call()
                end = time.perf_counter_ns()
                if repetition >= WARM_UP:
                    times[label].append((end - begin) / 1e9)
            turn.append(turn.pop(0)) if turn else None  # no variant always runs after the same one
        return times

    def settle(self):
        """Waits for all ranks, as between two calls of a program; across nodes MPI goes on."""
        if self.cluster:
            self.meeting.settle(self.world.wake_peers)

    def counted(self, calls, cases, repeats, tap):
        """Times calls in the core, one at a time, with the counters of this node's interface around
        each; with a tap, also the packets in between."""
        times, counted = {label: [] for label in calls}, Counted(self, calls, tap)
        begin, turn = time.monotonic(), list(calls.items())
        for repetition in range(WARM_UP + repeats):
            for label, call in turn:
                [[took]] = counted.around(
                    label, lambda: _native.alternate(self.meeting.line, [call], 0, 1, [1]),
                    repetition >= WARM_UP)
                if repetition >= WARM_UP:
                    times[label].append(took)
            turn.append(turn.pop(0)) if turn else None
            late = time.monotonic() - begin > LINKS_BUDGET_S
            if repetition >= WARM_UP + LEAST_REPEATS - 1 and self.meeting.agreed({"on": not late}):
                break
        return {"times": times, **counted.found(cases)}

    def batches_for(self, calls, nbytes):
        """Number of calls between two looks at the clock, by label: powers of 2, the same on all
        ranks."""
        most = most_in_batch(self.spec["collective"], nbytes, self.meeting.oversubscribed)
        single = {label: 1 for label in calls}
        if most == 1:
            return single
        once = self.alternate(calls, 0, TRIALS, single)
        powers = [1 << k for k in range(1, most.bit_length())]
        fits = {(label, n): n * min(once[label]) <= LONGEST_S for label in calls for n in powers}
        too_long = self.meeting.agreed(fits)
        return {label: max((n for n in powers if (label, n) not in too_long), default=1)
                for label in calls}

    def timed_natively(self, calls, repeats, batches):
        """Times calls in the core, a batch at a time; ends early if that takes too long."""
        times = {label: [] for label in calls}
        begin, warm_up, chunk = time.monotonic(), WARM_UP, max(5, repeats // 10)
        while repeats > 0:
            some = self.alternate(calls, warm_up, min(repeats, chunk), batches)
            for label, found in some.items():
                times[label] += found
            repeats, warm_up = repeats - chunk, 0
            if self.meeting.agreed({"go on": time.monotonic() - begin < BUDGET_S}):
                break
        return times

    def alternate(self, calls, warm_up, repeats, batches):
        """Times by label."""
        times = _native.alternate(self.meeting.line, list(calls.values()), warm_up, repeats,
                                [batches[label] for label in calls])
        return dict(zip(calls, times))

    def probe(self):
        """(the trip of a flag, [add, copy] rates by size) at this moment."""
        trip = _native.round_trip_ns(self.meeting.line)
        if not self.spec["ceiling"]:
            return trip, [None] * len(self.spec["sizes"])
        return trip, [ceiling.rates(nbytes, self.meeting) for nbytes in self.spec["sizes"]]

    def run(self):
        """Measures all sizes; rank 0 reports progress."""
        trip, rates = self.probe()
        found = {"round_trip_ns": [trip], "cases": [], "node": socket.gethostname()}
        file = self.folder / f"rank{self.rank}.json"
        for place, nbytes in enumerate(self.spec["sizes"]):
            if self.rank == 0:
                print(f"{AT}{place}", flush=True)
            found["cases"].append({**self.measure(nbytes), "rates": [rates[place]]})
        trip, rates = self.probe()
        found["round_trip_ns"].append(trip)
        for case, rate in zip(found["cases"], rates):
            case["rates"].append(rate)
        file.write_text(json.dumps(found), encoding="utf-8")


def main():
    """Reads the specification that the command line names."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    worker = Worker(spec)
    worker.run()
    worker.meeting.barrier()  # no rank frees its memory while another still measures
    paceline.finalize()


if __name__ == "__main__":
    main()
