"""Runs a script as if its ranks were on several nodes: the first argument is each rank's node."""

import sys

import with_values

nodes, *words = sys.argv[1:]
with_values.run("PACELINE_NODE", [f"node {node}" for node in nodes.split(",")], *words)
