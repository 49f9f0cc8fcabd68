"""One rule for every claim of `paceline report`, and cells that face the way of their claim."""

from dataclasses import replace

import pytest
from paceline_bench.report import (
    arrival_across,
    arrival_inside,
    arrival_nodes,
    arrival_random,
    arrival_training,
    claims,
    dag_cells,
    device,
    device_cells,
    horovod,
    horovod_cells,
    horovod_gpus,
    horovod_steps,
    paired,
    pipelining_cells,
    replays,
    ring_cells,
    verdicts,
)
from paceline_bench.report.lines import Figure, Line, Model, Panel, Point, Records
from paceline_bench.report.verdicts import Cell, Claim, verdict

# R: reproduced, D: in direction only, N: not reproduced, B: beyond, each followed by a cell just
# inside or just outside of a bound. Claims without cells have "".
WORDS = {"R": verdicts.REPRODUCED, "D": verdicts.DIRECTION, "N": verdicts.NOT_REPRODUCED,
         "B": verdicts.BEYOND}
FASTER, SLOWER, ALONE, OURS = "R 1.01 N 1.00", "R 0.99 N 1.00", "", "B 1.01 N 1.00"
FORMULA = "N 0.97 R 0.98 R 1.02 N 1.03"


def printed(number):
    """Bounds of a claim above 1 that has one number: all that round to it are right."""
    digits = len(number.partition(".")[2])
    one, below, above = (f"{value:.{digits}f}" for value in (
        1, float(number) - 10**-digits, float(number) + 10**-digits))
    return f"N {one} D {below} R {number} D {above}"


BOUNDS = {
    "pipelining": {
        "figure 1": FASTER, "figure 2": "N 1.00 D 1.01 D 1.32 R 1.33 R 2",
        "figure 3": printed("1.25"),
        "figure 4: whole": "N 0.00 D 0.27 R 0.28 R 0.37 D 0.38",
        "figure 4: four": "R 0.13 N 0.14", "figure 5": "R 0.99 R 1.00 N 1.01",
        "figure 6": "N 1.00 D 1.45 R 1.46 R 1.71 D 1.72",
        "figure 7": "N 0.0 D 49.9 R 50 R 150 D 150.1", "figures 8-10": ALONE, "figure 11": FASTER,
        "figure 12": FASTER, "figure 13": FASTER, "figure 14": FASTER},
    "ring": {
        "figure 6: plain ring": printed("1.28"),
        "figure 6: Open MPI": printed("1.82"), "figure 6: CUDA": ALONE,
        "variance: plain ring": printed("7.5"), "variance: library": "R 1.03 N 1.04"},
    "device": {
        "table 1": FORMULA, "theorem 3.1: MST": FORMULA, "theorem 3.1: BE": FORMULA,
        "figure 3: broadcast, MST": printed("2.3"),
        "figure 3: broadcast, BE": printed("29.2"),
        "figure 3: reduce, MST": printed("8.7"),
        "figure 3: reduce, BE": printed("360.6"),
        "figure 3: allreduce, MST": printed("7.9"),
        "figure 3: allreduce, BE": printed("109.2"),
        "figure 4": "N 0.94 R 0.95 R 1.05 N 1.06", "figure 5, table 2": ALONE, "stages": FASTER},
    "training": {
        "table 2: parameters": "N 0.9999 R 1 N 1.0001", "table 2: flops": "N 0.9999 R 1 N 1.0001",
        "figure 8": FASTER, "figure 9: ring": FASTER, "figure 9: non-blocking": FASTER,
        "figure 9: resnet110": "N 1.00 D 1.49 R 1.50 R 1.60 D 1.61",
        "figure 9: alexnet": printed("1.22"),
        "figure 9: resnet50": printed("1.22"),
        "figure 9: vgg11": printed("1.15"),
        "figure 9: parts": FASTER, "figure 9: parts alone": FASTER,
        "figure 9: ours": OURS, "figure 10: links": FASTER,
        "figure 10: computing": "N 0.94 R 0.95 R 1.05 N 1.06",
        "figure 10: parts": printed("1.60"), "figure 10: near": SLOWER},
    "dag": {
        "figures 13, 15": FASTER, "figure 14": "N 1.00 D 1.59 R 1.60 R 3",
        "figures 13-15: auto": OURS, "figure 16": ALONE,
        "table 2: alexnet, BE": "R 0.10 D 0.09 D 0.11 D 0.99 N 1.00",
        "table 2: alexnet, MST": "R 0.11 D 0.10 D 0.12 D 0.99 N 1.00",
        "table 2: googlenet, BE": "R 0.06 D 0.05 D 0.07 D 0.99 N 1.00",
        "table 2: googlenet, MST": "R 0.43 D 0.42 D 0.44 D 0.99 N 1.00",
        "figure 5: alexnet": printed("2.12"),
        "figure 5: googlenet": printed("2.19"),
        "figure 5: loss": "N 0.94 R 0.95 R 1.05 N 1.06", "table 1": FORMULA,
        "theorem 3.1: MST": FORMULA, "theorem 3.1: BE": FORMULA,
        "cost per key": "R 1.50 N 1.51"},
    "arrival": {
        "figures 2-4, tables 1-2": ALONE, "figure 5": "N 0.00 R 0.01", "figure 6": "N 0 R 1",
        "figure 7: 10": printed("1.22"),
        "figure 7: 20": printed("1.56"),
        "figure 7: 50": printed("1.37"),
        "figure 8: 10": printed("1.18"),
        "figure 8: 20": printed("1.20"),
        "figure 8: 50": printed("1.11"),
        "table 3": "N 1.00 D 1.19 R 1.20 R 1.29 D 1.30",
        "figure 9: resnet50": printed("1.17"),
        "figure 9: densenet201": printed("1.09"), "figure 9: vgg16": SLOWER,
        "figure 10: small": FORMULA, "figure 10: large": SLOWER,
        "goal: late, fast": "R 1.35 N 1.36", "goal: late, stable": "R 1.45 N 1.46",
        "goal: named, in time": "R 1.25 N 1.26", "goal: none late": "R 1.030 N 1.031",
        "goal: random": "R 1.005 N 1.006"},
}


