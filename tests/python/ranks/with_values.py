"""Runs a script with a variable that differs between its ranks: name, each rank's value, script."""

import os
import runpy
import sys

RANK = ("PACELINE_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")


def run(variable, values, script, *arguments):
    """As the main program of this process, one of the ranks."""
    rank = int(next(os.environ[name] for name in RANK if name in os.environ))
    os.environ[variable] = values[rank]
    sys.path.insert(0, os.path.dirname(script))
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    name, each, *words = sys.argv[1:]
    run(name, each.split(","), *words)
