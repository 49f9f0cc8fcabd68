"""`paceline train replay`: bounds with perfect links, records, ranks, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import time
import weakref
from dataclasses import asdict
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner
from launched import RANKS, forking
from length import in_long, param
from paceline.errors import UsageError
from paceline.kvstore import records
from paceline_bench.cli.train import command

torch = pytest.importorskip("torch")
from paceline_bench.networks import models  # noqa: E402
from paceline_bench.train import libraries, pace, perfect, recording, replay  # noqa: E402

pytestmark = pytest.mark.ranks

RUN = "import sys; from paceline.cli import main; sys.exit(main(sys.argv[1:]))"
RECORD = {"forward_s": 1.0, "backward_s": 2.0,
          "keys": [["a", 250, 0.0, 2.0], ["b", 250, 0.5, 1.0]]}
NET = {"forward_s": 1.0, "backward_s": 2.0, "keys": [
    [f"k{i}", 20_000 * (1 + i % 3), i / 10, 2.0 - i // 2 / 2.5] for i in range(10)]}  # in pairs


def cost_s(nbytes):
    """A second for each key of RECORD."""
    return nbytes / 1000


# --- who sums the buckets -------------------------------------------------------------------------


@pytest.mark.parametrize("kind, calls", [(libraries.NonBlocking, 1), (libraries.Parts, 4)])
def test_non_blocking_calls_of_an_mpi_are_not_in_place(kind, calls):
    """Where Open MPI would take a binomial tree. What MPI reads is there until all is done."""
    inputs, mpi = [], mock.Mock()

    def begin(given, summed):
        assert np.array_equal(given, summed) and not np.shares_memory(given, bucket)
        assert np.shares_memory(summed, bucket)
        inputs.append(weakref.ref(given))

    mpi.COMM_WORLD.Iallreduce = begin
    bucket = np.arange(8, dtype="float32")
    library = kind(mpi)
    library.start(bucket)
    assert len(inputs) == calls and all(one() is not None for one in inputs)
    library.finish()
    assert all(one() is None for one in inputs)


# --- perfect links --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode, order, first, second", [
    # Both gradients are there at 3. a is needed first; b may come while a's layer goes on.
    ("funnel", "numbered", 5.0, 10.0),
    ("depcha", "numbered", 5.0, 9.5),
    # b from 2 on, a from 3 on.
    ("funnel", "ready", 4.0, 8.0),
    ("depcha", "ready", 4.0, 8.0),
    ("auto", "ready", 4.0, 8.0),
    ("ddp", "ready", 5.0, 10.0),  # one bucket
])
def test_steps_with_perfect_links(mode, order, first, second):
    step = perfect.step_of(RECORD, 3.0)
    assert perfect.seconds(step, mode, order, cost_s, 1) == pytest.approx(first)
    assert 2 * perfect.seconds(step, mode, order, cost_s, 2) == pytest.approx(second)


def test_what_is_urgent_goes_first():
    step = perfect.Step((1000, 3000), (0.0, 0.5), (1.5, 1.0), 1.0, 2.0)
    # Key 1 begins at 1.0 and is held up by key 0 from 1.5 to 2.5.
    assert perfect.urgent(step, step.ready_s, cost_s) == [2.5, 5.0]
    there, _ = perfect.chained(step, [[1], [0]], step.ready_s, cost_s, 0.0)
    assert there == [5.0, 4.0]


@pytest.mark.parametrize("name", ["resnet50", "inception-bn", "alexnet", "vgg11"])
@pytest.mark.parametrize("ratio", [1, 3])
def test_no_way_beats_what_is_urgent_first(name, ratio):
    record = records.read(name)
    step = perfect.step_of(record, ratio * sum(map(cost_s, (4 * row[1] for row in record["keys"]))))
    least = perfect.least_s(step, cost_s)
    best = perfect.seconds(step, "auto", "ready", cost_s)
    for mode in perfect.MODES:
        for order in perfect.ORDERS:
            assert perfect.seconds(step, mode, order, cost_s) >= best * 0.999999 >= least * 0.99999
    funnel, depcha = (perfect.seconds(step, mode, "numbered", cost_s)
                      for mode in ("funnel", "depcha"))
    assert funnel > 1.1 * depcha


def test_buckets_are_those_of_ddp():
    step = perfect.step_of(records.read("resnet50"), 1.0)
    sizes = [sum(step.bytes[key] for key in keys) for keys in perfect.buckets(step)]
    limits = [perfect.FIRST_BYTES, perfect.BUCKET_BYTES]
    tensors = [torch.empty(step.bytes[key] // 4) for key in step.as_ready]
    theirs, _ = torch.distributed._compute_bucket_assignment_by_size(
        tensors, limits, [False] * len(tensors))
    assert sizes == [sum(4 * tensors[i].numel() for i in bucket) for bucket in theirs]


def test_the_simulator_is_slower_than_perfect_links():
    step = perfect.step_of(records.read("resnet110"), 0.1)
    machine = "alpha_us=20,gbit_per_s=1,reduce_gbyte_per_s=4"
    model = replay.Simulated(4, 4, machine)
    for way in ("funnel:numbered", "depcha:ready", "auto:ready", "ddp:paceline"):
        ideal = perfect.seconds(step, *replay.mode_and_order(way), lambda n: 1.5 * n * 8 / 1e9)
        assert model.seconds(step, way, 5) > ideal * 0.999
    assert model.seconds(step, "auto:ready", 5) < model.seconds(step, "depcha:ready", 5)


LAB = "alpha_us=60,gbit_per_s=0.2,reduce_gbyte_per_s=4"


def perfect_s(nbytes):
    """An allreduce between the lab's four nodes, by their links alone."""
    return 1.5 * nbytes * 8 / 0.2e9