def asked():
    """(page, claim, word, cell) of all."""
    for page, table in claims.CLAIMS.items():
        for key in table:
            words = BOUNDS[page][key].split()
            yield from ((page, key, WORDS[word], float(cell))
                        for word, cell in zip(words[::2], words[1::2]))


@pytest.mark.parametrize("page, key, word, value", list(asked()))
def test_a_claim_is_asked_just_inside_and_just_outside_of_its_bounds(page, key, word, value):
    claim = claims.CLAIMS[page][key]
    cell = Cell("measured", "here", value, *((value, value) if claim.ours else ()))
    assert verdict(claim, [cell])[0] == word


def test_every_claim_has_bounds_that_are_asked():
    for page, table in claims.CLAIMS.items():
        assert set(BOUNDS[page]) == set(table), page
        for key, claim in table.items():
            bounds = (claim.above, claim.below, claim.low, claim.high)
            assert bool(BOUNDS[page][key]) == (
                bounds != (None, None, float("-inf"), float("inf"))), key


CLAIM = Claim(claims.WANG, "", "", "1.20", above=1, low=1.2, high=1.2)


def test_one_cell_that_contradicts_is_named():
    cells = [Cell("measured", place, value) for place, value in (("a", 1.2), ("b", 0.9),
                                                                 ("c", 0.8))]
    assert verdict(CLAIM, cells) == (verdicts.NOT_REPRODUCED, "c: 0.80")
    assert verdict(CLAIM, cells[:1]) == (verdicts.REPRODUCED, "")
    assert verdict(CLAIM, [*cells[:1], Cell("measured", "d", 1.3)]) == (
        verdicts.DIRECTION, "1.30; published: 1.20")


def test_a_mean_and_a_largest_cell_are_judged_alone():
    cells = [Cell("measured", "a", 1.1), Cell("measured", "b", 1.3)]
    for judged, word in (("mean", verdicts.REPRODUCED), ("most", verdicts.DIRECTION)):
        claim = replace(CLAIM, judged=judged)
        assert verdict(claim, cells)[0] == word, judged


