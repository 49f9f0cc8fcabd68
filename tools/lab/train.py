"""./dev lab train: paceline train replay on a node, its ranks on all, in an MPI's processes."""

import json
import os

from lab import bench
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
    words = [str(VENV / "bin/paceline"), "train", "replay", "--mpi", *rest,
             "--lab", str(plan.file(FILE))]
    return state.run(0, words, bench.variables(options.mpi, plan, plan.ppn, options.spin) | PROBE)
