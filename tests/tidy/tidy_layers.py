"""Who may include whom. The table is the architecture: change it with a reason, or not at all."""

# A folder may include itself, what stands behind it here, and what those may include.
# "transport" is the interface alone: transport/{shm,mpi,route} are folders of their own,
# siblings never include each other, and only what puts all together knows them.
LAYERS = {
    "include": "",
    "base": "",
    "ir": "base",
    "shapes": "",
    "kernels": "base",
    "trace": "base",
    "profile": "base",  # what each rank records of its calls while a program runs
    "graph": "base",
    "coll": "ir shapes",
    "verify": "ir",
    "model": "ir",  # a cost in rounds and bytes becomes a time
    "simulate": "ir model trace",
    "transport": "base",
    "transport/shm": "transport",
    "transport/mpi": "transport",
    "transport/route": "transport",
    "device": "kernels",
    # device: the enqueued form of execute; arrival: what ranks decide as they enter a call
    "engine": "ir kernels transport trace device arrival",
    "arrival": "transport",
    "tune": "coll model",
    "runtime": "tune engine profile transport/shm transport/mpi",
    "machine": "runtime",  # the machine that choices between nodes reckon with: probed, kept
    "bootstrap": "machine transport/route",  # how ranks join a world
    "tasks": "graph runtime",
    "store": "tasks",  # arrays by key
    "capi": "bootstrap include",
    "preload": "bootstrap",
    "python/binding": "store bootstrap verify simulate",
    "bench/native": "transport/mpi",  # whatever it is handed it times; the core is Python's module
}

MODULES = ("python/binding", "bench/native")  # of Python

# The same for the parts of the Python packages: their folders, and a package's name for the files
# above them. The laboratory sees all of the product, which sees nothing of it.
PARTS = {
    "paceline": "",
    "kvstore": "paceline",
    "torch": "kvstore",
    "profiling": "paceline",
    "hello": "torch",
    "cli": "hello profiling",
    "paceline_bench": "cli",
    "paceline_bench/networks": "paceline_bench",
    "paceline_bench/measure": "paceline_bench/networks",
    "paceline_bench/train": "paceline_bench/measure",
    "paceline_bench/report": "paceline_bench/train",
    "paceline_bench/cli": "paceline_bench/report",
}


def folder_of(path):
    """The key of LAYERS that a repository path belongs to; None outside of the layers."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        nested = "/".join(parts[1:3])
        return nested if parts[1] == "transport" and len(parts) > 3 else parts[1]
    if parts[0] == "include":
        return parts[0]
    return next((name for name in MODULES if path.startswith(f"{name}/")), None)


def target_of(include, path):
    """The folder that a quoted include in `path` reaches; None for what is not ours."""
    if "/" not in include:
        return folder_of(path)  # a neighbour
    if include.startswith("paceline/"):
        return "include"
    if include.startswith("../"):
        return "../"  # hides where it goes: allowed to nobody
    return folder_of("src/" + include) or include.split("/")[0]


def reachable(folder, layers=LAYERS):
    """`folder` and all that it may include."""
    found, todo = set(), [folder]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += layers[name].split()
    return found
