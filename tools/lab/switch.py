"""Process 1 of the lab: holds the bridge, starts the nodes, inherits and reaps their orphans.

The lab lives in namespaces of this process. When it ends, the kernel ends all of it: processes,
interfaces, mounts.
"""

import os
import time
from pathlib import Path

from lab import namespaces, network, node
from lab.plan import HOSTS, MOST_PPN, hosts_file

NODE = namespaces.NET | namespaces.UTS | namespaces.IPC | namespaces.MOUNT


def files_of(plan, address):
    """The text of each of the lab's files, by name."""
    names = [plan.name(number) for number in range(plan.nodes)]
    return {
        "hosts": "127.0.0.1 localhost\n" + "".join(
            f"{address(number)} {name}\n" for number, name in enumerate(names)),
        "resolv.conf": "",  # no server outside can be asked
        "plan.json": plan.to_json(),
        **{hosts_file(family, ppn): "".join(f"{name}{form.format(ppn)}\n" for name in names)
           for family, form in HOSTS.items() for ppn in range(1, MOST_PPN + 1)},
    }


def write_files(plan):
    """Writes the files to memory that the nodes share; mounts two of them over those in /etc."""
    namespaces.mount("paceline-lab", plan.folder, "tmpfs", data="mode=0700")
    for name, text in files_of(plan, network.address).items():
        plan.file(name).write_text(text, encoding="utf-8")
    plan.file("meetings").mkdir()
    for name in ("hosts", "resolv.conf"):
        if Path("/etc", name).exists():
            namespaces.mount(plan.file(name), f"/etc/{name}", flags=namespaces.BIND)


def start_nodes(plan, ready):
    """Starts all nodes, each plugged in."""
    for number in range(plan.nodes):
        read, write = os.pipe()
        process = namespaces.spawn(NODE, lambda: node.main(number, plan, read, ready))  # noqa: B023
        network.plug(number, process, plan.rate)
        os.write(write, b".")
        os.close(read)
        os.close(write)


def main(plan, ready):
    """The life of the lab. Trouble at its start goes to `ready`, which is closed at the end."""
    try:
        namespaces.private_mounts()
        write_files(plan)
        network.make_bridge()
        start_nodes(plan, ready)
    except Exception as error:
        os.write(ready, f"{error}\n".encode())
        return
    os.close(ready)
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:  # not even nodes are left
            time.sleep(1)