def test_launches_are_judged_by_their_interval():
    assert verdict(CLAIM, [Cell("measured", "a", 1.2, 1.004, 1.3)])[0] == verdicts.NOT_REPRODUCED
    ten = paired.Compared("resnet50", 1.0, "lab", "MPI", "a", "b", (0.5,) * 9 + (0.8,), 1.0).cell
    assert (ten.value, ten.low, ten.high, ten.group) == (2, 2, 2, "lab, MPI")
    ours = Claim(claims.WANG, "", "", above=1, ours=True)
    assert verdict(ours, [Cell("measured", "a", 1.2, 1.1, 1.3)]) == (verdicts.BEYOND, "")
    assert verdict(ours, [Cell("measured", "a", 1.2)]) == (
        verdicts.NOT_MEASURED, "fewer than ten launches")


def test_a_fitted_model_confirms_nothing_and_may_contradict():
    fitted = Claim(claims.WANG, "", "", above=1, fitted="a rate")
    for kind, value, word in (("simulated", 1.2, verdicts.NOT_MEASURED),
                              ("simulated", 0.9, verdicts.NOT_REPRODUCED),
                              ("measured", 1.2, verdicts.REPRODUCED)):
        assert verdict(fitted, [Cell(kind, "a", value)])[0] == word


def test_kinds_and_groups_have_a_verdict_each_and_unknown_claims_are_refused():
    cells = {"figure 1": [Cell("simulated", "a", 1.2), Cell("measured", "b", 0.9, group="x"),
                          Cell("measured", "c", 1.1, group="y")]}
    (row, silent) = verdicts.rows({"figure 1": CLAIM, "figure 2": CLAIM}, cells)
    assert row.name == "Wang 2016, figure 1" and [one.word for one in row.outcomes] == [
        verdicts.REPRODUCED, verdicts.NOT_REPRODUCED, verdicts.DIRECTION]
    assert row.outcomes[1].found == "x: b: 0.90"
    assert [one.word for one in silent.outcomes] == [verdicts.NOT_MEASURED]
    with pytest.raises(KeyError, match="figure 9"):
        verdicts.rows({}, {"figure 9": []})


MODEL, EMULATED = Model("a model", ""), Model("devices", "", "emulated")
MEASURED = Records("a file", "lab", "MPI", "2026-11-30", "a machine", "a command")


def figure(name, times, over="bytes", title="allreduce, 8 ranks, here", at=(1 << 20,),
           origin=MODEL, **more):
    """A Figure of one panel; `times`: {label: seconds, of each point on the axis}."""
    lines = tuple(Line(label, origin, tuple(
        Point(place if over == "ranks" else 8, place if over == "bytes" else 1 << 20, took)
        for place, took in zip(at, took if isinstance(took, tuple) else (took,))))
        for label, took in times.items())
    return Figure(name, "", "", (Panel(title, "broadcast", lines, {}, over),), **more)


def value(cells):
    """The only value."""
    (cell,) = cells
    return pytest.approx(cell.value)


def test_cells_of_pipelining():
    cut = figure("figure 3", {"ring": 2.0, "ring x 2": 1.6, "ring x 4": 1.0})
    assert value(pipelining_cells.cut(cut, "ring")) == 2
    assert value(pipelining_cells.cut(cut, "ring", added=True)) == (1 << 20) / 2e6
    assert value(pipelining_cells.four(cut)) == 2
    assert value(pipelining_cells.ring(figure("figure 1", {
        "ring": 1.0, "rabenseifner": 2.0, "binomial": 4.0, "circulant": 0.5}))) == 2
    sums = {"ring": 1.0, "ring, no reduce": 0.7, "ring x 4": 0.8, "ring x 4, no reduce": 0.76}
    whole, four = pipelining_cells.sums(figure("figure 4", sums))
    assert value(whole) == 0.3 and value(four) == 0.05
    mpi = figure("figure 12", {"the MPI, blocking": 4.0, "the MPI, non-blocking": 3.0,
                               "the MPI, non-blocking x 4": 2.0}, origin=MEASURED)
    assert value(pipelining_cells.of_mpis(mpi, "here")) == 1.5, "by the faster of both"
    assert not list(pipelining_cells.of_mpis(mpi, "MPICH"))
    assert pipelining_cells.sums(figure("figure 4", {**sums, "ring, no reduce": 0.9}))[1] == []


