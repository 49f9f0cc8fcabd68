"""`paceline doctor`: what it finds here, and what it says where something is not well."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import machine_files
import pytest
from launched import flat

from paceline import busy
from paceline.cli import attach, doctor
from paceline.errors import UsageError

pytestmark = pytest.mark.ranks


def test_it_finds_nothing_here(paceline):
    status, out, _ = paceline("doctor")
    assert status == 0, out
    assert "allreduce on 2 ranks" in flat(out)
    assert "ok huge pages" in flat(out)  # granted or not: nobody has asked for them
    copies = r"(broadcasts from 1 MiB on|none; no cross-memory attach: E[A-Z]+: )"
    assert re.search(f"ok single copies {copies}", flat(out))


def test_it_says_which_machine_is_reckoned_with(monkeypatch):
    usual = "edr-100g: alpha 1.5 us, 100 Gbit/s, reduce 10 GB/s"
    for asked, text in {
        "usual": f"between nodes {usual} (usual); PACELINE_MACHINE=auto measures",
        "probe": f"between nodes measured at every start (PACELINE_MACHINE=probe); where that "
                 f"fails, {usual} (usual, not measured)",
        "lab-200mbit": "between nodes lab-200mbit: alpha 30 us, 0.2 Gbit/s, reduce 10 GB/s (as "
                       "PACELINE_MACHINE says)",
        "2e-6,1e-9,1e-10": "between nodes alpha 2 us, 8 Gbit/s, reduce 10 GB/s (as PACELINE_",
    }.items():
        monkeypatch.setenv("PACELINE_MACHINE", asked)
        found = doctor.machine(2)
        assert found.state == "ok" and text in found.text, found
    monkeypatch.setenv("PACELINE_MACHINE", "edr-100gg")
    found = doctor.machine(2)
    assert found.state == "fail" and found.text.startswith("PACELINE_MACHINE: "), found


FIGURES = "alpha_us=130,gbit_per_s=0.2,reduce_gbyte_per_s=10"


@pytest.fixture
def machine_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("PACELINE_MACHINE", "auto")
    monkeypatch.setenv("PACELINE_MACHINE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept"


def test_it_names_the_machine_file(machine_folder):
    path = machine_folder / "machine"
    first = f"the first start measures the links, and keeps the figures in {path}"
    assert flat(doctor.machine(2).text) == f"between nodes {first}"
    machine_folder.mkdir()
    entry = f"{'1' * 16} {'a' * 16} 9 9 2026-11-23 4e-08 {FIGURES}\n"
    path.write_text(machine_files.sealed("paceline-machine 1\n" + entry))
    kept = (f"measured figures are kept in {path}: 1 layout, the last of 9 ranks on 9 "
            "nodes on 2026-11-23: alpha 130 us, 0.2 Gbit/s, reduce 10 GB/s")
    found = doctor.machine(2)
    assert (found.state, found.text) == ("ok", f"between nodes {kept}")
    path.write_text("paceline-machine 1\n" + entry)
    found = doctor.machine(2)
    assert found.state == "warn" and f"{path} is damaged" in found.text, found


def test_it_says_where_nothing_can_be_kept(monkeypatch, machine_folder):
    monkeypatch.setattr(doctor.os, "access", lambda *_: False)  # root may write anywhere
    found = doctor.machine(2)
    assert found.state == "warn" and f"{machine_folder.parent} cannot be written" in found.text
    assert "PACELINE_MACHINE_DIR" in found.advice


def test_it_names_the_load(monkeypatch):
    monkeypatch.setattr(busy.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(doctor, "LOOK_S", 0)
    for used, ranks, state in ((3.1, 4, "ok"), (3.1, 6, "warn"), (30, 2, "warn"), (0, 9, "ok"),
                               (0.1, 8, "ok"), (0.3, 8, "warn")):  # fmt: skip
        counted = iter([(0, 0, 0), (2, 2 * used + 1, 1)])  # this program itself used 1 s
        monkeypatch.setattr(busy, "_counted", lambda counted=counted: next(counted))
        found = doctor.load(ranks)
        assert found.state == state, found
        assert found.text.startswith(f"other programs use {used:.1f} of 8 cores now"), found
        assert (f"; {ranks} ranks come on top" in found.text) == bool(found.advice), found


def test_a_program_that_computes_counts_as_another():
    watch = busy.Watch()
    command = [sys.executable, "-c", "import time\nwhile time.process_time() < 1: pass"]
    with subprocess.Popen(command) as spinning:
        while spinning.poll() is None and watch.cores() * (time.monotonic() - watch.start[0]) < 0.5:
            time.sleep(0.05)
        assert spinning.poll() is None, "seen before it ended, and counted as a child of ours"


def test_stolen_time_counts_and_idle_time_does_not(monkeypatch):
    tick = os.sysconf("SC_CLK_TCK")
    counts = [10 * tick * (1 << at) for at in range(10)]  # user nice system idle ... stolen guest
    text = f"cpu  {' '.join(map(str, counts))}\ncpu0 1 1 1\n"
    monkeypatch.setattr(busy.Path, "read_text", lambda self, encoding: text)
    assert busy._counted()[1] == 10 * (1 + 2 + 4 + 32 + 64 + 128)
    monkeypatch.setattr(busy.Path, "read_text", lambda self, encoding: "no figures")
    assert busy._counted()[1] == 0


def test_what_keeps_the_system_from_copying_is_told(monkeypatch):
    monkeypatch.setattr(attach.ctypes, "addressof", lambda _: 8)  # nobody has anything there
    assert attach.trouble() == "EFAULT"
    monkeypatch.setattr(attach.sys, "executable", "/nowhere")
    assert "No such file" in attach.trouble()
    assert doctor.single_copies(2).text.startswith("none; no cross-memory attach: ")
    monkeypatch.setenv("PACELINE_SINGLE_COPY", "off")
    assert attach.trouble() == "PACELINE_SINGLE_COPY=off"
    monkeypatch.setattr(attach, "trouble", lambda: "")
    assert doctor.single_copies(2).text == (
        "broadcasts from 1 MiB on between 2 ranks, by cross-memory attach")


@pytest.mark.parametrize("version, state, said", [
    ("2.11.1", "fail", "torch 2.11.1 is older than 2.12"), ("2.12.0+cpu", "ok", "2.12.0+cpu, "),
    ("2.14.1", "ok", "torch 2.14.1, "), ("2.16.0", "warn", "torch 2.16.0 is newer than 2.15"),
    ("a0-git", "ok", "torch a0-git, "),
])  # fmt: skip
def test_it_knows_the_versions_of_torch(monkeypatch, version, state, said):
    pytest.importorskip("torch")
    monkeypatch.setattr(doctor.provenance, "version_of", lambda _: version)
    found = doctor.torch(2)
    assert found.state == state and said in found.text, found


def test_the_versions_of_torch_are_those_of_the_documents():
    oldest, newest = doctor.provenance.TORCH
    root = Path(__file__).parents[2]
    assert f'"torch>={oldest}"' in (root / "pyproject.toml").read_text(encoding="utf-8")
    assert f"torch {oldest} to {newest}" in (root / "README.md").read_text(encoding="utf-8")


def test_it_says_what_to_do(paceline, monkeypatch, tmp_path):
    monkeypatch.setenv("PACELINE_SHM_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PACELINE_TIEMOUT_MS", "5")
    monkeypatch.setenv("PACELINE_HUGE_PAGES", "on")
    status, out, _ = paceline("doctor")
    assert status == 1
    assert "FAIL shared memory" in flat(out) and "set PACELINE_SHM_DIR" in flat(out)
    assert "FAIL self-test" in flat(out)
    assert "warn huge pages not for shared memory: shm: no unnamed file" in flat(out)
    assert "no option has that name. Did you mean PACELINE_TIMEOUT_MS?" in flat(out)


def test_it_goes_on_where_a_check_raises(paceline, monkeypatch):
    def of_the_house(ranks):
        raise UsageError(f"{ranks} roofs")

    monkeypatch.setattr(doctor, "CHECKS", (of_the_house, doctor.core))
    status, out, _ = paceline("doctor")
    assert status == 1
    assert "FAIL of the house 2 roofs ok core" in flat(out)
