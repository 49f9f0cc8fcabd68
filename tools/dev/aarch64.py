"""64-bit Arm, on another machine: Debian's cross compiler builds the tests, and the emulator runs
them one case at a time, so that one which ends its process takes no other with it.

LACKS lists what the emulator cannot do: those cases may fail. A listed case that passes is
reported, so that the table does not outlive its reasons.
"""

import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from dev import build, prepare
from dev.process import ROOT, Failed, cores, end_group, environment, started

PRESET = "aarch64"
KINDS = ("unit", "process")
TOOLS = {"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", "qemu-aarch64": "qemu-user"}
EMULATOR = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
CASE_S = 90  # of one case, after which it has failed
DONE, SKIPPED = 0, 77  # exit statuses (tests/skip.hpp)

# kind, case, why it may fail under qemu-user 7.2
SECCOMP = "the emulator has no seccomp, with which the test forbids a system call"
LACKS = (
    ("unit", "a process that a debugger holds is not stopped, and neither is one that works",
     "the emulator has no ptrace"),
    ("unit", "litmus: a stamp that is taken for a call's is that call's, and whole",
     "a model with millions of executions, which says the same on any machine: over 90 s"),
    ("process", "a communicator of short calls takes less than 256 KiB of each rank",
     "what the emulator translates counts as the rank's own memory"),
    ("process", "a rank that cannot reach a peer's stage says what it lacks, on all ranks",
     "the emulator does not limit the addresses of what it runs"),
    ("process", "where there is no memory besides, stages are smaller on all ranks", SECCOMP),
    ("process", "where there is no room at all, ranks send messages", SECCOMP),
    ("process", "a later communicator that finds no room for its stage is an error on all its "
     "ranks", SECCOMP),
    ("process", "inboxes of many ranks keep to what shm_bytes says, or to what there is", SECCOMP),
    ("process", "canonical: bit for bit between processes, through every algorithm that claims it",
     "too much for the emulator beside other work: over 60 s"),
    ("process", "device peers: an array is not taken for one of its length that is gone",
     "an array is unmapped once another has its address, and the emulator gives no address twice"),
)


def test(left_s):
    """Build and run; the lines to keep. Failed for a case that fails and is not in LACKS."""
    end = time.monotonic() + left_s
    missing = lacking()
    if missing:
        return f"skipped: {', '.join(missing)} cannot be had: " + \
               f"apt-get install {' '.join(TOOLS[name] for name in missing)}"
    build.build(PRESET, targets=KINDS, limit_s=left_s)
    results = {}
    for kind in KINDS:
        results |= {(kind, name): how for name, how in run_all(kind, end).items()}
    return judge(results)


def lacking():
    """The TOOLS that are still missing after an attempt to install them."""
    for tool, package in TOOLS.items():
        if not shutil.which(tool):
            prepare.install_system(package)
    return [tool for tool in TOOLS if not shutil.which(tool)]


def run_all(kind, end):
    """Case -> its end: "" if right, "skipped", or what was wrong."""
    names = cases(kind)
    # Ranks of a process test are many, and wait for each other.
    with ThreadPoolExecutor(cores() if kind == "unit" else 1) as some:
        return dict(zip(names, some.map(lambda name: run_case(kind, name, end), names)))


def command(kind, *words):
    return [*EMULATOR, str(ROOT / f"build/{PRESET}/tests/{kind}"), *words]


def cases(kind):
    code, said = ended(command(kind, "--list-test-cases"), CASE_S)
    if code:
        raise Failed(f"{kind} does not list its cases: exit status {code}")
    return [line for line in said.splitlines()
            if line and not line.startswith(("[doctest]", "===="))]


def run_case(kind, name, end):
    left_s = end - time.monotonic()
    if left_s <= 0:
        return "not begun: the phase's time is over"
    limit_s = min(CASE_S, left_s)
    # A comma would part two names.
    code, said = ended(command(kind, f"--test-case={name.replace(',', '?')}"), limit_s)
    if code == SKIPPED:
        return "skipped"
    if code == DONE and not re.search(r"test cases: +0 ", said):
        return ""
    how = "no such case" if code == DONE else f"exit status {code}"
    if code is None:
        how = f"no end after {limit_s:.0f} s"
    print(f"{said[-2000:]}\n{kind}: {name}: {how}", flush=True)
    return how


def ended(words, limit_s):
    """(exit status, or None if it took too long; what was said). No rank outlives it."""
    with started(words, env=settings(), stdout=subprocess.PIPE,
                 stderr=subprocess.STDOUT) as child:
        try:
            said, code = child.communicate(timeout=limit_s)[0], child.returncode
        except subprocess.TimeoutExpired:
            end_group(child)
            said, code = child.communicate()[0], None
    return code, said


def settings():
    return environment(PACELINE_SHORT="1")


def judge(results):
    """The lines to keep of (kind, case) -> how it ended; Failed unless LACKS explains them."""
    known = {(kind, name) for kind, name, _ in LACKS}
    failed = {case for case, how in results.items() if how not in ("", "skipped")}
    lines = []
    for kind in KINDS:
        mine = [how for case, how in results.items() if case[0] == kind]
        may = sum(case[0] == kind and case in known for case in failed)
        lines.append(f"{kind}: {mine.count('')} of {len(mine)} passed, "
                     f"{mine.count('skipped')} skipped, {may} failed that may")
    lines += [f"passes, though the table says it may fail: {kind}: {name}"
              for kind, name in sorted(known) if results.get((kind, name)) == ""]
    lines += [f"no such case, though the table has it: {kind}: {name}"
              for kind, name in sorted(known - set(results))]
    wrong = [f"{kind}: {name} ({results[kind, name]})" for kind, name in sorted(failed - known)]
    if wrong:
        raise Failed(f"{len(wrong)} failed that should not: {'; '.join(wrong)}", "\n".join(lines))
    return "\n".join(lines)
