"""The rules. Each takes (path, text, tree) and yields (line, message); tree maps paths to texts.

To add one: write it, list it in RULES, and give tests/tidy/test_tidy.py a file that it rejects.
"""

import ast
import re

import tidy_inside
import tidy_words
from tidy_imports import ROOTS, no_import_circle
from tidy_layers import LAYERS, MODULES, folder_of, reachable, target_of
from tidy_retired import retired_words
from tidy_source import code_of, functions_of, includes_of

COLUMNS, FUNCTION_LINES, FILE_LINES = 100, 60, 400

CPP = (".cpp", ".hpp", ".h", ".c", ".inc", ".cu")
SOURCE = (*CPP, ".py", ".cmake", "CMakeLists.txt", "/dev", ".ci/run")
PURE = ("ir", "shapes", "coll", "verify", "simulate")  # readable as mathematics, equal everywhere
MPI_KNOWN = ("transport/mpi", "preload")  # compiled for one MPI, or able to be
IMPURE_HEADER = "chrono thread iostream fstream cstdio stdio.h ctime time.h unistd.h".split()
IMPURE_WORD = re.compile(r"\b(getenv|fopen|f?printf|puts|sleep_for|steady_clock|system_clock)\b")
RUNS_DATA = ("pickle", "_pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "joblib")
PASSES = ("ir/fuse.hpp", "ir/in_step.hpp", "ir/pipeline.hpp")  # of lower()
FIELDS = ("Source", "Needs", "Cost", "Scratch", "When", "Order")
ALGORITHMS = "src/coll/algorithms.hpp"  # lists them


def is_source(path, endings=SOURCE):
    return ("/" + path).endswith(endings)


def numbered(text):
    return enumerate(text.splitlines(), 1)


def found(pattern, text):
    for number, line in numbered(text):
        for match in re.finditer(pattern, line):
            yield number, match


def columns(path, text, tree):
    if is_source(path):
        for number, line in numbered(text):
            if len(line) > COLUMNS:
                yield number, f"{len(line)} columns; at most {COLUMNS}"


def file_lines(path, text, tree):
    count = len(text.splitlines())
    if is_source(path) and count > FILE_LINES:
        yield count, f"{count} lines; at most {FILE_LINES}: split it where the subject changes"


def function_lines(path, text, tree):
    if is_source(path, CPP):
        sizes = [(f.line, f.length) for f in functions_of(text)]
    elif is_source(path, (".py", "/dev")):
        nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
        sizes = [(n.lineno, n.end_lineno - n.lineno + 1) for n in nodes]
    else:
        return
    for line, length in sizes:
        if length > FUNCTION_LINES:
            yield line, f"function of {length} lines; at most {FUNCTION_LINES}"


def mpi_header(path, text, tree):
    if folder_of(path) and folder_of(path) not in MPI_KNOWN:
        for line, name, _ in includes_of(text):
            if name == "mpi.h":
                yield line, f"mpi.h outside of {', '.join(MPI_KNOWN)} ties the core to one MPI"


def python_header(path, text, tree):
    if folder_of(path) not in MODULES:
        for line, name, _ in includes_of(text):
            if name == "Python.h" or name.startswith(("nanobind/", "pybind11/")):
                yield line, f"{name} outside of {' and '.join(MODULES)}"


def layers(path, text, tree):
    folder = folder_of(path)
    if folder is None or not is_source(path, CPP):
        return
    if folder not in LAYERS:
        yield 1, f"folder {folder} is not in tests/tidy/tidy_layers.py: decide whom it may include"
        return
    for line, name, quoted in includes_of(text):
        ours = quoted or name.split("/")[0] in (*LAYERS, "paceline")
        if ours and target_of(name, path) not in reachable(folder):
            yield line, f"{folder} may not include {name} (tests/tidy/tidy_layers.py)"


def rooms_exist(path, text, tree):
    """The table of layers describes the house as it stands."""
    if path == "tests/tidy/tidy_layers.py":
        for room in sorted(set(LAYERS) - {folder_of(name) for name in tree}):
            yield 1, f"no file lies in {room}: its row describes nothing"


def tests_not_included(path, text, tree):
    if folder_of(path):
        for line, name, _ in includes_of(text):
            if re.search(r"(^|/)(tests|bench)/|doctest", name):
                yield line, f"{name}: nothing includes tests or bench"


def lowered_once(path, text, tree):
    """What is proven runs: the passes stand in one order, under conditions of one place."""
    if folder_of(path) not in (None, "ir"):
        for line, name, _ in includes_of(text):
            if name in PASSES:
                yield line, f"{name} outside of src/ir: call lower() of ir/lower.hpp"


def pure(path, text, tree):
    if folder_of(path) not in PURE:
        return
    for line, name, _ in includes_of(text):
        if name in IMPURE_HEADER:
            yield line, f"<{name}> under src/{folder_of(path)}: no clock, thread or I/O there"
    for line, match in found(IMPURE_WORD, code_of(text)):
        yield line, f"{match.group()} under src/{folder_of(path)}: no clock, getenv or I/O there"


def getenv_once(path, text, tree):
    options = re.fullmatch(r"src/base/options\w*\.cpp", path)
    if folder_of(path) and is_source(path, CPP) and not options:
        for line, _ in found(r"\b(secure_)?getenv\b", code_of(text)):
            yield line, "getenv outside of src/base/options*.cpp: make it a row of that table"


def reads_do_not_throw(path, text, tree):
    if folder_of(path) and is_source(path, CPP):
        for line, _ in found(r"\bistreambuf_iterator\b", code_of(text)):
            yield line, "istreambuf_iterator throws where a read fails: take contents_of()"


def data_runs_nothing(path, text, tree):
    """What a peer sent or a file holds is data: nothing in a package can make it run."""
    if not (path.startswith(ROOTS) and is_source(path, (".py",))):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
            for module in (m.split(".")[0] for m in modules):
                if module in RUNS_DATA:
                    yield node.lineno, f"{module} runs what it reads; send numbers, or JSON"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            unpickles = called in ("eval", "exec", "torch.load") or any(
                word.arg == "allow_pickle" for word in node.keywords)
            if unpickles:
                yield node.lineno, f"{called}() runs what it reads; send numbers, or JSON"


def is_algorithm(path):
    return re.fullmatch(r"src/coll/\w+/\w+\.cpp", path)


def algorithm_header(path, text, tree):
    if not is_algorithm(path):
        return
    header = re.match(r"(//.*\n)*", text).group().splitlines()
    if header and not (header[0].endswith(".") and header[1:2] == ["//"]):
        yield 1, "the first line is the whole description, a sentence: catalogues show no more"
    fields = {line[3:12].strip(): number for number, line in enumerate(header, 1) if line[12:]}
    places = []
    for field in FIELDS:
        line = fields.get(field)
        if line is None or not re.match(rf"// {field:<9}\S", header[line - 1]):
            yield 1, f"no header field '// {field:<9}...'"
        else:
            places.append(line)
    if places != sorted(places):
        yield 1, f"header fields out of order; the order is {' '.join(FIELDS)}"
    if not any(line.startswith("// p = ") for line in header):
        yield 1, "no picture: a line '// p = ...' and what each rank holds after each round"


def registered_once(path, text, tree):
    if not is_algorithm(path):
        return
    names = re.findall(r"\bconst\s+Algorithm\s+(\w+)\s*[{=(]", code_of(text))
    if len(names) != 1:
        yield 1, f"defines {len(names)} Algorithms {names}; one file, one algorithm"
    listed = re.sub(r"\bextern\b[^;]*;", "", code_of(tree.get(ALGORITHMS, "")))
    for name in names:
        count = len(re.findall(rf"\b{name}\b", listed))
        if count != 1:
            yield 1, f"{name} is listed {count} times in {ALGORITHMS}; once is right"


def todo_has_issue(path, text, tree):
    if is_source(path):
        for line, match in found(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!.*#\d)", text):
            yield line, f"{match.group(1)} without an issue number (#123)"


def no_machine_paths(path, text, tree):
    if not path.startswith("tests/"):
        for line, match in found(r"(?<![\w.~/>}])/(work|root|home|tmp)/", text):
            yield line, f"{match.group()} exists on one machine only"


def header_form(path, text, tree):
    if not is_source(path, (".hpp", ".h")):
        return
    first = re.match(r"((//|/\*| \*) ?.*\n)*", text).group().split("\n//\n")[0]
    words = re.sub(r"[/*]", " ", first).split()
    if len(words) < 3 or not words[-1].endswith((".", ":", "?", "!", ".)")):
        yield 1, "a header starts with a comment that says, in a sentence, what it is"
    code = re.sub(r"^[ \t]*\n", "", code_of(text), flags=re.MULTILINE)
    if path.endswith(".hpp") and not code.startswith("#pragma once\n"):
        yield 1, "#pragma once is the first line after the opening comment"


RULES = (
    columns, file_lines, function_lines, mpi_header, python_header, layers, rooms_exist,
    tests_not_included, lowered_once, pure, getenv_once, reads_do_not_throw, data_runs_nothing,
    algorithm_header, registered_once, todo_has_issue, no_machine_paths, header_form, retired_words,
    no_import_circle, *tidy_inside.RULES, *tidy_words.RULES,
)  # fmt: skip
