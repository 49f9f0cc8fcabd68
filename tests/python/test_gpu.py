"""`./dev gpu` and what measures and looks at CUDA devices, on devices that are feigned."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import feigned_cuda
import pytest
from dev import gpu
from length import in_long

from paceline import device, topology

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.ranks

CLI = "import sys; from paceline import cli; sys.exit(cli.main(sys.argv[1:]))"


def run(words, settings):
    """A command of the package where the driver is feigned: status, output."""
    env = {**os.environ, "COLUMNS": "160", **settings}
    found = subprocess.run([sys.executable, "-c", CLI, *words], env=env, text=True,
                           capture_output=True, timeout=200)
    return found.returncode, found.stdout + found.stderr


def test_the_whole_command_without_a_gpu(tmp_path, monkeypatch):
    feigned_cuda.settings()  # or it is skipped
    monkeypatch.setattr(gpu, "TESTS", (("unit", "*cuda_test.cpp"),))
    monkeypatch.setenv("PACELINE_SHORT", "1")
    file = tmp_path / "gpu.csv"
    assert gpu.main(["--feigned", "--short", "--no-build", "--csv", str(file)]) == 0
    rows = list(csv.DictReader(file.open()))
    assert {row["collective"] for row in rows} == {"broadcast", "reduce", "allreduce"}
    assert {row["way"] for row in rows} >= {"LP", "MST", "BE", "chosen", "peers"}
    assert {row["device"] for row in rows} == {"emulated"}
    assert all(float(row["time_us_median"]) > 0 and row["date"] for row in rows)


@in_long
@pytest.mark.parametrize("ranks, devices", [(2, 2), (4, 1)])
def test_bench_measures_between_devices(tmp_path, ranks, devices):
    file = tmp_path / "bench.json"
    status, out = run(["bench", "allreduce", "--device", "cuda", "-n", str(ranks), "--sizes",
                       "256KiB", "--json", str(file)], feigned_cuda.settings(f"devices={devices}"))
    assert status == 0, out
    assert "Copy bound" in out and ("share 1" in out) == (devices == 1)
    rows = json.loads(file.read_text())["records"]
    assert {row["variant"] for row in rows} == {"LP", "LP, own block", "MST", "BE", "chosen",
                                                "LP, best block", "LP, graph"}
    best = {row["variant"]: row["segment_bytes"] for row in rows}
    assert best["LP, best block"] in (64 << 10, 256 << 10) and best["LP"] is None
    assert all(row["device"] == "cuda" and row["time_us_median"] > 0 for row in rows)
    assert {(row["gpu"], row["devices"]) for row in rows} == {("Feigned GPU", devices)}


@in_long
@pytest.mark.parametrize("feigned", [False, True])
def test_bench_shows_the_stages_of_the_pipeline(tmp_path, feigned):
    file = tmp_path / "stages.json"
    status, out = run(["bench", "allreduce", "--device", "staged", "-n", "2", "--sizes",
                       "4KiB,256KiB", "--json", str(file)],
                      feigned_cuda.settings("devices=2") if feigned else {})
    assert status == 0, out
    assert out.partition("Measured")[0].split().count("copy") == 2 and "register" in out
    rows = json.loads(file.read_text())["records"]
    assert [row["bytes"] for row in rows] == [4096, 256 << 10]
    assert {row["device"] for row in rows} == {"cuda" if feigned else "emulated"}
    for row in rows:
        assert all(row["share"][name] > 0 for name in ("copy out", "send", "receive", "copy in"))


@in_long
@pytest.mark.parametrize("words, wanted", [
    ("--device peers --algorithm chain --segments 2 --window 2", "chain"),
    ("--device staged --algorithm ring --segments 2", "register"),
    ("--device peers --algorithm chain,ring", "--device times one --algorithm; not chain,ring"),
    ("--device staged --segments 4MiB", "--device takes a number of segments; not 4MiB"),
    ("--device cuda --algorithm ring", "leave out --algorithm"),
])
def test_bench_between_ranks_takes_an_algorithm_and_how_it_is_cut(words, wanted):
    status, out = run(["bench", "allreduce", "-n", "2", "--sizes", "64KiB", *words.split()], {})
    assert wanted in " ".join(out.split()), out
    assert (status == 0) == (wanted in ("chain", "register"))


def test_the_multi_process_service_is_started_and_ended(tmp_path, monkeypatch):
    control = tmp_path / "nvidia-cuda-mps-control"
    control.write_text(f"#!/bin/sh\n[ \"$1\" ] || read -r word\n"
                       f"echo \"$1$word in $CUDA_MPS_PIPE_DIRECTORY\" >>{tmp_path}/said\n")
    control.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with gpu.multi_process_service(False) as env:
        assert env == {}
    with gpu.multi_process_service(True) as env:
        folder = env["CUDA_MPS_PIPE_DIRECTORY"]
        assert Path(folder).is_dir()
    assert (tmp_path / "said").read_text() == f"-d in {folder}\nquit in {folder}\n"
    ways = gpu.ways(SimpleNamespace(short=True, feigned=False, mps=True), 2)
    assert [(kind, added, shared) for kind, _, _, added, shared in ways] == [
        ("cuda", "", False), ("peers", "", False), ("peers", ", LP", False),
        ("peers", ", MPS", True), ("peers", ", LP, MPS", True)]


@in_long
@pytest.mark.parametrize("devices", [0, 1, 2])
def test_bench_measures_between_processes(tmp_path, devices):
    """Also where they share a device; without a GPU their devices are emulated."""
    file = tmp_path / "peers.json"
    status, out = run(["bench", "allreduce", "--device", "peers", "-n", "2", "--sizes",
                       "4KiB,256KiB", "--json", str(file)],
                      feigned_cuda.settings(f"devices={devices}") if devices else {})
    assert status == 0, out
    kind = "cuda" if devices else "emulated"
    assert f"2 processes with {kind} devices" in out and ("share 1" in out) == (devices == 1)
    rows = json.loads(file.read_text())["records"]
    assert [(row["bytes"], row["variant"], row["device"]) for row in rows] == [
        (4096, "peers", kind), (256 << 10, "peers", kind)]
    assert all(row["time_us_median"] > 0 and row["algorithm"] for row in rows)
    assert rows[0]["devices"] == max(devices, 1)


@in_long
def test_a_model_is_measured():
    """Positions that share a device have a part of its rates."""
    look = ("from paceline import device, device_rates; d = device.cuda(); "
            "device.Group(d, [0, 1], device_rates.measured(d, [0, 1])); "
            "found = (4e9, 2e9, 3e-6); print(device_rates.machine_of(found, [0, 1]), "
            "device_rates.machine_of(found, [0, 1, 0, 1]))")
    env = {**os.environ, **feigned_cuda.settings("devices=2")}
    found = subprocess.run([sys.executable, "-c", look], env=env, text=True, check=True,
                           capture_output=True, timeout=100).stdout
    assert found == ("alpha_us=3,gbit_per_s=32,reduce_gbyte_per_s=2 "
                     "alpha_us=3,gbit_per_s=16,reduce_gbyte_per_s=1\n")


def doctor(words, **settings):
    """What the line about devices says."""
    look = "from paceline.cli import gpus; print(*gpus.finding())"
    env = {**os.environ, **feigned_cuda.settings(words), **settings}
    return subprocess.run([sys.executable, "-c", look], env=env, text=True, check=True,
                          capture_output=True, timeout=100).stdout


def test_doctor_names_devices_and_what_is_missing():
    found = doctor("devices=3")
    assert "3 x Feigned GPU (9.0, 1 GiB), driver 13.0" in found
    assert "all reach each other" in found and "neighbours in the order 0 1 2" in found
    links = doctor("devices=4 pairs=1")
    assert "in the order 0 2 1 3, by slower links between 2 and 1;" in links
    assert "slower" not in doctor("devices=4")
    assert "2 x Feigned GPU" in doctor("peers=0") and "all reach" not in doctor("peers=0")
    assert "version 11.8, and this needs 12.0" in doctor("version=11080")
    assert "no CUDA device" in doctor("devices=0")


@pytest.mark.parametrize("path", ["/", "/no such file", os.devnull])
def test_doctor_says_which_kernels_cannot_be_read(path):
    found = doctor("devices=1", PACELINE_CUDA_KERNELS=path)
    assert found.startswith(f"warn device: PACELINE_CUDA_KERNELS names {path}, which cannot be "
                            "read or is empty;")


def test_neighbours_of_links():
    """The order that a Group takes, and the bench."""
    look = ("from paceline import device; from paceline_bench.measure import devices_cuda; "
            "d = device.cuda(); print(device.near_order(d), devices_cuda.positions_on(d, 6))")
    env = {**os.environ, **feigned_cuda.settings("devices=4 pairs=1")}
    found = subprocess.run([sys.executable, "-c", look], env=env, text=True, check=True,
                           capture_output=True, timeout=100).stdout
    assert found == "[0, 2, 1, 3] [0, 2, 1, 3, 0, 2]\n"
    assert device.near_order(device.emulated(3)) == [0, 1, 2]


def test_neighbours_are_near(tmp_path):
    """One socket after the other, and in it one switch after the other."""
    buses = ["0000:c1:00", "0000:81:00", "0000:41:00", "0000:01:00"]
    places = [("1", "s3"), ("0", "s2"), ("0", "s1"), ("0", "s2")]
    for bus, (node, switch) in zip(buses, places, strict=True):
        folder = tmp_path / "real" / switch / f"{bus}.0"
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{node}\n")
        (tmp_path / f"{bus}.0").symlink_to(folder)
    assert topology.chain(buses, system=str(tmp_path)) == [2, 3, 1, 0]
    assert topology.chain(buses, system=str(tmp_path / "none")) == [3, 2, 1, 0]
    fast = {(2, 0), (0, 3)}  # links count more than switches and sockets
    order = topology.chain(buses, lambda a, b: (a, b) not in fast, str(tmp_path))
    assert order == [2, 0, 3, 1]
    assert topology.chain([]) == []
