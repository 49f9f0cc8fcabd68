"""The tree as it is against an earlier commit, on one node: ./dev bench node --parent [COMMIT]

The commit's module is built in build/parent/<commit>. Launches of both alternate, each in processes
of its own, and a ratio compares the two medians of a pair of launches.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from paceline import _core
from paceline_bench.measure import report, statistics

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv/bin"
# As `python -m paceline`, which older commits do not know.
MAIN = "import sys; from paceline.cli import main; sys.exit(main())"
BUILD_LIMIT_S, LAUNCH_LIMIT_S = 1800, 600


def run(command, limit_s, **more):
    """The command's output as bytes; if it fails, raises an error with the output."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, timeout=limit_s,
                          capture_output=True, **more)
    if done.returncode:
        raise click.ClickException(f"{command[0]}: exit status {done.returncode}\n"
                                   + (done.stdout + done.stderr).decode(errors="replace")[-2000:])
    return done.stdout


def built(commit):
    """The folder of Python sources of a commit, with its module beside them."""
    name = run(["git", "rev-parse", "--verify", f"{commit}^{{commit}}"], 60).decode().strip()
    folder = ROOT / "build/parent" / name[:12]
    python = folder / "python"
    if not any((python / "paceline").glob("_core.*.so")):
        folder.mkdir(parents=True, exist_ok=True)
        run(["tar", "-x", "-f", "-", "-C", folder], 60, input=run(["git", "archive", name], 60))
        run([VENV / "cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja",
             "-DCMAKE_BUILD_TYPE=Release", "-DPACELINE_PYTHON=ON", "-DPACELINE_PCH=ON",
             f"-DPython_EXECUTABLE={VENV / 'python'}"], 300)
        run([VENV / "cmake", "--build", folder / "build", "--target", "_core", "-j",
             len(os.sched_getaffinity(0))], BUILD_LIMIT_S)
        run([VENV / "cmake", "--install", folder / "build", "--component", "python", "--prefix",
             python], 60)
    return python


def medians(python, collective, options):
    """{bytes: median us} of one launch of the package in a folder."""
    with tempfile.TemporaryDirectory(prefix="paceline-parent-") as folder:
        file = Path(folder) / "records.json"
        run([sys.executable, "-c", MAIN, "bench", collective, "--through", "native", "--launches",
             "1", "--json", file, *options], LAUNCH_LIMIT_S,
            env={**os.environ, "PYTHONPATH": str(python)})
        records = json.loads(file.read_text())["records"]
    return {record["bytes"]: record["time_us_median"] for record in records}


def paired(ours, parents, launches):
    """[(ours, the parent's)], each {bytes: us}, of functions that measure one launch; the side
    that is first changes with every launch."""
    found = []
    for launch in range(launches):
        turns = [ours, parents][::-1 if launch % 2 else 1]
        times = [measure() for measure in turns]
        found.append(tuple(times[::-1] if launch % 2 else times))
    return found


def judged(pairs):
    """{bytes: (ours us, the parent's us, verdict)}: medians of the launches."""
    found = {}
    for nbytes in sorted(pairs[0][0]):
        ours, parents = ([[side[nbytes]] for side in sides] for sides in zip(*pairs))
        found[nbytes] = (statistics.summarize(ours).median, statistics.summarize(parents).median,
                         statistics.judge(statistics.ratios(ours, parents)))
    return found


def table(title, found):
    """A row for each size."""
    out = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("size", "now us", "parent us", "now / parent", "interval"):
        out.add_column(heading, justify="right", no_wrap=True)
    out.add_column("verdict", no_wrap=True)
    for nbytes, (ours, parents, verdict) in found.items():
        out.add_row(_core.human_bytes(nbytes), report.us(ours / 1e6), report.us(parents / 1e6),
                    f"{verdict.ratio:.3f}", f"{verdict.low:.3f} to {verdict.high:.3f}",
                    Text(verdict.word, report.COLOURS.get(verdict.word, "")))
    return out


def compare(commit, collectives, launches, options, out):
    """Measures and shows; True if nothing is slower."""
    if launches < statistics.LEAST_LAUNCHES:
        raise click.UsageError(f"--parent gives verdicts, which take at least "
                               f"{statistics.LEAST_LAUNCHES} launches; --launches is {launches}.")
    before = built(commit)
    good = True
    for collective in collectives:
        pairs = paired(lambda: medians(ROOT / "python", collective, options),
                       lambda: medians(before, collective, options), launches)
        found = judged(pairs)
        out.print(table(f"{collective}, against {before.parent.name}", found))
        good &= all(verdict.word != "slower" for _, _, verdict in found.values())
    return good