@pytest.mark.parametrize("name, most", [
    ("resnet50", 1.1), ("inception-bn", 1.1), ("alexnet", 1.1),
    ("vgg11", 1.19),  # whose largest tensor is needed soon after it is ready
])
def test_auto_keeps_links_and_computing_busy(name, most):
    """In steady state, simulated; and nowhere is it slower than depcha or DDP's buckets."""
    record, model = records.read(name), replay.Simulated(4, 4, LAB)
    whole = perfect_s(sum(4 * row[1] for row in record["keys"]))
    for ratio in (1, 3):
        step = perfect.step_of(record, ratio * whole)
        least = perfect.least_s(step, perfect_s)
        six, twelve = (n * model.seconds(step, "auto:ready", n) for n in (6, 12))
        assert (twelve - six) / 6 <= most * least
        others = [model.seconds(step, way, 5)
                  for way in ("depcha:numbered", "depcha:ready", "ddp:paceline")]
        assert model.seconds(step, "auto:ready", 5) <= 1.001 * min(others)
        if ratio == 1:
            assert 1.1 * model.seconds(step, "auto:ready", 5) < others[2]


# --- records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(file.stem for file in records.RECORDED.glob("*.json")))
def test_records_are_of_the_published_shapes(name):
    with torch.device("meta"):
        sizes = {key: weights.numel() for key, weights in models.made(name).named_parameters()}
    record = records.read(name)
    assert {row[0]: row[1] for row in record["keys"]} == sizes
    assert all(0 <= row[2] <= record["forward_s"] and 0 < row[3] <= record["backward_s"]
               for row in record["keys"])


