"""The core in a simulator that is not ours: SimGrid SMPI and `paceline simulate` agree on times.

One static program (tests/smpi/timings.cpp) runs schedules by the engine over the mpi transport,
with every rank a simulated process, single-threaded; time passes in MPI calls and where the program
says so. The network model is plain: latency plus bytes over bandwidth, without SMPI's own factors.
"""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from length import each, in_long

from paceline import _core

ROOT = Path(__file__).parents[2]
SMPI = ROOT / "tests/smpi"
CORE = ROOT / "build/release/libpaceline_core.a"
MACHINE = "alpha_us=1.5,gbit_per_s=10,reduce_gbyte_per_s=10,copy_gbyte_per_s=0"
GAMMA = 1e-10  # seconds per byte: the same
WITHIN = 0.05
COUNT = 4_000_000  # float32: blocks of some 100 us and more, beside which a header is nothing
LIMIT_S = 200

# collective, algorithm, pipeline segments, window, blocks, in step. SMPI shares a link among all
# messages under way: with a window of 4, four segments arrive at once, and no sum hides behind
# another's message (16 ranks: 8 % longer than in our simulator, which sends one at a time).
CASES = (
    ("allreduce", "ring", 1, 1, 0, 0), ("allreduce", "ring", 4, 2, 0, 0),
    ("allreduce", "circulant", 1, 1, 0, 0),
    ("broadcast", "chain", 8, 4, 0, 0), ("broadcast", "circulant", 1, 1, 8, 1),
)  # fmt: skip

# Messages cost what the model says, and nothing else does. Polling takes next to no time.
SETTINGS = {
    "network/model": "CM02", "network/TCP-gamma": "0", "network/crosstraffic": "0",
    "network/latency-factor": "1", "network/bandwidth-factor": "1", "network/weight-S": "0",
    "smpi/simulate-computation": "no", "smpi/async-small-thresh": "0",
    "smpi/send-is-detached-thresh": "65536", "smpi/os": "0:0:0", "smpi/or": "0:0:0",
    "smpi/ois": "0:0:0", "smpi/test": "1e-8",
}  # fmt: skip

pytestmark = [pytest.mark.ranks, pytest.mark.skipif(
    not (shutil.which("smpicxx") and shutil.which("smpirun")),
    reason="SimGrid is not installed (Debian: libsimgrid-dev)",
)]  # fmt: skip


@functools.cache
def program(folder):
    """The test program, linked with the core as it was built for everybody."""
    path = folder / "timings"
    command = ["smpicxx", "-std=c++20", "-O1", f"-I{ROOT / 'src'}", SMPI / "timings.cpp", CORE,
               "-lpthread", "-lrt", "-ldl", "-o", path]  # fmt: skip
    subprocess.run(command, check=True, timeout=LIMIT_S, capture_output=True)
    return path


def simulated_by_smpi(path, ranks, cases):
    """{case: seconds}, by SMPI's clock."""
    hosts = path.with_name("hosts")
    hosts.write_text("".join(f"host{i}\n" for i in range(16)))
    words = ["/".join(map(str, (c[0], c[1], COUNT, *c[2:]))) for c in cases]
    command = ["smpirun", "-np", ranks, "-platform", SMPI / "platform.xml", "-hostfile", hosts,
               "--log=root.thresh:error", *(f"--cfg={k}:{v}" for k, v in SETTINGS.items()),
               path, GAMMA, *words]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          timeout=LIMIT_S, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    said = dict(line.rsplit(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    return {case: float(said[word]) for case, word in zip(cases, words)}


def simulated_by_us(ranks, case, machine=MACHINE):
    collective, algorithm, segments, window, blocks, in_step = case
    world = _core.World(collective, algorithm, ranks, segments=segments,
                        window=window, in_place=collective == "allreduce", blocks=blocks,
                        in_step=bool(in_step))
    return world.simulate(COUNT, 4, machine, []).span_s


def far_apart(ranks, smpi, machine=MACHINE):
    """The cases whose two times differ by more than WITHIN, with the ratio."""
    ratios = {case: seconds / simulated_by_us(ranks, case, machine)
              for case, seconds in smpi.items()}  # fmt: skip
    return {case: ratio for case, ratio in ratios.items() if abs(ratio - 1) > WITHIN}


@in_long
@each("ranks", [8], [9, 16])
def test_two_simulators_agree(tmp_path_factory, ranks):
    folder = tmp_path_factory.getbasetemp()
    smpi = simulated_by_smpi(program(folder), ranks, CASES)
    assert len(smpi) == len(CASES) and not far_apart(ranks, smpi)
    # On another machine they would not: every case can tell.
    slower = MACHINE.replace("gbit_per_s=10", "gbit_per_s=9", 1)
    assert len(far_apart(ranks, smpi, slower)) == len(CASES)
