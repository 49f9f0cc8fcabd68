"""`paceline info`: prints the facts about this installation that a bug report needs."""

import json
import os
import subprocess
from pathlib import Path

import click

from paceline import _core, mpi
from paceline.cli import common
from paceline.errors import Error
from paceline.provenance import provenance

CONTAINERS = {"/.dockerenv": "docker", "/run/.containerenv": "podman"}


def commit():
    """The commit of the sources, with + if files differ from it; None for a wheel."""
    root = Path(__file__).parents[3]
    git = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--exclude=*"]
    if not (root / ".git").exists():
        return None
    try:
        return subprocess.run(git, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return None


def container():
    """The kind of container that this process runs in, or "no"."""
    mark = next(filter(os.path.exists, CONTAINERS), None)
    return CONTAINERS[mark] if mark else os.environ.get("container") or "no"


def mpi_found():
    """The MPI that Paceline would load, or the reason why there is none."""
    try:
        which, version = mpi.describe()
    except Error as error:
        return str(error)
    return f"{version}: {which}" if which else "none"


def facts():
    """All facts, by name. The environment gives only Paceline's options, without the secret."""
    found = provenance()
    machine, versions = found["machine"], found["versions"]
    file = _core.machine_file()
    return {
        "paceline": versions["paceline"], "commit": commit(), "python": versions["python"],
        "numpy": versions["numpy"], "torch": versions["torch"], "mpi": mpi_found(),
        "kernels": machine["kernels"], "processor": machine["processor"],
        "cores": f"{machine['cores_allowed']} of {machine['cores']}",
        "load": round(machine["load_before"], 1), "system": machine["system"],
        "memory": _core.human_bytes(machine["memory_bytes"]), "container": container(),
        "options": {row["variable"]: os.environ[row["variable"]] for row in _core.options()
                    if row["source"] == "environment" and row["name"] != "secret"},
        "unknown options": _core.unknown_variables(),
        "between nodes": file["trouble"] or common.kept_figures(file),
    }


@click.command("info")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def command(as_json):
    """Print the facts that a bug report needs.

    Shows versions, machine, MPI, and the options that the environment sets.

    \b
    paceline info --json
    """
    found = facts()
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        if isinstance(value, dict):
            value = " ".join(f"{key}={one}" for key, one in value.items())
        text = ", ".join(value) if isinstance(value, list) else value
        click.echo(f"{name:<16}{'none' if text in ('', None) else text}")
