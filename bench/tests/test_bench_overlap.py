"""`paceline bench overlap`, on tiny numbers."""

import json

import pytest
from length import in_long
from paceline import cli

torch = pytest.importorskip("torch")

from paceline_bench.measure import overlap  # noqa: E402  Needs torch.

pytestmark = pytest.mark.ranks


@in_long
def test_all_ways_are_timed_and_compared(tmp_path, capsys):
    file = tmp_path / "overlap.json"
    words = ["bench", "overlap", "--parameters", "6", "--bytes", "20000", "--batch", "3",
             "--repeats", "2", "--json", str(file)]
    assert cli.main(words) == 0, capsys.readouterr().err
    found = json.loads(file.read_text())
    assert [row["way"] for row in found["records"]] == list(overlap.WAYS)
    for row in found["records"]:
        assert (row["parameters"], row["ranks"], row["repeats"]) == (6, 2, 2)
        assert row["ms"] > 0 and row["to_ddp"] > 0
    assert "versions" in found and overlap.SHARED in capsys.readouterr().out


@pytest.mark.parametrize(("parameters", "nbytes"), [(160, 25_000_000), (6, 20_000), (2, 24)])
def test_a_stack_is_about_as_long_as_asked(parameters, nbytes):
    net = overlap.stack(parameters, nbytes)
    assert len(list(net.parameters())) == parameters
    has = sum(p.numel() * p.element_size() for p in net.parameters())
    assert abs(has - nbytes) <= 0.05 * nbytes


def test_gradients_of_a_stack_keep_their_size():
    torch.manual_seed(5)
    net = overlap.stack(60, 60_000)
    net(torch.randn(8, net[0].in_features)).square().mean().backward()
    norms = [torch.linalg.vector_norm(layer.weight.grad).item() for layer in net[::2]]
    assert min(norms) > 1e-3 * max(norms), "or the comparison would compare zeros"


def test_a_wrong_average_is_found():
    torch.manual_seed(5)
    mine, theirs = overlap.stack(6, 20_000), overlap.stack(6, 20_000)
    for net in (mine, theirs):
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)
    overlap.check("overlap", mine, theirs)
    mine[2].bias.grad[-1] = 2
    with pytest.raises(RuntimeError, match=r"overlap: the gradient of 2\.bias is off"):
        overlap.check("overlap", mine, theirs)


def test_rows_are_medians_of_the_slowest_rank():
    results = [{"times": {way: [0.001, 0.004, 0.002] for way in overlap.WAYS},
                "sleeps": {way: sleeps for way in overlap.WAYS}} for sleeps in ([4, 8], [0, 0])]
    results[1]["times"] = {way: [0.003, 0.001, 0.001] for way in overlap.WAYS}
    results[1]["times"][overlap.AUTO] = [0.006, 0.006, 0.006]
    rows = {row["way"]: row for row in overlap.rows_of(results)}
    assert rows[overlap.DDP]["ms"] == pytest.approx(3)
    assert rows[overlap.AUTO]["to_ddp"] == pytest.approx(2)
    assert rows[overlap.AUTO]["exposed_ms"] == pytest.approx(3)
    assert rows[overlap.AUTO]["sleeps"] == pytest.approx(3), "the mean of both ranks"


def test_what_cannot_be_timed_is_refused(capsys):
    assert cli.main(["bench", "overlap", "--model", "resnet51"]) == 2
    assert "resnet51" in capsys.readouterr().err
    assert cli.main(["bench", "overlap", "--parameters", "1"]) == 2
    assert "--parameters" in capsys.readouterr().err
