"""Runs a script as if its ranks were on several nodes: the first argument is each rank's node."""

import os
import runpy
import sys

nodes, script, *rest = sys.argv[1:]
names = ("PACELINE_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")
rank = int(next(os.environ[name] for name in names if name in os.environ))
os.environ["PACELINE_NODE"] = "node " + nodes.split(",")[rank]
sys.path.insert(0, os.path.dirname(script))
sys.argv = [script, *rest]
runpy.run_path(script, run_name="__main__")
