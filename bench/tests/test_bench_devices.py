"""`paceline bench --device emulated`: linear pipelines beside their rivals, in model time."""

import json

import pytest
from paceline import cli
from paceline_bench.measure import devices

MACHINE = "alpha_us=1,gbit_per_s=80,reduce_gbyte_per_s=0"


def test_the_table_and_its_records(tmp_path, capsys):
    file = tmp_path / "devices.json"
    words = ["bench", "broadcast", "--device", "emulated", "-n", "4", "--sizes", "4KiB,16MiB",
             "--machine", MACHINE, "--json", str(file)]
    assert cli.main(words) == 0
    found = {(row["bytes"], row["variant"]): row for row in json.loads(file.read_text())["records"]}
    assert set(found) == {(size, way) for size in (4096, 16 << 20)
                          for way in ("LP", "LP, own block", "MST", "BE", "chosen")}
    assert all(row["bound_us"] <= row["time_us_median"] for row in found.values())
    assert found[4096, "MST"]["time_us_median"] < found[4096, "LP"]["time_us_median"] * 1.01
    assert found[4096, "LP, own block"]["time_us_median"] <= found[4096, "LP"]["time_us_median"]
    long = {way: found[16 << 20, way]["time_us_median"] for way in ("LP", "MST", "BE")}
    assert long["LP"] < long["BE"] < long["MST"]  # n, 2 (p-1)/p n, log2(p) n
    assert "linear pipeline" in capsys.readouterr().out


def test_the_same_machine_gives_the_same_times():
    assert devices.measure("reduce", [1 << 20], 3, MACHINE) == devices.measure(
        "reduce", [1 << 20], 3, MACHINE)


@pytest.mark.parametrize("name", ["auto", "usual"])
def test_what_names_no_model_is_the_usual_one(name, capsys):
    words = ["bench", "reduce", "--device", "emulated", "-n", "3", "--sizes", "4KiB"]
    assert cli.main(words) == 0
    before = capsys.readouterr().out
    assert cli.main([*words, "--machine", name]) == 0
    assert capsys.readouterr().out == before


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_terminal_of_80_columns_shows_the_table(ranks, capsys, monkeypatch):
    """Sizes are those of devices, no number is broken; what two devices do otherwise is said."""
    monkeypatch.setenv("COLUMNS", "80")
    words = ["bench", "allreduce", "--device", "emulated", "-n", str(ranks)]
    assert cli.main(words) == 0
    table, _, notes = capsys.readouterr().out.partition("Model time")
    rows = [line.split() for line in table.splitlines() if "iB" in line]
    assert [" ".join(row[:2]) for row in rows] == [
        "4 KiB", "32 KiB", "256 KiB", "2 MiB", "16 MiB", "128 MiB", "1 GiB"]
    assert all(len(row) == 15 for row in rows) and "\u2026" not in table  # 7 with units, a ratio
    assert ("takes half as long" in notes) == (ranks == 2)


@pytest.mark.parametrize("words, why", [
    (["alltoall", "--device", "emulated"], "--device times broadcast, reduce, allreduce"),
    (["reduce", "--device", "emulated", "-n", "1"], "--ranks must be at least 2"),
    (["reduce", "--device", "emulated", "--algorithm", "ring", "--verdict"],
     "leave out --algorithm, --verdict."),
    (["reduce", "--device", "staged", "--dtype", "float64"], "leave out --dtype."),
    (["reduce", "--device", "emulated", "--machine", "probe"], "--device wants a model"),
    (["reduce", "--device", "emulated", "--machine", "abacus"], "machine 'abacus' is not known"),
    (["allreduce", "--device", "nothing"], "emulated")])
def test_what_cannot_be_timed_is_refused(words, why, capsys):
    assert cli.main(["bench", *words]) == 2
    assert why in capsys.readouterr().err
