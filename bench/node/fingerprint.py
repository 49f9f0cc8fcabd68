"""Cost of the fingerprint in a call of ranks that share memory: python bench/node/fingerprint.py

The part of the library in which ranks show each other their calls is compiled as it is, and without
fingerprint, digest and comparison; both run with all ranks in one thread, so that nothing waits.
Prints the nanoseconds and instructions per call and rank that the fingerprint adds. Valgrind counts
the instructions, if it is installed.
"""

import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAUNCHES, CALLS, COUNTED = 20, 1_000_000, 20_000
LIMIT_S = 120

# Parts to cut: (file, first text, text behind the part, replacement).
WITHOUT = [
    ("shm_channel.cpp", "  // Each step is a bijection", "  shows_stamp_ = false;",
     "  (void)fingerprint;\n  (void)number;\n"),
    ("shm_channel.cpp", "  const CallStamp& stamp = stamps_[call % 4];\n  FlagLine",
     "}\n\nvoid ShmChannel",
     "(void)call;\n"),
    ("shm_channel.hpp", "    if (shown_in(at(position).stage.line(call)) == stamps_",
     "  }\n  // For calls whose positions",
     "    return (void)position, (void)call, std::nullopt;\n"),
]  # fmt: skip


def cut(text, first, last, instead):
    """The text with `instead` from `first`, which it must have once, up to the next `last`."""
    begin = text.index(first)
    end = text.index(last, begin)
    assert text.count(first) == 1, first
    return text[:begin] + instead + text[end:]


def compiled(folder, keeps):
    """The program, with or without fingerprints."""
    engine = folder / f"{keeps}/engine/shm"
    engine.mkdir(parents=True)
    for name in ("shm_channel.hpp", "shm_channel.cpp"):
        text = (ROOT / "src/engine/shm" / name).read_text()
        for file, *what in WITHOUT:
            if file == name and not keeps:
                text = cut(text, *what)
        (engine / name).write_text(text)
    program = folder / f"fingerprint-{keeps}"
    subprocess.run(
        ["c++", "-std=c++20", "-O3", "-DNDEBUG", f"-DKEEPS_FINGERPRINT={int(keeps)}",
         f"-I{engine.parents[1]}", f"-I{ROOT / 'src'}", Path(__file__).with_suffix(".cpp"),
         engine / "shm_channel.cpp", "-o", program], check=True, timeout=LIMIT_S,
    )  # fmt: skip
    return program


def said(*command):
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                         check=True, timeout=LIMIT_S)  # fmt: skip
    return run.stdout + run.stderr


def counted(program, ranks):
    """Instructions per call and rank, without those of the program's start."""
    both = [int(re.search(r"Collected : (\d+)", said(
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, calls, ranks,
    ))[1]) for calls in (COUNTED, 2 * COUNTED)]  # fmt: skip
    return (both[1] - both[0]) / COUNTED / ranks


def interval(values):
    """The 95 % confidence interval of the median, by bootstrap."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(values, k=len(values))) for _ in range(2000))
    return medians[50], medians[-51]


def main():
    with tempfile.TemporaryDirectory() as name:
        programs = {keeps: compiled(Path(name), keeps) for keeps in (True, False)}
        for ranks in map(int, sys.argv[1:] or ("2", "8")):
            added, whole = [], []
            for _ in range(LAUNCHES):
                times = {keeps: float(said(program, CALLS // ranks, ranks).split()[0])
                         for keeps, program in programs.items()}  # fmt: skip
                added.append(times[True] - times[False])
                whole.append(times[True])
            low, high = interval(added)
            print(f"{ranks} ranks: {statistics.median(added):.2f} ns a call ({low:.2f} to "
                  f"{high:.2f}; {LAUNCHES} pairs), of {statistics.median(whole):.1f} ns in which "
                  "ranks show and look", flush=True)  # fmt: skip
            try:
                with_it, without = (counted(programs[keeps], ranks) for keeps in (True, False))
                print(f"  {with_it - without:.1f} instructions of {with_it:.1f}", flush=True)
            except FileNotFoundError:
                print("  instructions: there is no valgrind")


if __name__ == "__main__":
    main()
