"""./dev fuzz: random programs of collectives, on ranks of every kind, against a slow reference.

  --on loop     ranks in one thread by a clock of their own, under late and overtaking messages
  --on shm      processes that share memory
  --on mpi      processes of an MPI: through it, and past it where they share memory
  --on preload  a C program of MPI under the drop-in library
  --on points   torch's send and recv, over shared memory, or over an MPI that --mpi names
A failure is made smaller, and ends with the one command that repeats it.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import mpis

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "build/release/tests/fuzz"
TAPE = ROOT / "tests/preload/tape.c"
POINTS = ROOT / "tests/python/ranks/random_points.py"
PACELINE = Path(sys.executable).with_name("paceline")
BATCH = 50  # programs that share the start of a world
LIMIT_S = 110
SHRINK_S = 60


@dataclass(frozen=True)
class Case:
    """What is played: programs from a seed on, and where."""

    on: str
    seed: int
    programs: int = 1
    ranks: int = 0  # 0: as the seed says on loop, else 3
    mpi: str = ""  # by name; empty: the first one
    threads: bool = False
    only_mpi: bool = False
    keep: tuple[int, ...] = ()  # calls; empty: all
    more: tuple[str, ...] = ()  # options that only tests know

    def options(self):
        """For the program `fuzz`."""
        words = ["--seed", self.seed, "--programs", self.programs, "--ranks", self.ranks]
        words += ["--keep", ",".join(map(str, self.keep))] if self.keep else []
        words += ["--threads"] * self.threads + ["--only-mpi"] * self.only_mpi
        return [*map(str, words), *self.more]

    def command(self):
        """What a person types."""
        words = ["./dev fuzz", "--on", self.on, "--seed", str(self.seed)]
        words += ["--programs", str(self.programs)] if self.programs > 1 else []
        words += ["--ranks", str(self.ranks)] if self.ranks else []
        words += ["--mpi", self.mpi] if self.mpi else []
        words += ["--threads"] * self.threads + ["--only-mpi"] * self.only_mpi
        return " ".join([*words, *(["--keep", ",".join(map(str, self.keep))] if self.keep else [])])


def call(words, **env):
    """Status and output; ended after the limit."""
    try:
        done = subprocess.run(
            list(map(str, words)), env={**os.environ, "PACELINE_MACHINE": "usual", **env},
            text=True, timeout=LIMIT_S,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        return 1, f"no end after {LIMIT_S} s\n{late.output or ''}"
    return done.returncode, done.stdout


def mpi_of(case):
    found = [mpi for mpi in mpis.found() if case.mpi in ("", mpi.name)]
    if not found:
        sys.exit(f"fuzz: no MPI {case.mpi} here (./dev mpi)")
    return found[0]


def mpicc_of(mpi):
    mpiexec = Path(mpi.mpiexec[0])
    return mpiexec.with_name(mpiexec.name.replace("mpiexec", "mpicc"))


def play(case, library=None):
    """Status and output of a case. `library`: preloaded instead of the drop-in library."""
    if case.on in ("loop", "shm"):
        return call([FUZZ, "play", case.on, *case.options()])
    if case.on == "points":
        return play_points(case)
    mpi, ranks = mpi_of(case), case.ranks or 3
    if case.on == "mpi":
        words = (FUZZ, "play", "mpi", "--library", mpi.library, *case.options())
        return call(mpi.command(ranks, *words))
    return play_tape(replace(case, ranks=ranks), mpi, library)


def play_points(case):
    words = [sys.executable, POINTS, case.seed, case.programs]
    only = {"PACELINE_TRANSPORT": "mpi"} if case.only_mpi else {}
    if not (case.mpi or case.only_mpi):
        return call([PACELINE, "run", "-n", case.ranks or 3, *words])
    mpi = mpi_of(case)
    return call(mpi.command(case.ranks or 3, *words), **mpi.environment(), **only)


def play_tape(case, mpi, library):
    from paceline.cli.preload import library_for

    library = library or library_for(str(mpicc_of(mpi)))
    with tempfile.TemporaryDirectory(prefix="paceline-fuzz-") as folder:
        program = Path(folder) / "tape"
        flags = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")
        for words in ([mpicc_of(mpi), *flags, TAPE, "-o", program],
                      [FUZZ, "tapes", "preload", "--folder", folder, *case.options()]):  # fmt: skip
            status, said = call(words)
            if status:
                return status, said
        status, said = call(
            mpi.command(case.ranks, program, folder),
            LD_PRELOAD=str(library), PACELINE_PRELOAD_SUMMARY="on",
        )  # fmt: skip
        judged, words = call([FUZZ, "judge", "preload", "--folder", folder, *case.options()])
        if not (status or judged or re.search("^by Paceline ", said, re.MULTILINE)):
            return 1, f"the drop-in library has served nothing: {library}\n{words}{said}"
        return status or judged, words + said


def shrunk(case, library=None):
    """The case of one program without the calls that its failure does not need."""
    _, text = call([FUZZ, "print", case.on, *case.options()])
    kept = [int(n) for n in re.findall(r"^call (\d+):", text, re.MULTILINE)]
    begun = time.monotonic()
    for one in reversed(kept):
        fewer = tuple(n for n in kept if n != one)
        if fewer and time.monotonic() - begun < SHRINK_S:
            if play(replace(case, keep=fewer), library)[0]:
                kept = list(fewer)
    return replace(case, keep=tuple(kept))


def explain(case, said, library=None):
    """Of a case that has failed: by which programs, made smaller where they fail alone."""
    seeds = re.findall(r"seed (\d+):", said)
    alone = replace(case, seed=int(seeds[0]), programs=1) if seeds else case
    if alone.programs > 1 or not play(alone, library)[0]:
        return f"{said}\nNot by a single program. Again: {case.command()}"
    if alone.on == "points":  # its messages depend on each other: none is left out
        return f"{said}\nAgain: {alone.command()}"
    if not alone.keep:
        alone = shrunk(alone, library)
    _, text = call([FUZZ, "print", alone.on, *alone.options()])
    return f"{play(alone, library)[1]}\n{text}\nAgain: {alone.command()}"


def read(words):
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("./dev fuzz", description=__doc__, formatter_class=layout)
    parser.add_argument("--on", choices=("loop", "shm", "mpi", "preload", "points"), default="loop")
    parser.add_argument("--seed", type=int, help="of the first program; else by the time")
    parser.add_argument("--programs", type=int, help="1 with --seed, else 100")
    parser.add_argument("--seconds", type=float, default=0, help="go on for so long")
    parser.add_argument("--ranks", type=int, default=0)
    parser.add_argument("--mpi", default="", help=", ".join(mpi.name for mpi in mpis.found()))
    parser.add_argument("--threads", action="store_true", help="progress by threads")
    parser.add_argument("--only-mpi", action="store_true", help="no shared memory")
    parser.add_argument("--keep", default="", metavar="CALLS", help="these calls alone")
    return parser.parse_args(words)


def main(words, more=()):
    asked = read(words)
    seed = int(time.time()) * 1000 if asked.seed is None else asked.seed
    left = asked.programs or (100 if asked.seed is None or asked.seconds else 1)
    keep = tuple(int(n) for n in asked.keep.split(",") if n)
    begun = time.monotonic()
    while left > 0 if not asked.seconds else time.monotonic() - begun < asked.seconds:
        programs = BATCH if asked.seconds else min(BATCH, left)
        case = Case(asked.on, seed, programs, asked.ranks, asked.mpi, asked.threads,
                    asked.only_mpi, keep, more)  # fmt: skip
        status, said = play(case)
        if status:
            print(explain(case, said), flush=True)
            return 1
        print(said.splitlines()[-1] if asked.on != "preload" else said.splitlines()[0], flush=True)
        seed, left = seed + programs, left - programs
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
