"""Prints how many nodes the ranks are on; all but rank 0 are started by the command given."""

import os
import sys

if sys.argv[1:] and os.environ["PACELINE_RANK"] != "0":
    os.execvp(sys.argv[1], [*sys.argv[1:], sys.executable, __file__])

import paceline  # noqa: E402

comm = paceline.init()
comm.barrier()
print("nodes", comm._core.nodes, flush=True)
