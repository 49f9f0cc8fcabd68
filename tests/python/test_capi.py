"""The C interface as its users meet it: header, library, pkg-config, examples; with MPI too."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import launched
import mpis
import pytest
from length import param

pytestmark = pytest.mark.ranks

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/paceline/paceline.h"
EXAMPLES = ROOT / "examples/c"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
LIMIT_S = 60


def run(*command, **keywords):
    """Runs a command; what it wrote. Fails with that unless it returns 0."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, **keywords)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """Where the library is installed: put there by CMake, and moved afterwards."""
    assert (ROOT / "build/release/libpaceline.so").exists(), "build it first: ./dev build"
    folder = tmp_path_factory.mktemp("capi")
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    run(cmake, "--install", ROOT / "build/release", "--component", "capi",
        "--prefix", folder / "first")
    return (folder / "first").rename(folder / "moved")


@pytest.fixture(scope="session")
def flags(prefix):
    """What pkg-config tells a compiler."""
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config on this machine")
    (file,) = prefix.rglob("paceline.pc")
    env = {**os.environ, "PKG_CONFIG_PATH": str(file.parent)}
    return run("pkg-config", "--cflags", "--libs", "paceline", env=env).split()


@pytest.fixture
def compiled(prefix, flags, tmp_path):
    """Compiles a C program in the strictest way, with the library where it is installed."""

    def compile(source, *more, compiler="cc"):
        (library,) = prefix.rglob("libpaceline.so")
        program = tmp_path / Path(source).stem
        run(compiler, "-std=c11", *STRICT, *more, source, *flags, f"-Wl,-rpath,{library.parent}",
            "-o", program)
        return program

    return compile


def declared(header):
    """The functions that a header declares."""
    return sorted(re.findall(r"^PACELINE_API [^;]*?\b(paceline_\w+)\(", header, re.MULTILINE))


def exported(listing):
    """The symbols that `nm -D --defined-only` lists, but for the name of the version itself."""
    rows = [line.split() for line in listing.splitlines()]
    return sorted(name.split("@")[0] for _, kind, name in rows if kind != "A")


def test_library_shows_what_the_header_declares(prefix):
    header = HEADER.read_text()
    (library,) = prefix.rglob("libpaceline.so")
    listing = run("nm", "-D", "--defined-only", library)
    assert len(declared(header)) > 20
    assert exported(listing) == declared(header)
    # The comparison sees a function too many on either side.
    more = "PACELINE_API int\npaceline_more(int x,\n    int y);\n"
    assert declared(header + more) == sorted([*declared(header), "paceline_more"])
    assert exported(listing + "00 W _ZNSt6vectorE\n") != declared(header)


def test_library_is_named_by_its_abi(prefix):
    (library,) = prefix.rglob("libpaceline.so")
    abi = re.search(r"define PACELINE_ABI (\d+)", HEADER.read_text())[1]
    entries = run("readelf", "-d", library)
    assert f"Library soname: [libpaceline.so.{abi}]" in entries
    assert f"PACELINE_{abi}" in run("nm", "-D", "--defined-only", library)
    assert not re.search(r"NEEDED.*(mpi|python)", entries)  # it finds them, it does not need them


def test_versions_are_one():
    project = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert f'define PACELINE_VERSION "{project[1]}"' in HEADER.read_text()


@pytest.mark.parametrize(("compiler", "standard", "language"), [
    ("cc", "c11", "c"), ("cc", "c17", "c"), ("c++", "c++11", "c++"), ("c++", "c++20", "c++"),
])  # fmt: skip
def test_header_stands_alone(prefix, compiler, standard, language):
    header = prefix / "include/paceline/paceline.h"
    # As the main file, it may hold what is only used elsewhere; everything else is an error.
    run(compiler, f"-std={standard}", *STRICT, "-fsyntax-only", "-x", language, header)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_example(compiled, ranks):
    result = launched.start(compiled(EXAMPLES / "allreduce.c"), ranks)
    assert result.status == 0, result.text()
    for rank in range(ranks):
        mean = (ranks - 1) / 2
        assert result.lines[rank, "stdout"] == [
            f"rank {rank} of {ranks}: blocking {sum(range(ranks + 1))}",
            f"rank {rank} of {ranks}: overlapped {mean:g}",
            f"rank {rank} of {ranks}: planned {9 + mean:g}",
        ]


def test_example_says_what_is_wrong(compiled):
    result = launched.start(compiled(EXAMPLES / "allreduce.c"), 2,
                            env={"PACELINE_ALGORITHM": "allreduce=rung"})
    assert result.status == 1, result.text()  # PACELINE_USAGE
    assert "rung" in result.text(stream="stderr")


def test_errors_say_where_the_program_was(compiled, tmp_path):
    source = tmp_path / "differs.c"
    source.write_text("""
#include <paceline/paceline.h>
#include <stdio.h>
static double x[4];
static paceline_status step(paceline_comm* world) {
  return paceline_rank(world) == 0
             ? paceline_allreduce(world, x, x, 4, PACELINE_F64, PACELINE_SUM)
             : paceline_allreduce(world, x, x, 3, PACELINE_F64, PACELINE_SUM);
}
int main(void) {
  paceline_comm* world;
  if (paceline_init(&world)) return 99;
  if (step(world) != PACELINE_MISMATCH) return 98;
  puts(paceline_error());
  return (int)paceline_finalize(&world);
}
""")
    program = compiled(source, "-g", "-O0")
    result = launched.start(program, 2)
    assert result.status == 0, result.text()
    for rank in range(2):
        found = re.findall(r"rank (\d) at differs\+(0x[0-9a-f]+)", result.text(rank, "stdout"))
        assert [one for one, _ in found] == ["0", "1"], result.text()
        lines = run("addr2line", "-e", program, *[address for _, address in found])
        assert [number for _, number in re.findall(r"(differs\.c):(\d+)", lines)] == ["7", "8"]


def test_ranks_that_die_are_missed(compiled, tmp_path):
    source = tmp_path / "dies.c"
    source.write_text("""
