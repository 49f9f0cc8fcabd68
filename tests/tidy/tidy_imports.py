"""No module of a package imports, by way of others, itself: neither at once nor in a function.

What is imported for annotations alone, below `if TYPE_CHECKING:`, does not count.
"""

import ast
from functools import lru_cache

# Where the packages are.
FOLDERS = {"paceline": "python", "paceline_bench": "bench"}
ROOTS = tuple(f"{folder}/{name}/" for name, folder in FOLDERS.items())


def path_of(name, tree):
    """The file of a module such as paceline.cli; None for what is of no package of ours."""
    folder = FOLDERS.get(name.split(".")[0])
    stem = f"{folder}/{name.replace('.', '/')}"
    return next((path for path in (f"{stem}.py", f"{stem}/__init__.py") if path in tree), None)


def is_for_annotations(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_in(node):
    """(line, module, names) of all imports below a node."""
    if isinstance(node, ast.ImportFrom):
        yield node.lineno, node.module or "", [alias.name for alias in node.names]
    elif isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name, []) for alias in node.names)
    for child in ast.iter_child_nodes(node):
        if not is_for_annotations(child):
            yield from imports_in(child)


@lru_cache
def imports_of(text):
    return list(imports_in(ast.parse(text)))


def targets(path, tree):
    """{file of a package that is imported: line}."""
    found = {}
    for line, module, names in imports_of(tree[path]):
        modules = [f"{module}.{name}" for name in names]
        reached = {path_of(name, tree) or path_of(module, tree) for name in modules or [module]}
        for target in reached - {None}:
            found.setdefault(target, line)
    if path.endswith("__init__.py"):  # what the package has besides modules
        found.pop(path, None)
    return found


def reaches(start, path, tree):
    """Whether the file `start` imports `path`, at however many removes."""
    seen, next_ones = set(), [start]
    while next_ones:
        at = next_ones.pop()
        if at == path:
            return True
        if at not in seen:
            seen.add(at)
            next_ones += targets(at, tree)
    return False


def no_import_circle(path, text, tree):
    if path.startswith(ROOTS) and path.endswith(".py"):
        for target, line in targets(path, tree).items():
            if reaches(target, path, tree):
                yield line, f"{target} imports this file, too: move what both need to a third one"
