"""`paceline report device`: linear pipelines on emulated devices, with the document's claims."""

import csv
import json

import pytest
from length import in_long
from paceline import cli
from paceline.errors import UsageError
from paceline_bench.report import claims, device, device_cells, measured, verdicts


@in_long
def test_the_page(tmp_path, capsys, monkeypatch):
    page = tmp_path / "device.html"
    monkeypatch.setattr(measured, "RESULTS", tmp_path / "none")
    assert cli.main(["report", "device", "--largest", "1MiB", "--html", str(page)]) == 0
    html = page.read_text()
    for words in ("table 1", "Theorem 3.1", "Figure 3", "Figure 4", "linear pipeline (emulated)",
                  "linear pipeline (simulated)", "PCIe x16, emulated", "not reproduced",
                  "L. Wang, W. Wu, G. Bosilca"):
        assert words in html, words
    with page.with_suffix(".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kind"] for row in rows} == {"emulated", "simulated"}
    assert {row["figure"] for row in rows} == {"figure 3", "figure 4", "theorem 3.1"}
    ratios = [row for row in rows if row["figure"] == "theorem 3.1"]
    assert ratios and all(row["value"] and not row["seconds"] + row["mb_per_s"] for row in ratios)
    assert "log2 p<td>" not in html  # among rates
    for row in rows:
        if row["bound_s"]:
            assert float(row["bound_s"]) <= float(row["seconds"]) * 1.000001, row
    assert "reproduced" in capsys.readouterr().out


ABOUT = {"processor": "a processor", "cores_allowed": 2, "cores": 2, "system": "a system"}


def row(variant, ranks, nbytes, seconds, **more):
    """As `paceline bench --device` writes it."""
    return {"collective": "broadcast", "bytes": nbytes, "ranks": ranks, "variant": variant,
            "library": "paceline", "interval": None, "time_us_median": 1e6 * seconds,
            "bound_us": 1e6, **more}


def of_gpus(devices, times):
    """Records of two sizes and two numbers of participants; `times` by way, of the longest."""
    return [row(way, ranks, nbytes, seconds * nbytes / (1 << 20), device="cuda", gpu="Some GPU",
                devices=devices or ranks)
            for way, seconds in times.items() for ranks in (2, 4) for nbytes in (4096, 1 << 20)]


def file_of(path, rows):
    path.write_text(json.dumps({"machine": ABOUT, "date": "2026-11-22T05:00:00",
                                "command": "paceline bench", "records": rows}))
    return path


def test_what_was_measured_is_on_the_page(tmp_path, capsys):
    """On GPUs, and through the host with its stages; verdicts come from there as well."""
    share = {"register": 0.01, "copy out": 0.3, "send": 0.5, "receive": 0.9, "reduce": 0.1,
             "copy in": 0.2}
    staged = row("staged", 2, 1 << 20, 0.02, device="emulated", share=share, time_us_first=3e4)
    file_of(tmp_path / "cuda.json", of_gpus(0, {"LP": 2.0, "LP, best block": 1.5, "MST": 3.0,
                                                "BE": 4.0}))
    file_of(tmp_path / "staged.json", [staged])
    page = tmp_path / "device.html"
    assert cli.main(["report", "device", "--largest", "1MiB", "--html", str(page), "--measured",
                     str(tmp_path)]) == 0
    html, said = page.read_text(), " ".join(capsys.readouterr().out.split())
    for words in ("broadcast, 4 participants on 4 x Some GPU", "broadcast of 1 MiB, measured",
                  "LP, best block (measured)", "2 ranks, emulated devices", "copy out", "90 %"):
        assert words in html, words
    assert "No file has" not in html
    assert "<td>4 participants on 4 x Some GPU: 1.5<td>measured" in html, "LP by MST"
    assert "<td>broadcast of 1 MiB, 2 ranks, emulated devices: 2.01<td>measured" in html
    with page.with_suffix(".csv").open(newline="") as file:
        rows = [one for one in csv.DictReader(file) if one["kind"] == "measured"]
    assert {one["figure"] for one in rows} == {"figure 3", "figure 4", "stages"}
    assert "measured reproduced" in said


def test_calls_are_compared_with_calls_in_blocks_of_one_length(tmp_path):
    files = device.read(file_of(tmp_path / "some.json", of_gpus(1, {
        "LP": 4.0, "MST": 2.0, "BE": 8.0, "LP, graph": 1.0, "LP, best block": 1.0,
        "chosen": 1.0})))
    found = device_cells.cells(device.make(files, 1 << 20))
    for way, speed in (("MST", 0.5), ("BE", 2)):
        _, cell = found[f"figure 3: broadcast, {way}"]
        assert (cell.kind, cell.where, cell.value) == (
            "measured", "4 participants on 1 x Some GPU", speed)


def test_the_csv_of_dev_gpu_is_read(tmp_path):
    file = tmp_path / "gpu.csv"
    file.write_text("date,gpu,device,collective,bytes,participants,devices,way,algorithm,"
                    "time_us_median,bound_us\n2026-11-22,Some GPU,cuda,reduce,4096,2,1,LP,chain,"
                    "9.50,4.00\n2026-11-22,Some GPU,cuda,reduce,4096,4,1,LP,chain,19.0,\n")
    figure = device.make(device.read(file), 1 << 20)[0]
    two, four = figure.of("measured")
    assert two.title == "reduce, 2 participants on 1 x Some GPU" and two.bounds == {4096: 4e-6}
    assert four.lines[0].points[0].seconds == 19e-6 and four.bounds == {}
    assert two.lines[0].origin.words == "gpu.csv, 2026-11-22"
    file.write_text("device,collective\n")
    with pytest.raises(UsageError, match="gpu.csv has no column date, gpu"):
        device.read(file)


def test_emulated_and_simulated_pipelines_agree():
    """Of the publication's collectives, on 4 devices."""
    for panel in device.make([], 1 << 20)[0].panels:
        times = {kind: {point.bytes: point.seconds for line in panel.lines for point in line.points
                        if (line.label, line.kind) == ("linear pipeline", kind)}
                 for kind in ("emulated", "simulated")}
        for nbytes, seconds in times["simulated"].items():
            assert abs(times["emulated"][nbytes] / seconds - 1) < 0.02, (panel.title, nbytes)


@in_long
def test_the_claims_hold_but_for_the_pair_that_allreduces():
    found = device_cells.cells(device.make([]))
    rows = verdicts.rows({name: claims.DEVICE[name] for name in found}, found)
    words = {name: {outcome.found.partition(":")[0]: outcome.word for outcome in row.outcomes}
             for name, row in zip(found, rows)}
    for name in ("table 1", "theorem 3.1: MST", "theorem 3.1: BE", "figure 4"):
        assert words[name] == {"broadcast": "reproduced", "reduce": "reproduced",
                               "allreduce": "not reproduced"}, name
    assert words["figure 3: broadcast, MST"] == {"4 devices": "in direction only"}