def test_cells_of_the_ring():
    panels = figure("", {"paceline, chosen: ring": 1.0, "plain ring over Sendrecv": 1.5,
                         "the MPI, blocking": 2.0}).panels
    assert value(ring_cells.slower(panels, ring_cells.PLAIN)) == 1.5
    assert value(ring_cells.slower(panels, ring_cells.OWN)) == 2
    cold = Panel("", "", (Line(ring_cells.PLAIN, MODEL, (Point(8, 1, 1.0, 0.5, 7.5),)),), {})
    assert value(ring_cells.first([cold], ring_cells.PLAIN)) == 7.5


def test_cells_of_devices():
    names = device.NAMES
    few = figure("figure 3", {names["LP"]: (2.0, 1.0), names["MST"]: (2.0, 3.0)}, at=(1, 2),
                 title="broadcast, 4 devices", origin=EMULATED)
    assert value(device_cells.over_sizes(few, "broadcast", "MST")) == 2
    assert not list(device_cells.over_sizes(few, "broadcast", "BE"))
    more = figure("figure 4", {names["LP"]: (1.0, 1.1, 4.0, 2.0)}, "ranks", at=(2, 4, 5, 6),
                  origin=EMULATED)
    assert [cell.value for cell in device_cells.over_devices(more)] == [1.1, 0.5]
    theorem = figure("theorem 3.1", {f"{names['MST']} / x": 2.0, f"{names['BE']} / x": 1.5},
                     "ranks", at=(4,))
    for way, limit in (("MST", 2), ("BE", 1.5)):
        assert value(device_cells.of_theorem(theorem, way)) == (
            {"MST": 2.0, "BE": 1.5}[way] / limit * (1 + 3 / 16))


def test_cells_of_training(monkeypatch):
    for module, times in ((horovod_steps, {"AUTO": 3.0, "RING": 2.0, "PARTS": 1.0}),
                          (horovod_gpus, {"BLOCKING": 3.0, "IN_PARTS": 2.0, "STRAIGHT": 1.0})):
        monkeypatch.setattr(module, "speeds", lambda *case, module=module, times=times: {
            getattr(module, name): took for name, took in times.items()})
    monkeypatch.setattr(horovod_cells, "speeds", horovod_steps.speeds)
    found = horovod_cells.cells([None, paired.Paired("figure 9", "", "", (), compared=tuple(
        paired.Compared("resnet50", 1.0, "lab", "MPI", f"{loop}:{way}", f"{loop}:{other}",
                        (ratio,), 1.0)
        for loop in replays.LOOPS
        for way, other, ratio in ((replays.NON_BLOCKING, replays.OVER_MPI, 0.5),
                                  (replays.IN_PARTS, replays.OVER_MPI, 0.4),
                                  (replays.IN_PARTS, replays.NON_BLOCKING, 0.8),
                                  (replays.RING, replays.OVER_MPI, 0.625),
                                  (replays.RING_PARTS, replays.OVER_MPI, 0.32),
                                  (replays.OURS, replays.IN_PARTS, 0.8))))])
    firsts = {key: round(cells[0].value, 2) for key, cells in found.items() if cells}
    for key, value in (("ring", 1.5), ("resnet110", 3), ("non-blocking", 2), ("parts", 2.5),
                       ("parts alone", 1.25), ("ours", 1.25)):
        assert firsts[f"figure 9: {key}"] == value, key
    for key, value in (("ring", 1.6), ("resnet50", 3.125), ("parts", 2.5)):
        assert {(cell.group, cell.value) for cell in found[f"figure 9: {key}"]
                if cell.kind == "measured"} == {
            (f"{words}, lab, MPI", value) for words in replays.LOOPS.values()}
    assert all(cell.kind == "simulated" for cell in found["figure 9: vgg11"])
    for key, value in (("links", 3), ("computing", 3), ("parts", 1.5), ("near", 1)):
        assert firsts[f"figure 10: {key}"] == value, key
    assert firsts["table 2: parameters"] == 1 and firsts["figure 8"] > 100
    monkeypatch.setattr(horovod_gpus, "speeds", lambda name, pictures: {
        horovod_gpus.BLOCKING: 9.0, horovod_gpus.STRAIGHT: 1.0,
        horovod_gpus.IN_PARTS: {32: 2.0, 64: 1.5}[pictures]})
    assert {cell.value for cell in horovod_cells.nearer()} == {0.75}
    assert set(horovod.PUBLISHED) == {"alexnet", "resnet50", "vgg11", "resnet110"}