def test_a_pass_is_recorded():
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(2 * 36, 64), nn.Linear(64, 10))
    found = recording.recorded(net, torch.randn(4, 1, 8, 8), torch.randint(10, (4,)), 3)
    step = perfect.step_of(found, 1.0)
    assert [key // 2 for key in step.as_needed] == [0, 0, 1, 1, 2, 2]
    assert [key // 2 for key in step.as_ready] == [2, 2, 1, 1, 0, 0]
    assert step.compute_s == pytest.approx(1.0)


@pytest.mark.parametrize("content, why", [
    ({"forward_s": 1.0, "backward_s": 1.0, "keys": [["a", 1, 0.0]]}, "keys holds"),
    ({"forward_s": 1.0, "backward_s": 1.0, "keys": []}, "it has no keys"),
    ({"forward_s": 1.0, "keys": []}, "it has no backward_s"),
])  # fmt: skip
def test_damaged_records_are_refused(content, why, tmp_path):
    (tmp_path / "r.json").write_text(json.dumps(content))
    with pytest.raises(UsageError, match=why):
        records.read(str(tmp_path / "r.json"))


# --- ranks ----------------------------------------------------------------------------------------


def launched(ways, module="paceline_bench.train.replaying", compute_s=0.2, paces=None,
             **environment):
    """(times, notes) of a launch of two ranks here."""
    job = replay.Job(2, None, with_mpi=False)
    steps = {"net": perfect.step_of(NET, compute_s)}
    spec = {"models": {"net": asdict(steps["net"])}, "ways": ways, "warm_up": 2,
            "steps_in_a_row": 3, **asdict(paces or pace.Pace())}
    with forking(), mock.patch.dict(os.environ, PYTHONPATH=str(RANKS), **environment):
        ranks = job.launch(spec, 10, module=module)
    return replay.judged(ranks, steps, job, 3)


def test_every_way_exchanges():
    ways = [way for way in (*replay.WAYS, *replay.NAMED) if "mpi" not in way]
    times, notes = launched(ways, compute_s=0.1)
    assert notes == [] and list(times["net"]) == ways
    assert min(times["net"].values()) >= 0.095


@in_long
def test_a_slow_rank_holds_up_every_way():
    ways = ["funnel:numbered", "depcha:ready", "auto:ready", "ddp:paceline", "horovod:paceline"]
    times, notes = launched(ways, paces=pace.Pace(((1, 2.0),), 0.1))
    assert notes == [] and list(times["net"]) == ways
    assert min(times["net"].values()) >= 0.39   # 0.2 s, of rank 1 twice as long


def test_paces_are_the_same_for_all_and_differ_from_step_to_step():
    paces = pace.parse("1,3:1.5", 0.2, 4)
    assert paces.slowest == 1.5 and pace.parse("", 0.0, 1).factor(0, 7) == 1
    for rank, least in enumerate((1.0, 1.5, 1.0, 1.5)):
        factors = [paces.factor(rank, number) for number in range(50)]
        assert factors == [paces.factor(rank, number) for number in range(50)]
        assert least <= min(factors) < 1.05 * least and 1.15 * least < max(factors) < 1.2 * least
    step = perfect.step_of(RECORD, 3.0)
    assert perfect.seconds(pace.slowed(step, 2.0), "funnel", "ready", cost_s, 1) == 7.0


@in_long
def test_what_is_least_is_of_the_slowest_rank(tmp_path):
    (tmp_path / "net.json").write_text(json.dumps(NET))
    words = ["replay", "--models", str(tmp_path / "net.json"), "--compute-s", "0.2", "--ways",
             "ddp:paceline", "--steps", "2", "--slow", "1:2"]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.return_value == 0, done.output
    [row] = [line.split() for line in done.output.splitlines() if "ddp:paceline" in line]
    assert float(row[-1]) < 1.6, "of 0.4 s, and not of 0.2"


def test_bounds_are_of_the_slowest_rank(tmp_path):
    path = tmp_path / "out.json"
    words = ["replay", "--models", "resnet50", "--compute-s", "1", "--ways", "ddp:paceline", "-n",
             "4", "--machine", "alpha_us=20,gbit_per_s=1", "--launches", "0", "--json", str(path)]
    found = []
    for more in ([], ["--slow", "3:1.2"]):
        done = CliRunner().invoke(command, [*words, *more], standalone_mode=False)
        assert done.return_value == 0, done.output
        found.append(json.loads(path.read_text()))
    perfect = [one["bounds"]["resnet50"]["ddp:paceline"] for one in found]
    assert perfect[0] > 1.0, "the machine's links are perfect, not without limit"
    assert perfect[0] < perfect[1] < perfect[0] + 0.21
    plain, slow = (one["simulated"]["resnet50"]["ddp:paceline"] for one in found)
    assert plain < slow < plain + 0.21
    assert perfect[0] < plain


@pytest.mark.parametrize("mutant, why", [
    ("early", "where the average of step"),
    param("none", ""), param("hasty", "nothing can be faster"),
    param("lost", "where the average of step"), param("broken", "does not hold the average"),
])
def test_mutants_are_refused(mutant, why):
    times, notes = launched(["depcha:numbered"], "step_mutants", MUTANT=mutant)
    if not why:
        assert notes == [] and times["net"]
        return
    assert notes and why in notes[0] and not times["net"]


@in_long
def test_a_file_grows_by_launches(tmp_path):
    (tmp_path / "net.json").write_text(json.dumps(NET))
    words = ["replay", "--models", str(tmp_path / "net.json"), "--compute-s", "0.1", "--ways",
             "auto:ready", "--steps", "2", "--machine", "alpha_us=20,gbit_per_s=1", "--json",
             str(tmp_path / "out.json"), "--append"]
    for _ in range(2):
        done = CliRunner().invoke(command, words, standalone_mode=False)
        assert done.return_value == 0, done.output
    content = json.loads((tmp_path / "out.json").read_text())
    row = content["summary"]["net"]["auto:ready"]
    assert row["launches"] == 2 and row["step_s"] > 0.09 and row["simulated_s"] >= 0.1
    words[words.index("auto:ready")] = "depcha:ready"
    assert "of another plan" in CliRunner().invoke(command, words).output


@in_long
@pytest.mark.parametrize("ended_by, status, said", [
    (lambda process: process.send_signal(signal.SIGINT), 130, "interrupted after 0 of 1 launches"),
    (lambda process: os.kill(children(process)[1], signal.SIGKILL), 1, "ended after 0 of 1"),
], ids=["interrupted", "killed"])  # fmt: skip
def test_a_launch_that_is_cut_short_keeps_the_ways_it_has(ended_by, status, said, tmp_path):
    record, out = tmp_path / "net.json", tmp_path / "out.json"
    record.write_text(json.dumps(NET))
    words = ["--models", str(record), "--compute-s", "0.3", "--steps", "10", "--json", str(out),
             "--ways", "auto:ready,depcha:ready"]
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "train", "replay", *words], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
    try:
        wait_until(lambda: len(list(tmp_path.glob("paceline-replay-*/rank?.json"))) == 2, process)
        ended_by(process)
        shown, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == status and said in told and "Traceback" not in told
    if status == 1:
        assert "train: replay: the ranks failed (one was ended by SIGKILL)" in told
    assert "auto:ready" in shown and not list(tmp_path.glob("paceline-replay-*"))
    launch = json.loads(out.read_text())["launches"][0]
    assert list(launch["times"]["net"]) == ["auto:ready"] and launch["ended_early"] in said


def wait_until(is_so, process):
    while not is_so():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def children(process):
    """Processes that it has started."""
    listed = subprocess.run(["ps", "-wwo", "pid=", "--ppid", str(process.pid)], text=True,
                            capture_output=True, check=True).stdout
    return [int(line) for line in listed.split()]


def test_what_not_all_ranks_have_measured_is_left_out(tmp_path):
    for rank, ways in enumerate([{"a": 1, "b": 2}, {"a": 3}]):
        assert replay.done_by_all(tmp_path, 2) == []
        (tmp_path / f"rank{rank}.json").write_text(json.dumps({"models": {"net": ways}}))
    assert [one["models"] for one in replay.done_by_all(tmp_path, 2)] == [{"net": {"a": 1}},
                                                                         {"net": {"a": 3}}]


@pytest.mark.parametrize("words, why", [
    (["--ways", "speculative"], "no way 'speculative'"),
    (["--ways", "ddp:mpi", "--compute-s", "1"], "needs an MPI"),
    (["--models", "lenet", "--compute-s", "1"], "no record of lenet"),
    ([], "pass the computing time of a step"),
    (["--compute-s", "1", "--slow", "1"], "3:1.2"),
    (["--compute-s", "1", "--slow", "0:0.5"], "how many times as long"),
    (["--compute-s", "1", "--slow", "2:1.5"], "0 to 1"),
])  # fmt: skip
def test_bad_input_is_refused(words, why):
    done = CliRunner().invoke(command, ["replay", *words])
    assert isinstance(done.exception, UsageError) and why in str(done.exception)


@in_long
def test_an_mpi_takes_part(tmp_path):
    """In a process of its own: this one may have loaded another MPI, and keeps it."""
    import mpis

    (tmp_path / "net.json").write_text(json.dumps(NET))
    words = ["train", "replay", "--models", str(tmp_path / "net.json"), "--compute-s", "0.1",
             "--mpi", "--ways", "auto:ready,ddp:mpi,horovod:mpi-parts", "--steps", "2"]
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True,
                          env={**os.environ, **mpis.found()[0].environment()}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


SET = """
import ctypes, os, paceline
from paceline_bench.train import libraries
paceline.init()
libraries.start_mpi()
library = ctypes.CDLL(os.environ["MPI4PY_LIBMPI"])
library.MPI_T_init_thread(0, ctypes.byref(ctypes.c_int()))
def value():
    number, count, handle, found = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    library.MPI_T_cvar_get_index(NAME, ctypes.byref(number))
    library.MPI_T_cvar_handle_alloc(number, None, ctypes.byref(handle), ctypes.byref(count))
    library.MPI_T_cvar_read(handle, ctypes.byref(found))
    return found.value
NAME = b"coll_tuned_allreduce_algorithm"
print(value())
with libraries.parameter(NAME.decode(), libraries.TUNED_RING):
    print(value())
print(value())
paceline.finalize()
"""


def test_a_parameter_of_open_mpi_is_set_meanwhile():
    import mpis

    if not (host := next((one for one in mpis.found() if one.family == "openmpi"), None)):
        pytest.skip("no Open MPI is installed")
    env = {**os.environ, **host.environment(), "PACELINE_TRANSPORT": "mpi"}
    done = subprocess.run(host.command(1, sys.executable, "-c", SET), env=env, text=True,
                          capture_output=True, timeout=60)
    assert done.stdout.split() == ["0", "4", "0"], done.stdout + done.stderr


def test_rings_are_open_mpis():
    replay.check_ways(["horovod:mpi-ring"], {"abi": "openmpi", "kind": "Open MPI"})
    with pytest.raises(UsageError, match="Open MPI's own ring; the MPI is MPICH"):
        replay.check_ways(["ddp:mpi-ring-parts"], {"abi": "mpich", "kind": "MPICH"})
