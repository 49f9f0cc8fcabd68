"""`paceline doctor`: checks this machine and installation, and says what to do."""

import ctypes
import errno
import os
import sys
import time
from dataclasses import dataclass
from importlib.metadata import entry_points

import click
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from paceline import _core, busy, record
from paceline import provenance
from paceline.cli import attach, common, options
from paceline.cli.common import Number, console
from paceline.errors import Error
from paceline.units import human_time

MARKS = {"ok": ("ok", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}
LEAST_FREE = 1 << 20
LOOK_S = 0.5  # at other programs
PIDFD_OPEN = 434  # the same number on every architecture


@dataclass
class Finding:
    """One line of the report: a state, and advice if it is not ok."""

    subject: str
    state: str  # ok, warn, fail
    text: str
    advice: str = ""


def core(ranks):
    """Checks that the compiled core loads; reports the kernels that it uses."""
    version = provenance.version_of("paceline") or "not installed"
    targets = _core.kernel_targets()
    best = targets[-1]
    if best == "portable" and os.uname().machine in ("x86_64", "AMD64"):
        return Finding("core", "warn", f"paceline {version}, portable kernels only",
                       "This processor has no AVX2; sums run at a fraction of the speed.")
    return Finding("core", "ok", f"paceline {version}, kernels {best}, Python "
                   f"{sys.version.split()[0]}")


def cores(ranks):
    """Checks that there are enough cores for the ranks."""
    allowed = len(os.sched_getaffinity(0))
    text = f"{allowed} of {os.cpu_count()} allowed"
    if allowed < ranks:
        return Finding("cores", "warn", f"{text}; {ranks} ranks take turns",
                       f"Start at most {allowed} ranks, or allow more cores: waiting ranks yield "
                       "and sleep, but small messages take many times as long.")
    return Finding("cores", "ok", f"{text}, for {ranks} ranks")


def load(ranks):
    """Measures for a moment if other programs keep the cores busy."""
    watch = busy.Watch()
    time.sleep(LOOK_S)
    others = watch.cores()
    text = f"other programs use {others:.1f} of {os.cpu_count()} cores now"
    if busy.leaves_too_little(others, ranks):
        return Finding("load", "warn", f"{text}; {ranks} ranks come on top",
                       "This machine is busy: other programs take cores from the ranks, so that "
                       "collectives take longer, and the times below say little.")
    return Finding("load", "ok", text)


def shared_memory(ranks):
    """Checks the free space in the folder of shared memory."""
    folder = str(_core.option("shm_dir"))
    wanted = _core.option("shm_bytes")
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return Finding("shared memory", "fail", f"{folder}: {error.strerror}",
                       "Mount a tmpfs there, or set PACELINE_SHM_DIR to a folder in memory.")
    free, size = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    text = f"{folder}: {_core.human_bytes(free)} free of {_core.human_bytes(size)}"
    if free < LEAST_FREE:
        return Finding("shared memory", "fail", text,
                       "Delete files there (ls -l shows their owners), or set PACELINE_SHM_DIR.")
    if free < wanted:
        return Finding("shared memory", "warn", f"{text}; shm_bytes is {_core.human_bytes(wanted)}",
                       "Enlarge it (docker run --shm-size=1g), or set PACELINE_SHM_BYTES lower.")
    return Finding("shared memory", "ok", text)


def unnamed_files(ranks):
    """Checks that files without a name can be made, and opened by others through /proc."""
    folder, advice = str(_core.option("shm_dir")), ""
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    except OSError as error:
        advice = "Set PACELINE_SHM_DIR to a folder on tmpfs; O_TMPFILE needs one."
        return Finding("unnamed files", "fail", f"{folder}: O_TMPFILE: {error.strerror}", advice)
    try:
        os.close(os.open(f"/proc/{os.getpid()}/fd/{file}", os.O_RDWR))
    except OSError as error:
        return Finding("unnamed files", "fail", f"/proc/<pid>/fd: {error.strerror}",
                       "Mount /proc; ranks open each other's memory through it.")
    finally:
        os.close(file)
    return Finding("unnamed files", "ok", "O_TMPFILE, opened through /proc/<pid>/fd")


def huge_pages(ranks):
    """Checks if the system grants huge pages for shared memory on request."""
    asked = _core.option("huge_pages") == "on"
    trouble = _core.trouble_with_huge_pages(str(_core.option("shm_dir")))
    if trouble:
        return Finding("huge pages", "warn" if asked else "ok", f"not for shared memory: {trouble}",
                       "They need Linux 6.1 with transparent huge pages, and free memory in one "
                       "piece; without them PACELINE_HUGE_PAGES=on does nothing." if asked else "")
    how = "in use" if asked else "granted to PACELINE_HUGE_PAGES=on"
    return Finding("huge pages", "ok", f"for shared arrays from 2 MiB on: {how}")


def machine(ranks):
    """Reports the machine that choices between nodes assume, and its source."""
    asked = _core.option("machine")
    try:
        assumed = _core.assumed_machine()
    except ValueError as error:
        return Finding("machine", "fail", str(error), "Correct or unset the variable.")
    if asked == "auto":
        return kept_figures(_core.machine_file())
    text = f"between nodes {assumed}"
    if asked == "probe":
        text = ("between nodes measured at every start (PACELINE_MACHINE=probe); where that "
                f"fails, {assumed}")
    elif asked == "usual":
        text += "; PACELINE_MACHINE=auto measures their links at the first start"
    return Finding("machine", "ok", text)


def kept_figures(file):
    """Reports the figures of the machine file, and checks that a start could write it."""
    if file["trouble"]:
        return Finding("machine", "warn", f"between nodes every start measures: {file['trouble']}",
                       "Remove the file, or set PACELINE_MACHINE_DIR to a folder of yours.")
    folder = os.path.dirname(file["path"])
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if not os.access(folder, os.W_OK):
        return Finding("machine", "warn", f"between nodes every start measures: {folder} cannot be "
                       "written", "Set PACELINE_MACHINE_DIR to a folder of yours.")
    return Finding("machine", "ok", f"between nodes {common.kept_figures(file)}")


def single_copies(ranks):
    """Checks if ranks can copy straight from one's memory into another's."""
    trouble = attach.trouble()
    text = ("broadcasts from 1 MiB on between 2 ranks, by cross-memory attach" if not trouble
            else f"none; no cross-memory attach: {trouble}")
    return Finding("single copies", "ok", text)


def process_handles(ranks):
    """Checks pidfd_open, by which a dead peer is noticed at once."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    handle = call(PIDFD_OPEN, os.getpid(), 0)
    if handle >= 0:
        os.close(handle)
        return Finding("dead peers", "ok", "pidfd_open: noticed at once")
    return Finding("dead peers", "warn", f"pidfd_open: {errno.errorcode[ctypes.get_errno()]}",
                   "Linux 5.3 or newer has it; without it ranks look for a dead peer in /proc.")


def torch(ranks):
    """Checks that torch is a known version, and that it knows Paceline."""
    found = provenance.version_of("torch")
    if found is None:
        return Finding("torch", "ok", "not installed: paceline.torch is not available")
    oldest, newest = provenance.TORCH
    if provenance.minor(found) and provenance.minor(found) < provenance.minor(oldest):
        return Finding("torch", "fail", f"torch {found} is older than {oldest}",
                       f"pip install 'torch>={oldest}'")
    try:
        import torch.distributed as dist

        registered = dist.is_available() and "PACELINE" in dist.Backend._plugins
    except Exception as error:  # whatever a broken torch raises
        return Finding("torch", "fail", f"torch {found}: {error!r}", "Install torch again.")
    if registered and provenance.minor(found) > provenance.minor(newest):
        return Finding("torch", "warn", f"torch {found} is newer than {newest}",
                       f"The backend was tested with {oldest} to {newest}; report what fails.")
    if registered:
        return Finding("torch", "ok", f"torch {found}, backend 'paceline' registered")
    if not any(e.name == "paceline" for e in entry_points(group="torch.backends")):
        return Finding("torch", "fail", f"torch {found} does not know the backend 'paceline'",
                       "Install the package (pip install .); the sources alone have no entry "
                       "point.")
    return Finding("torch", "warn", f"torch {found} has not loaded the backend 'paceline'",
                   "Unset TORCH_DEVICE_BACKEND_AUTOLOAD=0, or import paceline.torch.")


def mpi(ranks):
    """Reports the MPI that Paceline would load under mpiexec, and between nodes."""
    from paceline import mpi as chosen

    try:
        which, version = chosen.describe()
    except Error as error:
        return Finding("MPI", "fail", str(error), "Correct or unset PACELINE_MPI and "
                       "MPI4PY_LIBMPI; without them Paceline looks for an MPI.")
    if not which:
        return Finding("MPI", "ok", "none found; ranks on one machine need none",
                       "For several machines: pip install 'paceline[mpi]', or "
                       "PACELINE_MPI=.../libmpi.so.")
    return Finding("MPI", "ok", f"{version}: {which}", _advice(version))


def _advice(version):
    """Advice for a faster MPI, where only its launcher can set what it takes."""
    room = "FI_OFI_RXM_BUFFER_SIZE"
    if "Intel" not in version or room in os.environ:
        return ""
    return (f"Between nodes, mpiexec -genv {room} 17408 puts 16 KiB and Paceline's header "
            "into one message; do so if I_MPI_DEBUG=3 names a provider with ofi_rxm.")


def devices(ranks):
    """Reports CUDA devices, which of them reach each other, and what is missing."""
    from paceline.cli import gpus

    return Finding("devices", *gpus.finding())


def variables(ranks):
    """Reports options with wrong values, and variables that name no option."""
    wrong = [row["error"] for row in _core.options() if row["error"]]
    if wrong:
        return Finding("options", "fail", wrong[0], "Correct or unset the variable.")
    unknown = options.misspelt()
    if unknown:
        return Finding("options", "warn", " ".join(unknown), "`paceline options` lists the names.")
    given = sum(row["source"] == "environment" for row in _core.options())
    return Finding("options", "ok", f"{given} set, the others at their defaults")


def self_test(ranks):
    """Times and checks an allreduce on this machine."""
    from paceline import trial
    from paceline.on_ranks import Failed

    try:
        times = trial.times("allreduce", [4, 1 << 20], ranks)
    except Failed as error:
        return Finding("self-test", "fail", "an allreduce failed", str(error))
    return Finding("self-test", "ok", f"allreduce on {ranks} ranks: 4 B in "
                   f"{human_time(times[0])}, 1 MiB in {human_time(times[1])}")


CHECKS = (core, cores, load, shared_memory, unnamed_files, huge_pages, single_copies,
          process_handles, torch, mpi, machine, devices, variables, self_test)


def finding_of(check, ranks):
    """The check's finding; an error is a finding too, so that the other checks still run."""
    try:
        return check(ranks)
    except Error as error:
        return Finding(check.__name__.replace("_", " "), "fail", str(error))


def compare_records(folder):
    """Prints what a comparison of the flight records in a folder finds."""
    out = console()
    records = record.read(folder)
    for ranks, reason in record.reasons(records):
        out.print(Text(f"{record.ranks_of(ranks)}: {reason}"), soft_wrap=True)
    for sentence in record.findings(records):
        out.print(Text(f"- {sentence}"), soft_wrap=True)
    return 0


@click.command("doctor")
@click.option("--ranks", "-n", default=2, show_default=True, type=Number(1, 256),
              help="Number of ranks to check this machine for.")
@click.option("--record", "folder", metavar="DIR",
              help="Compare the flight records in this folder instead.")
def command(ranks, folder):
    """Check this machine and installation for problems.

    Each line is ok, a warning or a failure, with advice. The exit status is 1 if there is a
    failure.

    With --record it compares the flight records that ranks wrote to PACELINE_RECORD_DIR. It shows
    which ranks made another call, which are missing, and which wait for which.

    \b
    paceline doctor -n 8
    paceline doctor --record records
    """
    if folder:
        return compare_records(folder)
    out = console()
    out.print(Text(provenance.describe_machine()), soft_wrap=True)
    worst = "ok"
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for check in CHECKS:
        finding = finding_of(check, ranks)
        word, style = MARKS[finding.state]
        text = Text(finding.text)
        if finding.advice:
            text.append(f"\n{finding.advice}", style)
        table.add_row(Text(word, style), finding.subject, text)
        if finding.state == "fail" or worst == "ok":
            worst = finding.state
    out.print(table)
    if worst != "ok":
        out.print(escape({"warn": "It works, with the warnings above.",
                          "fail": "Correct the failures above first."}[worst]))
    return 1 if worst == "fail" else 0


