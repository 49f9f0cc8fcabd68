"""`paceline train replay`: launches, bounds beside them, and what is refused.

Figures of a way are refused where a key does not hold the average, a layer began its forward pass
without its weights, nodes sent fewer bytes than they must, or steps took less than the links allow.
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
from paceline import _core
from paceline.errors import Error, UsageError
from paceline.kvstore import records
from paceline.kvstore.plan import Plan
from paceline.kvstore.prices import Prices
from paceline.launchers import OPENMPI
from paceline.on_ranks import Late
from rich.table import Table

from paceline_bench.measure import links, statistics, wire_check
from paceline_bench.measure.host import mpi_of_host
from paceline_bench.measure.launching import run_module
from paceline_bench.train import perfect

STORED = tuple(f"{mode}:{order}" for order in perfect.ORDERS for mode in perfect.MODES[:4])
LIBRARIES = ("paceline", "gloo", "mpi", "mpi-nonblocking", "mpi-parts")
RINGS = ("mpi-ring", "mpi-ring-parts")  # of Open MPI
WAYS = (*STORED, *(f"ddp:{library}" for library in LIBRARIES))  # unless others are named
NAMED = (*(f"ddp:{library}" for library in RINGS),
         *(f"horovod:{library}" for library in (*LIBRARIES, *RINGS)))
LIMIT_S, SLACK = 60, 4  # to start; and times what the steps take at least
ELEMENT = perfect.ELEMENT_BYTES


class Job:
    """The start of the ranks: their place, and their MPI."""

    def __init__(self, ranks, lab, with_mpi):
        self.cluster = links.cluster_from(lab) if lab else None
        self.ranks = ranks or (self.cluster.nodes * self.cluster.ppn if self.cluster else 2)
        self.mpi = mpi_of_host("allreduce", self.ranks) if with_mpi else None

    @property
    def about(self):
        """The MPI and the nodes, for the head of a file; None without an MPI."""
        cluster = {"cluster": self.cluster.about} if self.cluster else {}
        return {**self.mpi, **cluster} if self.mpi else None

    def bound_s(self, nbytes):
        """Seconds of an allreduce on the links; 0 without links."""
        if not self.cluster or not nbytes:
            return 0.0
        return self.cluster.bound_s("allreduce", self.ranks, nbytes) or 0.0

    def launch(self, spec, least_s, partly=None, module="paceline_bench.train.replaying"):
        """Each rank's result. A launcher hangs now and then: it may once. If the ranks fail or are
        interrupted, `partly` gets each rank's result of what all had done by then."""
        where = self.cluster.folder if self.cluster else None
        environment = {**(self.mpi["environment"] if self.mpi else {}), "OMP_NUM_THREADS": "1"}
        for retry in (True, False):
            with tempfile.TemporaryDirectory(prefix="paceline-replay-", dir=where) as folder:
                whole = {**spec, "folder": folder, "mpiexec": bool(self.mpi),
                         "cluster": asdict(self.cluster) if self.cluster else None}
                try:
                    return run_module(module, whole, self.ranks, folder, None,
                                      self.mpi["mpiexec"] if self.mpi else (), environment,
                                      LIMIT_S + SLACK * least_s, "train: replay")
                except (Error, KeyboardInterrupt) as error:
                    if retry and isinstance(error, Late):
                        print(f"paceline: {error} It is tried once more.", file=sys.stderr,
                              flush=True)
                        continue
                    if partly is not None:
                        partly.extend(done_by_all(Path(folder), self.ranks))
                    raise


def done_by_all(folder, ranks):
    """Each rank's result, of models and ways that all ranks have measured; nothing if there are
    none."""
    files = [folder / f"rank{rank}.json" for rank in range(ranks)]
    if not all(file.exists() for file in files):
        return []
    found = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    for name in list(found[0]["models"]):
        of_ranks = [one["models"].get(name, {}) for one in found]
        both = set.intersection(*map(set, of_ranks))
        for one, ways in zip(found, of_ranks, strict=True):
            one["models"][name] = {way: ways[way] for way in ways if way in both}
    return found


def steps_of(models, ratio, compute_s, bound_s):
    """{name: perfect.Step}: so much to compute, or `ratio` times what the links need."""
    found = {}
    for name in models:
        record = records.read(name)
        nbytes = sum(ELEMENT * row[1] for row in record["keys"])
        seconds = compute_s or ratio * bound_s(nbytes)
        if not seconds > 0:
            raise UsageError("train: replay: without a lab there are no links for --ratio; pass "
                             "the computing time of a step with --compute-s.")
        found[Path(name).stem] = perfect.step_of(record, seconds)
    return found


def check_ways(ways, mpi):
    """Raises UsageError for ways that are unknown, or that the MPI does not have; None: no MPI."""
    known = (*WAYS, *NAMED)
    for way in ways:
        if way not in known:
            raise UsageError(
                f"train: replay: there is no way {way!r}; ways are {', '.join(known)}.")
        if "mpi" in way and not mpi:
            raise UsageError(f"train: replay: {way} needs an MPI; pass --mpi.")
        if way.partition(":")[2] in RINGS and mpi["abi"] != OPENMPI:
            raise UsageError(f"train: replay: {way} is Open MPI's own ring; the MPI is "
                             f"{mpi['kind']}.")


