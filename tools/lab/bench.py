"""./dev lab bench: paceline bench on a node, its ranks on all of them, inside an MPI's processes."""

import json
import os
import shlex
import sys
from pathlib import Path

from lab import idle, mpis, network
from lab.plan import ROOT, LabError
from dev.process import VENV, environment

FILE, RECORDS = "bench.json", "records.json"


def description(plan, ppn, spin):
    """What paceline bench wants to know about the nodes (paceline/bench/links.py)."""
    return {
        "nodes": plan.nodes, "ppn": ppn, "rate": plan.rate, "interface": network.INTERFACE,
        "folder": str(plan.file("meetings")),
        "about": {
            "nodes": plan.nodes, "ranks_per_node": ppn, "rate": plan.rate_text,
            "mtu": network.MTU, "burst_bytes": network.burst_bytes(plan.rate),
            "queue_bytes": network.QUEUE_BYTES, "congestion_control": network.CONGESTION,
            "waiting": "as each library waits" if spin else idle.ABOUT,
        },
    }


def main(state, options, rest):
    """The status of paceline bench."""
    plan = state.plan()
    ppn = options.ppn or plan.ppn
    mpi = mpis.installed(options.mpi)
    about, records = plan.file(FILE), plan.file(RECORDS)
    state.inside(about).write_text(json.dumps(description(plan, ppn, options.spin)), encoding="utf-8")
    state.inside(records).unlink(missing_ok=True)
    words = [str(VENV / "bin/paceline"), "bench", *rest, "--against", "mpi",
             "--mpi", str(mpi.folder / mpi.library), "--lab", str(about), "--no-pin",
             "--ranks", str(options.ranks or plan.nodes * ppn)]
    if options.json:
        words += ["--json", str(records)]
    variables = environment(**mpis.environment(options.mpi, plan.folder, ppn, options.spin))
    variables["PATH"] = f"{VENV / 'bin'}{os.pathsep}{variables['PATH']}"
    status = state.run(0, words, variables)
    if options.json:
        keep(state.inside(records), Path(options.json), rest)
    return status


def keep(records, file, rest):
    """Copies the records out of the lab, without the paths of this machine."""
    if not records.exists():
        raise LabError("bench: there are no records")
    found = json.loads(records.read_text(encoding="utf-8").replace(f"{ROOT}/", ""))
    found["command"] = shlex.join(["./dev", "lab", "bench", *sys.argv[3:]])
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
