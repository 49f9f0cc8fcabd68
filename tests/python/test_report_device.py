"""`paceline report device`: linear pipelines on emulated devices, with the document's claims."""

import csv

from length import in_long

from paceline import cli
from paceline.report import device, device_claims


def test_the_page(tmp_path, capsys):
    page = tmp_path / "device.html"
    assert cli.main(["report", "device", "--largest", "1MiB", "--html", str(page)]) == 0
    html = page.read_text()
    for words in ("Table 1", "Theorem 3.1", "Figure 3", "Figure 4", "linear pipeline (emulated)",
                  "linear pipeline (simulated)", "PCIe x16, emulated", "not reproduced"):
        assert words in html, words
    with page.with_suffix(".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["kind"] for row in rows} == {"emulated", "simulated"}
    assert {row["figure"] for row in rows} == {"figure 3", "figure 4", "theorem 3.1"}
    for row in rows:
        if row["bound_s"]:
            assert float(row["bound_s"]) <= float(row["seconds"]) * 1.000001, row
    assert "reproduced" in capsys.readouterr().out


def test_emulated_and_simulated_pipelines_agree():
    """Of the publication's collectives, on 4 devices."""
    for panel in device.make([], 1 << 20)[0].panels:
        times = {kind: {point.bytes: point.seconds for line in panel.lines for point in line.points
                        if (line.label, line.kind) == ("linear pipeline", kind)}
                 for kind in ("emulated", "simulated")}
        for nbytes, seconds in times["simulated"].items():
            assert abs(times["emulated"][nbytes] / seconds - 1) < 0.02, (panel.title, nbytes)


@in_long
def test_the_claims_hold():
    found = {claim.name: claim.outcomes for claim in device_claims.claims(device.make([]))}
    for name in ("table 1", "theorem 3.1", "figure 4"):
        assert [outcome.word for outcome in found[name]] == ["reproduced"], name
    assert [outcome.word for outcome in found["figure 3"]] == [
        "reproduced", "not reproduced", "beyond"]
