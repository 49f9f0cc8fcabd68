"""Every rule of tidy accepts a right file and rejects its mutant; no rule goes without one."""

import pytest
from tidy import findings, long_titles, read_tree
from tidy_imports import no_import_circle
from tidy_inside import (
    LAYERS_FILE, TODAY_FILE, imports_down, layers_used, no_include_circle, types_once,
)  # fmt: skip
from tidy_layers import LAYERS, PARTS, reachable
from tidy_rules import ALGORITHMS, RULES, columns, rooms_exist
from tidy_source import code_of, functions_of
from tidy_words import TO_DO as WORDS_TO_DO

RING = "src/coll/allreduce/ring.cpp"
REGISTRY = "#define PACELINE_ALGORITHMS(X) X(allreduce_ring)\n"
ALGORITHM = """\
// Ring allreduce: every block travels twice round the ring.
//
// Source   Somebody: Something. 2009.
// Needs    commutative op.
// Cost     2(p-1) alpha
// Scratch  none.
// When     long messages.
// Order    ring order.
//
// p = 3, blocks A B C
namespace paceline {
extern const Algorithm allreduce_ring{build};
}
"""
HPP = "// What this is, in a sentence.\n#pragma once\n"
MARK = "TO" + "DO"


def cpp_function(lines):
    return "Thing::Thing(int a)\n    : a_{a}, b_{2} {\n" + "  if (a) { b(); }\n" * lines + "}\n"


def python_function(lines):
    return "def f(x):\n" + "    x += 1\n" * lines


