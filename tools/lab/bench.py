"""./dev lab bench: paceline bench on a node, its ranks on all, in an MPI's processes."""

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

from lab import idle, mpis, network
from lab.plan import ROOT, LabError
from dev import build, prepare
from dev.process import VENV, environment

FILE, RECORDS, TRACE = "bench.json", "records.json", "trace.json"


def description(plan, ppn, spin, scattered=False):
    """The description of the nodes for paceline bench (paceline_bench/measure/links.py)."""
    return {
        "nodes": plan.nodes, "ppn": ppn, "rate": plan.rate, "interface": network.INTERFACE,
        "folder": str(plan.file("meetings")),
        "about": {
            "nodes": plan.nodes, "ranks_per_node": ppn, "rate": plan.rate_text,
            "mtu": network.MTU, "burst_bytes": network.burst_bytes(plan.rate),
            "queue_bytes": network.QUEUE_BYTES, "congestion_control": network.CONGESTION,
            "waiting": "as each library waits" if spin else idle.about(ppn),
            "placed": "in turn on all nodes" if scattered else "node by node",
        },
    }


def seen(rest, state):
    """The words of paceline bench, with a trace copied to where nodes see it: /tmp is private."""
    plan, words = state.plan(), []
    for word in rest:
        before, kind, name = word.partition("trace:")
        if kind and before in ("", "--arrival=") and Path(name).is_file():
            shutil.copyfile(name, state.inside(plan.file(TRACE)))
            word = f"{before}{kind}{plan.file(TRACE)}"
        words.append(word)
    return words


def words(name, state, about, ranks, rest, records):
    """The command to run on a node. about: the description, which is put where it can be read."""
    plan, mpi = state.plan(), mpis.installed(name)
    file, written = plan.file(FILE), plan.file(RECORDS)
    state.inside(file).write_text(json.dumps(about), encoding="utf-8")
    state.inside(written).unlink(missing_ok=True)
    return [str(VENV / "bin/paceline"), "bench", *seen(rest, state), "--against", "mpi", "--no-pin",
            "--mpi", str(mpi.folder / mpi.library), "--lab", str(file), "--ranks", str(ranks),
            *(["--json", str(written)] if records else [])]


def variables(name, plan, ppn, spin, scattered=False):
    """The environment of that."""
    own = environment(**mpis.environment(name, plan.folder, ppn, spin, scattered))
    return {**own, "PATH": f"{VENV / 'bin'}{os.pathsep}{own['PATH']}"}


def main(state, options, rest):
    """The status of paceline bench, on what is in the tree now."""
    plan = state.plan()
    prepare.ensure()
    build.release()
    ppn = options.ppn or plan.ppn
    about = description(plan, ppn, options.spin, options.scattered)
    command = words(options.mpi, state, about, options.ranks or plan.nodes * ppn, rest,
                    bool(options.json))
    status = state.run(0, command, variables(options.mpi, plan, ppn, options.spin,
                                                 options.scattered))
    if options.json:
        keep(state.inside(plan.file(RECORDS)), Path(options.json))
    return status


def keep(records, file):
    """Copies the records out of the lab, without the paths of this machine."""
    if not records.exists():
        raise LabError("bench: there are no records")
    found = json.loads(records.read_text(encoding="utf-8").replace(f"{ROOT}/", ""))
    found["command"] = shlex.join(["./dev", "lab", *sys.argv[2:]])
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"That is {file}")