#include <paceline/paceline.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  paceline_comm* world;
  if (paceline_init(&world) || paceline_barrier(world)) return 99;
  if (paceline_rank(world) == 1) abort();
  const int status = paceline_barrier(world);
  printf("%d %s\\n", status, paceline_error());
  return status != PACELINE_LOST;
}
""")
    result = launched.start(compiled(source), 2)
    assert result.status == 128 + 6
    (line,) = result.lines[0, "stdout"]
    assert line.startswith("5 ") and "rank 1" in line


def test_worlds_one_after_the_other(compiled, tmp_path):
    """The launcher's store stays; a second world must not meet what the first left in it."""
    source = tmp_path / "again.c"
    source.write_text("""
#include <paceline/paceline.h>
#include <stdio.h>
int main(void) {
  for (int turn = 0; turn < 3; ++turn) {
    paceline_comm* world;
    int sum = turn;
    if (paceline_init(&world) ||
        paceline_allreduce(world, &sum, &sum, 1, PACELINE_I32, PACELINE_SUM) ||
        paceline_finalize(&world)) {
      puts(paceline_error());
      return 1;
    }
    printf("%d\\n", sum);
  }
}
""")
    result = launched.start(compiled(source), 3)
    assert result.status == 0, result.text()
    for rank in range(3):
        assert result.lines[rank, "stdout"] == ["0", "3", "6"]


# --- MPI ---------------------------------------------------------------------------------------
NAMES = ("openmpi5", "mpich5", "openmpi4", "mpich4")


@pytest.fixture(params=[*NAMES[:2], *map(param, NAMES[2:])])
def mpi(request):
    """An MPI that is installed, and its C compiler."""
    for found in mpis.found():
        if found.name == request.param:
            launcher = Path(found.mpiexec[0])
            compiler = launcher.with_name(launcher.name.replace("mpiexec", "mpicc"))
            if not compiler.exists():
                pytest.skip(f"{found.name} has no {compiler.name}")
            return found, compiler
    pytest.skip(f"{request.param} is not installed (./dev mpi)")


def under_mpi(mpi, ranks, program, **variables):
    """Runs a program that was compiled with it, on the MPI's own library."""
    env = {
        **os.environ, **mpi.environment(), "PACELINE_SHM_DIR": str(launched.shared_folder()),
        "PACELINE_TIMEOUT_MS": "20000", "LD_LIBRARY_PATH": str(mpi.library.parent),
        **variables,
    }  # fmt: skip
    return run(*mpi.command(ranks, program), env=env)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_mpi_example(mpi, compiled, ranks):
    found, compiler = mpi
    program = compiled(EXAMPLES / "mpi_allreduce.c", compiler=compiler)
    lines = under_mpi(found, ranks, program).splitlines()
    total = sum(range(1, ranks + 1))
    assert sorted(lines) == [
        f"rank {rank} of {ranks}: all {total}, half {sum(range(1 + rank % 2, ranks + 1, 2))}"
        for rank in range(ranks)
    ]


@pytest.mark.parametrize("mpi", [NAMES[1], *map(param, NAMES[:1]), *map(param, NAMES[2:])],
                         indirect=True)
def test_a_rank_that_does_not_join_under_mpi_ends_the_others(mpi, compiled, tmp_path):
    found, compiler = mpi
    source = tmp_path / "absent.c"
    source.write_text("""
#include <mpi.h>
#include <paceline/paceline.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  paceline_comm* world;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1) sleep(600);
  return paceline_init(&world);
}
""")
    with pytest.raises(AssertionError, match="rank 0: the ranks have not met over MPI within 300"):
        under_mpi(found, 2, compiled(source, compiler=compiler), PACELINE_START_TIMEOUT_MS="300")


def test_init_takes_the_mpi_of_the_process(mpi, compiled, tmp_path):
    """Between MPI_Init and MPI_Finalize; before and afterwards it is an error, not one rank."""
    found, compiler = mpi
    source = tmp_path / "whole.c"
    source.write_text("""
#include <mpi.h>
#include <paceline/paceline.h>
#include <stdio.h>
int main(int argc, char** argv) {
  paceline_comm* world;
  char text[3][1000] = {"", "", ""};
  if (paceline_init(&world)) snprintf(text[0], 1000, "%s", paceline_error());
  MPI_Init(&argc, &argv);
  if (paceline_init(&world)) return 3;
  int sum = 1;
  if (paceline_allreduce(world, &sum, &sum, 1, PACELINE_I32, PACELINE_SUM)) return 4;
  paceline_finalize(&world);
  MPI_Finalize();
  if (paceline_init(&world)) snprintf(text[1], 1000, "%s", paceline_error());
  if (paceline_init_mpi(NULL, &world)) snprintf(text[2], 1000, "%s", paceline_error());
  printf("%d|%s|%s|%s\\n", sum, text[0], text[1], text[2]);
}
""")
    lines = under_mpi(found, 2, compiled(source, compiler=compiler)).splitlines()
    assert len(lines) == 2
    for line in lines:
        size, before, after, again = line.split("|")
        assert size == "2"
        assert "is not initialised" in before and "MPI_Init" in before
        assert after.startswith("paceline_init: ") and "is finalised" in after
        assert again.startswith("paceline_init_mpi: ") and "is finalised" in again