# (rule, path, right text, wrong text); None: there is no such text for this path
MUTANTS = [
    ("columns", "src/ir/a.cpp", "x" * 100, "x" * 101),
    ("columns", "dev", "# " + "é" * 98, "# " + "é" * 99),
    ("file_lines", "src/ir/a.cpp", "x\n" * 400, "x\n" * 401),
    ("function_lines", "src/ir/a.cpp", cpp_function(57), cpp_function(58)),
    ("function_lines", "examples/c/a.c", cpp_function(57), cpp_function(58)),
    ("function_lines", "python/paceline/a.py", python_function(59), python_function(60)),
    ("mpi_header", "src/transport/mpi/a.cpp", "#include <mpi.h>\n", None),
    ("mpi_header", "src/preload/a.cpp", "#include <mpi.h>\n", None),
    ("mpi_header", "src/engine/a.cpp", "// mpi.h\n", "#  include <mpi.h>\n"),
    ("python_header", "python/binding/a.cpp", "#include <nanobind/nanobind.h>\n", None),
    ("python_header", "src/engine/a.cpp", "", "#include <Python.h>\n"),
    ("python_header", "src/engine/a.cpp", "", "#include <nanobind/ndarray.h>\n"),
    ("layers", "src/coll/bcast/a.cpp", '#include "shapes/ring.hpp"', '#include "engine/run.hpp"'),
    ("layers", "src/coll/bcast/a.cpp", '#include "ir/a.hpp"', "#include <kernels/kernels.hpp>"),
    ("layers", "src/transport/shm/a.cpp", '#include "transport/transport.hpp"',
     '#include "transport/mpi/mpi.hpp"'),
    ("layers", "src/engine/a.cpp", '#include "transport/transport.hpp"',
     '#include "transport/shm/shm.hpp"'),
    ("layers", "src/base/a.cpp", '#include "base/str.hpp"', '#include "ir/problem.hpp"'),
    ("layers", "src/base/a.cpp", '#include "str.hpp"', '#include "../ir/problem.hpp"'),
    ("layers", "src/base/a.cpp", "", '#include "paceline/paceline.h"'),
    ("layers", "src/novelty/a.cpp", None, "int a;\n"),
    ("rooms_exist", "tests/tidy/tidy_layers.py", None, "LAYERS = {}\n"),
    ("tests_not_included", "src/ir/a.cpp", "", '#include "tests/worlds.hpp"\n'),
    ("tests_not_included", "src/ir/a.cpp", "", "#include <doctest/doctest.h>\n"),
    ("lowered_once", "src/verify/a.cpp", '#include "ir/lower.hpp"', '#include "ir/fuse.hpp"'),
    ("lowered_once", "src/ir/lower.cpp", '#include "ir/fuse.hpp"', None),
    ("pure", "src/simulate/a.cpp", "#include <vector>", "#include <chrono>"),
    ("pure", "src/verify/a.cpp", '// printf\nf("getenv");', 'printf("x");'),
    ("pure", "src/shapes/a.cpp", "int x;", 'auto f = fopen(name, "r");'),
    ("getenv_once", "src/base/options.cpp", 'getenv("X");', None),
    ("getenv_once", "src/base/options_read.cpp", 'getenv("X");', None),
    ("getenv_once", "src/runtime/a.cpp", "// getenv", 'std::getenv("X");'),
    ("reads_do_not_throw", "src/transport/a.cpp", "// istreambuf_iterator",
     "std::string(std::istreambuf_iterator<char>(file), {});"),
    ("data_runs_nothing", "python/paceline/a.py", "import json\n# pickle", "import pickle"),
    ("data_runs_nothing", "python/paceline/a.py", "from json import load",
     "def f(x):\n    from pickle import loads"),
    ("data_runs_nothing", "python/paceline/a.py", "model.eval()", "eval(told)"),
    ("data_runs_nothing", "python/paceline/a.py", "numpy.load(f)", "x.load(f, allow_pickle=True)"),
    ("data_runs_nothing", "tests/python/test_a.py", "import pickle", None),
    ("algorithm_header", RING, ALGORITHM, ALGORITHM.replace("// Cost     2(p-1) alpha\n", "")),
    ("algorithm_header", RING, ALGORITHM, ALGORITHM.replace("// Needs    ", "// Needs ")),
    ("algorithm_header", RING, ALGORITHM, ALGORITHM.replace("none.", "")),
    ("algorithm_header", RING, ALGORITHM, ALGORITHM.replace("// p = 3", "// for 3")),
    ("algorithm_header", RING, ALGORITHM,
     ALGORITHM.replace("Source   ", "@").replace("Order    ", "Source   ").replace(
         "@", "Order    ")),
    ("registered_once", RING, ALGORITHM, ALGORITHM.replace("allreduce_ring", "allreduce_gnir")),
    ("registered_once", RING, ALGORITHM, "// no algorithm in here\n"),
    ("todo_has_issue", "src/ir/a.cpp", f"// {MARK} (#12): x", f"// {MARK}: x"),
    ("todo_has_issue", "dev", "", f"# {MARK} tomorrow"),
    ("no_machine_paths", "docs/a.md", "https://example.org/" + "home/ and ~/" + "work/",
     "see /" + "home/me/x"),
    ("no_machine_paths", "bench/a.json", "", '{"file": "/tmp/x"}'),
    ("no_machine_paths", "tests/python/test_a.py", "open('/tmp/x')", None),
    ("header_form", "src/ir/a.hpp", HPP, HPP.replace("#pragma once", "#include <vector>")),
    ("header_form", "src/ir/a.hpp", HPP, "#pragma once\n"),
    ("header_form", "src/ir/a.hpp", HPP, HPP.replace("sentence.", "sentence")),
    ("header_form", "include/paceline/a.h", "/* What this is: a sentence. */\n", "int a;\n"),
    ("retired_words", "src/ir/a.cpp", "is_load_store(x);", "is_str" "aight(x);"),
    ("retired_words", "src/engine/a.hpp", HPP, HPP + "class Stage" "View;\n"),
    ("retired_words", "docs/options.md", "`PACELINE_SINGLE_COPY`",
     "`PACELINE_ATT" "ACH`"),
    ("no_import_circle", "python/paceline/a.py", "from paceline import b", "import paceline.a"),
    ("no_include_circle", TODAY_FILE, None, ""),
    ("imports_down", "python/paceline/kvstore/a.py", "import json", None),
    ("imports_down", "python/paceline/novelty/a.py", None, "import json"),
    ("types_once", TODAY_FILE, None, ""),
    ("layers_used", LAYERS_FILE, None, ""),
    ("no_import_circle", "python/paceline/a.py", "if TYPE_CHECKING:\n    import paceline.a",
     "def f():\n    from paceline.a import g"),
    ("algorithm_header", RING, ALGORITHM, ALGORITHM.replace(" twice round", " twice\n// round")),
    ("plain_comments", "src/ir/a.cpp", "// The rank of a call.\n", "// Of a call: its rank.\n"),
    ("plain_comments", "src/ir/a.cpp", "// It ends. What\n// for?", "// It ends.\n// Where it is."),
    ("plain_comments", "src/ir/a.cpp", 'f("nobody");  // Late.', 'f("");  /* Late: nobody. */'),
    ("plain_comments", "python/paceline/a.py", '"""Late ranks."""', '"""Ranks\n\nwho wait."""'),
    ("plain_comments", "python/paceline/a.py", "# Waits.", "# Waits. Whether it may.\n"),
    ("plain_comments", WORDS_TO_DO, "", "src/ir/in_order.cpp\n"),
    ("plain_messages", "src/ir/a.cpp", 'fail("rank 1 waits");', 'fail("rank 1 waits for nobody");'),
    ("plain_messages", "python/paceline/a.py", 'f(help="Ranks to start.")',
     'f(help="How many to start.")'),
]  # fmt: skip


def names(path, text):
    return {rule for at, _, rule, _ in findings({path: text, ALGORITHMS: REGISTRY})
            if at == path}


@pytest.mark.parametrize("rule, path, right, wrong", MUTANTS)
def test_mutant(rule, path, right, wrong):
    if right is not None:
        assert rule not in names(path, right)
    if wrong is not None:
        assert rule in names(path, wrong)


def test_every_rule_has_a_mutant():
    assert {rule for rule, _, _, wrong in MUTANTS if wrong is not None} == {
        rule.__name__ for rule in RULES
    }


@pytest.mark.parametrize("registry", ["", "extern const Algorithm allreduce_ring;",
                                      REGISTRY * 2])
