"""One rank of a benchmark: runs all variants in turn, size by size, and writes its times to a file.

Started by paceline.bench.launching as `python -m paceline.bench.worker SPEC`.
"""

import json
import os
import sys
import time
from pathlib import Path

import paceline
from paceline.bench import ceiling, variants
from paceline.bench.cases import Case
from paceline.bench.launching import AT
from paceline.bench.meeting import Meeting

WARM_UP = 2
# Repetitions by size: enough for a steady median, few enough to end soon.
REPEATS = ((64 << 10, 100), (1 << 20, 50), (16 << 20, 20), (1 << 62, 10))


def repeats_for(nbytes, wanted):
    """How often each variant runs in one launch."""
    return wanted or next(count for limit, count in REPEATS if nbytes <= limit)


def pin(rank, ranks):
    """One core per rank, where there is one: two ranks on one core would measure the scheduler.

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
        self.libraries = {"paceline": variants.OfPaceline(self.communicator)}
        self.libraries |= variants.start_torch(backends, self.folder, self.rank, self.ranks)
        if spec["mpiexec"]:
            from paceline import mpi

            self.libraries["mpi"] = variants.OfMpi(mpi.load()[0].world())
        if spec["pin"]:
            pin(self.rank, self.ranks)

    def case(self, nbytes):
        """The buffers for a size."""
        names = ("collective", "dtype", "op", "root")
        return Case(nbytes=nbytes, ranks=self.ranks, rank=self.rank,
                    **{name: self.spec[name] for name in names})

    def checked(self, case):
        """{label: call} of the variants that can do it, each checked once against exact values."""
        calls, notes = {}, {}
        for variant in self.variants:
            try:
                call = self.libraries[variant.library].bind(variant, case)
                case.rewrite()
                case.spoil()
                self.meeting.barrier()
                call()
            except (variants.Unavailable, paceline.RefusalError, paceline.UsageError,
                    RuntimeError, ValueError) as error:
                notes[variant.label] = f"{type(error).__name__}: {error}".splitlines()[0]
                continue
            fault = case.fault()
            if fault:
                notes[variant.label] = f"wrong result: {fault}"
            else:
                calls[variant.label] = call
        # What one rank leaves out, all must leave out.
        for label in self.meeting.agreed({v.label: v.label in calls for v in self.variants}):
            calls.pop(label, None)
            notes.setdefault(label, "failed on another rank")
        return calls, notes

    def measure(self, nbytes):
        """The durations of all variants at one size (s), and what else is known about it."""
        case = self.case(nbytes)
        calls, notes = self.checked(case)
        repeats = repeats_for(case.bytes, self.spec["repeats"])
        times = {label: [] for label in calls}
        turn = list(calls.items())
        for repetition in range(WARM_UP + repeats):
            for label, call in turn:
                case.rewrite()
                self.meeting.start()
                begin = time.perf_counter_ns()
                call()
                end = time.perf_counter_ns()
                if repetition >= WARM_UP:
                    times[label].append((end - begin) / 1e9)
            turn.append(turn.pop(0)) if turn else None  # nobody always runs after the same one
        rates = None
        if ceiling.LEAST_BYTES <= case.bytes and self.spec["ceiling"]:
            rates = ceiling.rates(case.bytes, self.meeting)
        return {"bytes": case.bytes, "times": times, "notes": notes, "rates": rates}

    def run(self):
        """All sizes; rank 0 says how far it is."""
        results = []
        for nbytes in self.spec["sizes"]:
            if self.rank == 0:
                print(f"{AT}{len(results)}", flush=True)
            results.append(self.measure(nbytes))
            # Written every time: a run that is cut short leaves what it has measured.
            file = self.folder / f"rank{self.rank}.json"
            file.write_text(json.dumps(results), encoding="utf-8")


def main():
    """Reads the specification that the command line names."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    worker = Worker(spec)
    worker.run()
    worker.meeting.barrier()  # nobody takes its memory away while another one still measures
    paceline.finalize()


if __name__ == "__main__":
    main()
