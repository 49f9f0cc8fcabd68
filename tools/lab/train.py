"""./dev lab train: bench/lab/training.py on a node, its ranks on all, in an MPI's processes."""

import json
import os

from lab import bench
from lab.plan import ROOT
from dev import build, prepare
from dev.process import VENV

FILE = "training.json"
MACHINE = "PACELINE_MACHINE"
PROBE = {MACHINE: os.environ.get(MACHINE, "probe")}   # these links are not what is usual


def main(state, options, rest):
    """Its status, on what is in the tree now."""
    plan = state.plan()
    prepare.ensure()
    build.release()
    about = bench.description(plan, plan.ppn, options.spin)
    about["about"] |= {"mpi": options.mpi, "paceline_machine": PROBE[MACHINE]}
    state.inside(plan.file(FILE)).write_text(json.dumps(about), encoding="utf-8")
    words = [str(VENV / "bin/python"), str(ROOT / "bench/lab/training.py"), *rest,
             "--lab", str(plan.file(FILE))]
    return state.run(0, words, bench.variables(options.mpi, plan, plan.ppn, options.spin) | PROBE)
