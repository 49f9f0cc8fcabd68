"""What is inside a room and between the parts of the package: includes and imports that run one
way, and names of types that mean one thing."""

import re

import tidy_today as today
from tidy_imports import ROOTS, targets
from tidy_layers import LAYERS, PARTS, folder_of, reachable, target_of
from tidy_source import code_of, includes_of

LAYERS_FILE, TODAY_FILE = "tests/tidy/tidy_layers.py", "tests/tidy/tidy_today.py"
CPP = (".cpp", ".hpp", ".h", ".c", ".inc", ".cu")
DEFINED = re.compile(
    r"^(?:template\s*<[^;{}]*>\s*)?(?:struct|class|union|enum(?:\s+class)?)\s+"
    r"([\w:]+)\b(?!\s*<)[^;{}()=]*\{",
    re.MULTILINE,
)


class Once:
    """What a function finds in a tree, kept for the rules that ask for each file of it."""

    def __init__(self, find):
        self.find, self.tree, self.found = find, None, None

    def __call__(self, tree):
        if self.tree is not tree:
            self.tree, self.found = tree, self.find(tree)
        return self.found


def unit_of(path):
    return path.rsplit(".", 1)[0]


def is_room(path):
    return path.startswith(("src/", "python/binding/")) and path.endswith(CPP)


def room_of(path):
    return "/".join(path.split("/")[:2])


@Once
def units(tree):
    """{unit: units of its room that it includes}."""
    found = {}
    for path in filter(is_room, tree):
        own = found.setdefault(unit_of(path), set())
        for _, name, quoted in includes_of(tree[path]):
            at = f"src/{name}" if "/" in name else f"{path.rsplit('/', 1)[0]}/{name}"
            if quoted and at in tree and room_of(at) == room_of(path):
                own.add(unit_of(at))
        own.discard(unit_of(path))
    return found


@Once
def in_circles(tree):
    """The units that include themselves by way of others."""
    graph = units(tree)

    def reached(unit):
        seen, todo = set(), list(graph[unit])
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += graph.get(at, ())
        return seen

    return {unit for unit in graph if unit in reached(unit)}


def no_include_circle(path, text, tree):
    """Inside a room includes run one way."""
    known = {f"{room}/{name}" for room, names in today.UNITS_IN_CIRCLES.items()
             for name in names.split()}
    if is_room(path) and unit_of(path) in in_circles(tree) - known:
        yield 1, "includes itself by way of other files of its room: one of them has to give way"
    if path == TODAY_FILE:
        for unit in sorted(known - in_circles(tree)):
            yield 1, f"{unit} is in no circle of includes: take it from UNITS_IN_CIRCLES"


def part_of(path):
    """The key of PARTS that a file of a package belongs to; None for others."""
    if not path.startswith(ROOTS) or not path.endswith(".py"):
        return None
    if path == "python/paceline/__main__.py":
        return "cli"  # which it starts
    _, package, *below = path.split("/")[:-1]
    if package == "paceline":
        return below[0] if below else package
    return "/".join([package, *below[:1]])


def imports_down(path, text, tree):
    """A part of a package imports only what stands below it."""
    part = part_of(path)
    if part and part not in PARTS:
        yield 1, f"part {part} is not in {LAYERS_FILE}: decide what it may import"
    elif part:
        for target, line in targets(path, tree).items():
            other = part_of(target)
            if other not in reachable(part, PARTS):
                yield line, f"{part} may not import {other} ({LAYERS_FILE})"


@Once
def types(tree):
    """{type: the files of src that define it}, but for what lies inside of another."""
    found = {}
    for path in tree:
        if path.startswith("src/") and path.endswith(CPP):
            for name in set(DEFINED.findall(code_of(tree[path]))):
                found.setdefault(name, []).append(path)
    return found


def types_once(path, text, tree):
    """A type's name means one thing in src."""
    twice = {name: files for name, files in types(tree).items() if len(files) > 1}
    for name in sorted(set(twice) - set(today.TYPES_TWICE)):
        if path in twice[name]:
            others = ", ".join(other for other in twice[name] if other != path)
            yield 1, f"{name} is a type of {others}, too: name one of them by what it is"
    if path == TODAY_FILE:
        for name in sorted(set(today.TYPES_TWICE) - set(twice)):
            yield 1, f"{name} is defined once: take it from TYPES_TWICE"


@Once
def used(tree):
    """{folder: folders of LAYERS that its files include}."""
    found = {}
    for path in tree:
        folder = folder_of(path)
        if folder and path.endswith(CPP):
            found.setdefault(folder, set()).update(
                target_of(name, path) for _, name, _ in includes_of(tree[path]))
    return found


def layers_used(path, text, tree):
    """A row of the table of layers names only folders that its own includes."""
    if path == LAYERS_FILE:
        for folder, row in LAYERS.items():
            for name in row.split():
                if name not in used(tree).get(folder, ()):
                    yield 1, f"{folder} includes nothing of {name}: take it from its row"


RULES = (no_include_circle, imports_down, types_once, layers_used)