def mode_and_order(way):
    """(mode, order) as perfect.seconds() takes them."""
    mode, _, rest = way.partition(":")
    return mode, "ready" if mode in perfect.BY_LIBRARY else rest


def bounded(step, way, bound_s, in_a_row):
    """Seconds of a step by that way, with perfect links."""
    return perfect.seconds(step, *mode_and_order(way), bound_s, in_a_row)


class Simulated:
    """Steps under a model of a machine: each call takes the simulated time of the algorithm
    that would be chosen; calls follow each other."""

    def __init__(self, ranks, nodes, machine):
        self.ranks, self.nodes, self.machine, self.known = ranks, nodes, machine, {}

    def call_s(self, nbytes):
        """An allreduce of so many bytes."""
        if nbytes not in self.known:
            from paceline.schedules import how, unit_count

            choice = _core.choose("allreduce", self.ranks, nbytes, machine=self.machine)
            world = _core.World("allreduce", choice["algorithm"], self.ranks, fused=True,
                                **how(choice))
            count = unit_count("allreduce", self.ranks, nbytes)
            self.known[nbytes] = world.simulate(count, ELEMENT, self.machine).span_s
        return self.known[nbytes]

    def bound_s(self, nbytes):
        """Least seconds of an allreduce of `nbytes` on links of this machine."""
        return _core.bound_s("allreduce", self.ranks, nbytes, self.machine) if nbytes else 0.0

    def seconds(self, step, way, in_a_row):
        """Seconds of a step. auto: its own buckets, in the order of its plan."""
        mode, order = mode_and_order(way)
        if mode != "auto":
            return perfect.seconds(step, mode, order, self.call_s, in_a_row)
        prices = Prices.of(self.machine, self.ranks, self.nodes)
        plan = Plan.make([_Key(key, step.bytes[key]) for key in step.as_ready], False, prices)
        order = plan.order(dict(enumerate(step.ready_s)), prices)
        calls = [[one.key for one in plan.buckets[number]] for number in order]
        return perfect.seconds(step, "depcha", "ready", self.call_s, in_a_row, calls)


class _Key:
    """The facts that a Plan needs of a key."""

    def __init__(self, key, nbytes):
        self.key = self.number = key
        self.nbytes, self.dtype = nbytes, "float32"


def judged(ranks, steps, job, in_a_row):
    """One launch: ({model: {way: s}}, notes about what is refused)."""
    times, notes = {}, []
    names, ranks_of = wire_check.places(ranks)
    for model, step in steps.items():
        found = [rank["models"].get(model, {}) for rank in ranks]
        times[model] = {}
        for way in found[0]:
            why = fault([rank[way] for rank in found], step, job, (names, ranks_of), in_a_row)
            if why:
                notes.append(f"{wire_check.REFUSED} {way}, {model}: {why}")
            else:
                times[model][way] = max(rank[way]["step_s"] for rank in found)
    return times, notes


def fault(found, step, job, places, in_a_row):
    """The reason to refuse the figures of a way; empty if there is none."""
    for one in found:
        if one["fault"]:
            return one["fault"]
    least = perfect.least_s(step, job.bound_s)
    nbytes = sum(step.bytes)
    took = max(one["step_s"] for one in found)
    if not job.cluster:
        return links.too_fast(least / took, nbytes)
    names, ranks_of = places
    if len(names) != job.cluster.nodes:
        return f"the ranks ran on {len(names)} nodes and not on {job.cluster.nodes}"
    needed = links.least("allreduce", in_a_row * nbytes, ranks_of)
    moved = [found[ranks[0]]["moved"] for ranks in ranks_of]
    return links.short_of(needed, moved, names) or links.too_fast(least / took, nbytes)


def summary(content):
    """{model: {way: row}} of all launches."""
    found = {}
    for model, bounds in content["bounds"].items():
        launches = [launch["times"].get(model, {}) for launch in content["launches"]]
        found[model] = {}
        for way, bound in bounds.items():
            took = [one[way] for one in launches if way in one]
            row = {"bound_s": bound, "simulated_s": content["simulated"][model].get(way),
                   "launches": len(took)}
            if took:
                row["step_s"] = float(np.median(took))
            if len(took) > 1:
                row["low_s"], row["high_s"] = map(float, statistics.interval(took))
            found[model][way] = row
    return found


def table(found, step_of, images):
    """Table for the terminal: every way of every model, beside its bound and the simulator."""
    out = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False,
                caption="perfect: seconds with perfect links; of least: of max(computing, links)",
                caption_justify="left", caption_style="none")
    for heading in ("model", "way"):
        out.add_column(heading, no_wrap=True)
    for heading in ("launches", "step s", "images/s", "perfect", "simulated", "of least"):
        out.add_column(heading, justify="right")
    for model, rows in found.items():
        shown = model
        for way, row in rows.items():
            took = row.get("step_s")
            out.add_row(
                shown, way, str(row["launches"]), f"{took:.3f}" if took else "",
                f"{images / took:.1f}" if took else "", f"{row['bound_s']:.3f}",
                f"{row['simulated_s']:.3f}" if row["simulated_s"] else "",
                f"{took / step_of[model]:.2f}" if took else "")
            shown = ""
    return out