def test_registry_lists_once(registry):
    tree = {RING: ALGORITHM, ALGORITHMS: registry}
    assert "registered_once" in {rule for _, _, rule, _ in findings(tree)}


def test_finding_names_its_line():
    tree = {"src/ir/a.cpp": "a\n" + "x" * 101}
    assert list(findings(tree, [columns])) == [
        ("src/ir/a.cpp", 2, "columns", "101 columns; at most 100")
    ]


@pytest.mark.parametrize("layers", [LAYERS, PARTS])
def test_layers_have_no_cycle(layers):
    for folder, direct in layers.items():
        assert all(folder not in reachable(name, layers) for name in direct.split()), folder


def test_every_room_is_there():
    assert not [rule for _, _, rule, _ in findings(read_tree(), [rooms_exist])]


def test_a_circle_of_imports_is_seen_from_each_of_its_files():
    tree = {"python/paceline/a.py": "from paceline.b import f",
            "python/paceline/b/__init__.py": "from paceline.b import c",
            "python/paceline/b/c.py": "def g():\n    from paceline import a, d",
            "python/paceline/d.py": "import json"}
    assert [(path, line) for path, line, _, _ in findings(tree, [no_import_circle])] == [
        ("python/paceline/a.py", 1), ("python/paceline/b/__init__.py", 1),
        ("python/paceline/b/c.py", 2)]


def found(rule, tree):
    return [path for path, _, _, _ in findings(tree, [rule]) if path != TODAY_FILE]


def test_a_circle_of_includes_is_seen_from_each_of_its_files():
    tree = {"src/base/a.hpp": "", "src/base/a.cpp": '#include "base/a.hpp"\n#include "base/b.hpp"',
            "src/base/b.hpp": '#include "c.hpp"', "src/base/c.hpp": '#include "base/a.hpp"',
            "src/base/d.hpp": '#include "base/a.hpp"'}  # fmt: skip
    assert found(no_include_circle, tree) == [f"src/base/{name}" for name in (
        "a.cpp", "a.hpp", "b.hpp", "c.hpp")]  # fmt: skip
    apart = {**tree, "src/base/c.hpp": '#include <base/a.hpp>\n#include "ir/a.hpp"'}
    assert found(no_include_circle, apart) == []


def test_an_import_that_goes_up_is_seen():
    tree = {"python/paceline/kvstore/a.py": "from paceline.torch import b\nimport paceline.c",
            "python/paceline/torch/b.py": "from paceline.kvstore import a\nimport paceline.c",
            "python/paceline/c.py": ""}
    assert found(imports_down, tree) == ["python/paceline/kvstore/a.py"]


def test_a_type_of_two_files_is_seen_in_both():
    tree = {"src/ir/a.hpp": "class Thing;\nstruct Other {\n  struct Thing {};\n};",
            "src/ir/b.cpp": "struct Thing : Other {\n};",
            "src/engine/c.cpp": "enum class Thing : int { a };\nvoid Thing::f() {}",
            "src/engine/d.cpp": "template <class T>\nstruct Thing<int> {};"}
    assert found(types_once, tree) == ["src/engine/c.cpp", "src/ir/b.cpp"]


def test_a_row_with_a_folder_that_is_not_included_is_seen():
    tree = read_tree()
    assert found(layers_used, tree) == []
    without = {path: text.replace('#include "ir/', '#include "verify/')
               if path.startswith("src/verify/") else text for path, text in tree.items()}
    assert found(layers_used, without) == [LAYERS_FILE]


def test_long_titles_are_seen():
    assert long_titles("abc1234 " + "x" * 60) == []
    assert long_titles("abc1234 ok\ndef5678 " + "x" * 61) == ["def5678"]


def test_siblings_stay_apart():
    assert "transport/mpi" not in reachable("engine") | reachable("transport/shm")
    assert reachable("coll") == {"coll", "ir", "shapes", "base"}


@pytest.mark.parametrize("text, sizes", [
    ("int f() { return 1; }", [1]),
    ("struct S {\n  int f() const noexcept {\n    return 1;\n  }\n  int x = 3;\n};", [3]),
    ("auto f() -> std::vector<int> {\n}\nnamespace a {\nint g() {\n}\n}", [2, 2]),
    ("const int a[] = {1, 2};\nenum E { x };\nextern \"C\" {\nvoid f(void) {\n\n}\n}", [3]),
    ("void f() {\n  for (;;) { g([&](int) { return 1; }); }\n}", [3]),
    ("template <class T>\nT f(T x) {\n  return '{' + \"}\" + R\"(}})\";  // }\n}", [4]),
    ("#define X {\nTEST_CASE(\"a\") {\n  CHECK(1'000'000);\n}", [3]),
    ("std::string_view f(int x) { return x ? \"a\" : \"b\"; }", [1]),
])  # fmt: skip
def test_functions(text, sizes):
    assert [function.length for function in functions_of(text)] == sizes


def test_code_keeps_its_lines():
    text = 'a /* x\n y */ "b\\"c" // d\nR"(\n)" 1\'000\n'
    assert code_of(text) == 'a \n "" \n""\n 1\'000\n'