def test_cells_of_task_graphs():
    epochs = figure("epoch time", {"funnel": (9, 3.0), "concom": (9, 2.5), "depcha": (9, 2.0)},
                    "ranks", at=(1, 2), title="resnet50, EDR")
    found = list(dag_cells.epochs(epochs, ("funnel", "concom"), "resnet50"))
    assert [cell.value for cell in found] == [1.5, 1.25]
    assert not list(dag_cells.epochs(epochs, ("funnel",), "inception-bn"))
    took = {f"{way} Algorithm {number}": seconds for way, number, seconds in (
        ("LP", 1, 1.0), ("BE", 1, 10.0), ("MST", 1, 4.0), ("LP", 3, 0.5))}
    table = Figure("table 2", "", "", tuple(
        figure("", took, title=f"{name}, x").panels[0] for name in dag_cells.PUBLISHED))
    found = {key: cell.value for key, (cell,) in dag_cells.of_table_2(table).items()}
    assert found["table 2: alexnet, BE"] == 0.1 and found["table 2: googlenet, MST"] == 0.25
    assert found["figure 5: alexnet"] == pytest.approx((10 + 0.93) / 0.93)
    losses = Panel("", "", tuple(Line("", MODEL, (Point(1, 0, 1.0, value=last),))
                                 for last in (1.0, 1.5)), {})
    assert value(dag_cells.losses(Figure("loss", "", "", (losses,)))) == 1.5


def test_formulas_hold_but_for_a_pair_and_for_exchanges():
    """Both limits of the theorem: LP's allreduce gains nothing over BE's."""
    found = dag_cells.of_linear()
    words = {(key, outcome.found.partition(":")[0]): outcome.word
             for key, row in zip(found, verdicts.rows({key: claims.DAG[key] for key in found},
                                                      found)) for outcome in row.outcomes}
    assert {where for where, word in words.items() if word != verdicts.REPRODUCED} == {
        (key, "allreduce") for key in found}
    one = {cell.where: cell.value for cell in found["theorem 3.1: BE"] if cell.group == "allreduce"}
    assert one["on 64"] == pytest.approx(0.5, rel=0.02)


def test_cells_of_arrival():
    across = figure("table 3", {"hierarchical_rsa": 1.25, arrival_across.SMALL_PAP: 9.0}, "ranks",
                    at=(8,))
    assert value(arrival_across.cells({"table 3": across})["table 3"]) == 1.25
    named = {}
    for name, cases in (("figure 7", arrival_inside.SMALL), ("figure 8", arrival_inside.LARGE)):
        times = {case.label: 3.0 if case.static else 2.0 for case in cases}
        named[name] = figure(name, {**times, cases[-1].label: 0.1}, title="32 ranks, MIF 10")
    found = arrival_inside.cells(named)
    assert {key: cells[0].value for key, cells in found.items()} == {
        "figure 7: 10": 1.5, "figure 8: 10": 1.5}
    speeds = figure("figure 9", {arrival_training.FLAT: 100.0,
                                 arrival_training.HIERARCHICAL: 117.0},
                    "ranks", title="resnet50", at=(8,))
    table = (("", *arrival_training.WAYS), ("resnet50", "90", "100", "101", "95"))
    found = arrival_training.cells({"figure 9": speeds,
                                    "figure 10": Figure("figure 10", "", "", (), table=table)})
    assert {key: cells[0].value for key, cells in found.items()} == {
        "figure 9: resnet50": 1.17, "figure 10: small": 1.01, "figure 10: large": 0.95}
    table = (("",), ("uniform", "9", "0", "1.03"), ("all", "9", "", "1.00"))
    random = {"random arrivals": Figure("", "", "", (), table=table)}
    assert value(arrival_random.cells(random)["goal: random"]) == 1.03
    static = {arrival_nodes.STATIC: 2.0, "fast": 3.0}
    (panel,) = figure("", static).panels
    assert value(arrival_nodes.wrong(panel, "fast")) == 1.5
    assert value(arrival_nodes.late(panel, "fast")) == 3
