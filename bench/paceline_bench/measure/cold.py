"""The first calls of a library in new processes: `paceline bench --cold`.

Each launch starts the ranks anew, with one variant alone in them, and times CALLS calls from the
very first one on. The first one includes all work that a library puts off until it is called
(connections, registration of memory, choices, code); nothing is warmed up or opened before.

Started by paceline_bench.measure.launching as `python -m paceline_bench.measure.cold SPEC`.
"""

import json
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import paceline
from paceline import _core, mpi
from paceline.on_ranks import LIMIT_S, Late

from paceline_bench import _native
from paceline_bench.measure import variants
from paceline_bench.measure.cases import Case
from paceline_bench.measure.launching import run_module
from paceline_bench.measure.meeting import Meeting

CALLS = 10


@dataclass(frozen=True)
class Row:
    """The calls of one variant at one size: seconds by launch and call, of the slowest rank."""

    variant: variants.Variant
    bytes: int
    runs: tuple

    @property
    def firsts(self):
        """The first call of each launch."""
        return [calls[0] for calls in self.runs]

    @property
    def medians(self):
        """The median of each launch's calls, the first among them."""
        return [statistics.median(calls) for calls in self.runs]

    @property
    def first_to_median(self):
        """Ratio of the first call to the median."""
        return statistics.median(a / b for a, b in zip(self.firsts, self.medians))

    @property
    def slowest_to_median(self):
        """Ratio of the slowest later call to the median."""
        return statistics.median(max(calls[1:]) / b for calls, b in zip(self.runs, self.medians))


def launch(plan, variant, nbytes):
    """Seconds of each call, of the slowest rank. Between nodes a launcher may hang once."""
    where = plan.cluster.folder if plan.cluster else None
    limit_s = plan.cluster.limit_s(plan) if plan.cluster else LIMIT_S
    for retry in (True, False):
        with tempfile.TemporaryDirectory(prefix="paceline-cold-", dir=where) as folder:
            spec = {**plan.specification(folder), "variant": asdict(variant), "bytes": nbytes}
            try:
                found = run_module("paceline_bench.measure.cold", spec, plan.ranks, folder, None,
                                   plan.mpiexec, plan.environment | variant.environment, limit_s)
            except Late:
                if not plan.cluster or not retry:
                    raise
                continue
            return [max(times) for times in zip(*(rank["times"] for rank in found))]


def measure(plan, launches, show=lambda done: None):
    """A Row for each size and variant; launches of the variants take turns."""
    cases = [(variant, nbytes) for nbytes in plan.sizes for variant in plan.variants]
    runs = {case: [] for case in cases}
    for number in range(launches):
        for place, case in enumerate(cases):
            runs[case].append(launch(plan, *case))
            show(number * len(cases) + place + 1)
    return [Row(*case, tuple(map(tuple, found))) for case, found in runs.items()]


def table(rows, plan):
    """The table for the terminal."""
    from paceline.units import human_time
    from rich.table import Table

    out = Table("size", "variant", "first call", "median", "first / median",
                "slowest later / median", title=f"{plan.collective}, {plan.ranks} ranks: the "
                f"first {CALLS} calls of new processes")
    for column in out.columns[2:]:
        column.justify = "right"
    for row in rows:
        out.add_row(_core.human_bytes(row.bytes), row.variant.label,
                    *(human_time(statistics.median(some)) for some in (row.firsts, row.medians)),
                    f"{row.first_to_median:.2f}", f"{row.slowest_to_median:.2f}")
    return out


def record(row, plan):
    """A record like those of `paceline bench --json`, with the runs."""
    every = sorted(1e6 * seconds for calls in row.runs for seconds in calls)
    bound_s = plan.cluster and plan.cluster.bound_s(plan.collective, plan.ranks, row.bytes)
    return {
        "collective": plan.collective, "bytes": row.bytes, "ranks": plan.ranks,
        "algorithm": row.variant.algorithm or None, "segments": row.variant.segments or None,
        "segment_bytes": row.variant.segment_bytes or None, "combines": row.variant.combines,
        "variant": row.variant.label, "library": row.variant.library, "dtype": plan.dtype,
        "op": plan.op, "cold": True, "launches": len(row.runs),
        "time_us_median": statistics.median(every),
        "interval": {"of": "calls", "low_us": every[0], "high_us": every[-1]},
        "first_us": [1e6 * seconds for seconds in row.firsts],
        "runs_us": [[1e6 * seconds for seconds in calls] for calls in row.runs],
        "bound_us": 1e6 * bound_s if bound_s else None,
    }


def library_of(spec, variant):
    """(the library, its rank, its number of ranks, action while waiting); it alone is started."""
    if variant.library == "paceline":
        comm = paceline.init()
        return variants.OfPaceline(comm, spec["native"]), comm.rank, comm.size
    mpi.load()[0].init()
    library = variants.OfMpi(*mpi.load(), spec["native"])
    return library, library.world.rank, library.world.size


def main():
    """One rank: its calls, one after the other, checked at the end."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    variant = variants.Variant(**spec["variant"])
    library, rank, ranks = library_of(spec, variant)
    meeting = Meeting(Path(spec["folder"]) / "meeting", rank, ranks)
    names = ("collective", "dtype", "op", "root", "separate")
    case = Case(nbytes=spec["bytes"], ranks=ranks, rank=rank,
                **{name: spec[name] for name in names})
    call, times = library.bind(variant, case), []
    for _ in range(CALLS):
        [[took]] = _native.alternate(meeting.line, [call], 0, 1, [1])
        times.append(took)
        if variant.library == "mpi":  # it may have yet to send messages that others wait for
            meeting.settle(library.world.wake_peers)
    fault = case.fault()
    if fault:
        raise paceline.InternalError(f"bench: {variant.label}: wrong result: {fault}")
    file = Path(spec["folder"]) / f"rank{rank}.json"
    file.write_text(json.dumps({"times": times}), encoding="utf-8")
    meeting.barrier()
    paceline.finalize() if variant.library == "paceline" else mpi.finalize()


if __name__ == "__main__":
    main()
